"""The demo of replication, from beginning to end.

    time          the oracle: a store that others ask what time it is
    main          the keyspace, written by clients all the while; its time is the oracle's
    capture       a node that joined main: it runs one of the replication's tasks, main the other
    recovery      the replica, behind a slow link

The replica begins with a backup. The link is cut for a while; main, capture and recovery are killed
at moments that a seed chooses. Then all is quiet, and both sides are compared, by VERIFY and with
the clients' own record. At last main dies for good, and the replica is promoted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx2
from rich.console import Console

from ....kvlayer.clock import ZERO, Timestamp, format_timestamp, parse_timestamp
from .clients import KEYSPACE, Clients
from .link import Link
from .server import DemoServer, ServerFailed, free_port

CLIENTS = 20
WORKERS = 2
LINK_SECONDS = 0.03
CUT_SECONDS = 30.0
LOAD_SECONDS = 5.0
"""How long the clients write before something is done to a server, at most."""

PATIENCE_SECONDS = 180.0
VERSIONS_CHECKED = 5
"""The last acknowledged writes of each key, which a reader of the past must find."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationOutcome:
    """The findings of the demo. `differences` must be zero: rows that VERIFY tells, keys that are
    not as a client was answered last, writes below the checkpoint that are missing after the
    fail-over, and keys of which an old write is newer than one behind it."""

    writes: int
    verified: int
    lost: int
    lost_at_failover: int
    old_writes_that_win: int
    recovery_point_seconds: float

    @property
    def differences(self) -> int:
        return self.verified + self.lost + self.lost_at_failover + self.old_writes_that_win

    def metrics(self) -> dict[str, float]:
        return {
            "writes": self.writes,
            "verify_differences": self.verified,
            "lost": self.lost,
            "lost_at_failover": self.lost_at_failover,
            "old_writes_that_win": self.old_writes_that_win,
            "recovery_point_s": self.recovery_point_seconds,
        }


async def run_replication_demo(
    folder: Path,
    console: Console,
    *,
    cut_seconds: float = CUT_SECONDS,
    load_seconds: float = LOAD_SECONDS,
    clients: int = CLIENTS,
    seed: int = 0,
) -> ReplicationOutcome:
    """Raises ServerFailed, and TimeoutError where a replica does not catch up."""
    random = Random(seed)
    async with _stores(folder) as stores:
        demo = ReplicationDemo(stores, console, Clients(stores.main, clients, random))
        await demo.begin(stores.shared / KEYSPACE)
        async with demo.clients.writing():
            await demo.caught_up("the replica was restored from a backup, and has caught up")
            await asyncio.sleep(random.random() * load_seconds)
            await demo.tell_tasks()
            stores.link.cut()
            console.print(f"the link is cut for {cut_seconds:g} s")
            await asyncio.sleep(cut_seconds)
            stores.link.mend()
            for name, server in stores.victims.items():
                await asyncio.sleep(random.random() * load_seconds)
                console.print(f"kill -9 of {name}, which is started again")
                await server.restart()
            await asyncio.sleep(random.random() * load_seconds)
            await demo.tell_tasks()
        verified, lost = await demo.compare()
        return await demo.fail_over(verified, lost, random.random() * load_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The servers of the demo, and the link between them."""

    main: DemoServer
    capture: DemoServer
    recovery: DemoServer
    link: Link
    shared: Path

    @property
    def victims(self) -> Mapping[str, DemoServer]:
        return {"main": self.main, "capture": self.capture, "recovery": self.recovery}


@asynccontextmanager
async def _stores(folder: Path) -> AsyncIterator[Stores]:
    shared = folder / "shared"
    shared.mkdir(parents=True)
    roots = ("--mirror-root", str(shared))
    async with AsyncExitStack() as running:

        async def started(name: str, *options: str) -> DemoServer:
            server = DemoServer(folder / name, *options)
            running.push_async_callback(server.kill)
            await server.start()
            return server

        oracle, recovery = await asyncio.gather(
            started("time", "--rpc-port", "0"), started("recovery", *roots)
        )
        asks = ("--oracle", oracle.rpc, "--oracle-token", str(folder / "time" / "join.token"))
        main = await started("main", "--rpc-port", str(free_port()), *asks, *roots)
        token = folder / "main" / "join.token"
        joins = ("--join", main.rpc, "--join-token", str(token))
        capture = await started("capture", *joins, *roots)
        link = Link(recovery.port, LINK_SECONDS)
        await running.enter_async_context(link.relaying())
        yield Stores(main=main, capture=capture, recovery=recovery, link=link, shared=shared)


class ReplicationDemo:
    """The keyspace in both stores, and who writes it."""

    def __init__(self, stores: Stores, console: Console, clients: Clients) -> None:
        self.clients = clients
        self._stores = stores
        self._console = console

    async def begin(self, backup: Path) -> None:
        """Makes the keyspace in two ranges, with rows to back up, and its replication by two tasks:
        one on main, one on the capture."""
        main = self._stores.main
        await main.rows(f"CREATE KEYSPACE {KEYSPACE}")
        puts = [f"raw_put('{KEYSPACE}', 'seed-{number}', 'x')" for number in range(100)]
        await main.rows(f"SELECT {', '.join(puts)}")
        target = f"tailrace://127.0.0.1:{self._stores.link.port}/{KEYSPACE}"
        await main.rows(f"ALTER KEYSPACE {KEYSPACE} SPLIT AT '{self.clients.middle}'")
        await main.rows(
            f"CREATE REPLICATION r FOR KEYSPACE {KEYSPACE} INTO '{target}' WITH "
            f"(bootstrap = 'backup', backup = 'file:///{backup}', backoff_max = 0.5, "
            f"workers = {WORKERS})"
        )

    async def caught_up(self, what: str) -> None:
        """Waits until the replica has everything that was acknowledged by now."""
        began, wanted = time.monotonic(), self.clients.newest
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self._resolved() < wanted or not wanted:
                wanted = wanted or self.clients.newest
                await asyncio.sleep(0.05)
        self._console.print(f"{what} ({time.monotonic() - began:.1f} s)")

    async def tell_tasks(self) -> None:
        """Prints which node runs which task, and how fast."""
        for row in await self._stores.main.rows("SHOW REPLICATION r TASKS"):
            number, node, rows, rate = row[0], row[4], row[9], row[10]
            told = "has not told yet" if rate is None else f"{rows:,} rows, {rate:.0f} a second"
            self._console.print(f"task {number} runs on node {node}: {told}")

    async def compare(self) -> tuple[int, int]:
        """When all is quiet: what VERIFY tells, and how many keys are not as they were answered."""
        await self.caught_up("all is quiet, and the replica has caught up")
        differing = await self._stores.main.rows("VERIFY REPLICATION r")
        lost = await self._lost()
        self._console.print(
            f"VERIFY REPLICATION tells {len(differing)} differences; of {self.clients.writes:,} "
            f"acknowledged writes {lost} are lost"
        )
        return len(differing), lost

    async def fail_over(self, verified: int, lost: int, seconds: float) -> ReplicationOutcome:
        """Main dies under load, for good; the replica is promoted, and written."""
        main, recovery = self._stores.main, self._stores.recovery
        async with self.clients.writing():
            await asyncio.sleep(seconds)
            await main.kill()
            self._console.print("main is dead for good")
        ((said,),) = await recovery.rows(f"ALTER KEYSPACE {KEYSPACE} PROMOTE")
        checkpoint = parse_timestamp(str(said))
        missing = await self._missing_below(checkpoint)
        wins = 0
        async with httpx2.AsyncClient(base_url=recovery.url, trust_env=False) as client:
            for key in self.clients.records:
                place = f"/v1/keyspaces/{KEYSPACE}/keys/{key}"
                put = await client.put(place, content=b"after")
                at = parse_timestamp(put.json()["timestamp"])
                found = await client.get(place)
                wins += at <= self.clients.newest or found.content != b"after"
        behind = max(0.0, (self.clients.newest - checkpoint) / (1 << 12) / 1e6)
        self._console.print(
            f"the replica is promoted at {said}, {behind:.3f} s before the last acknowledged "
            "write: "
            f"{missing} writes below that are missing, {wins} old writes win over new ones"
        )
        return ReplicationOutcome(
            writes=self.clients.writes,
            verified=verified,
            lost=lost,
            lost_at_failover=missing,
            old_writes_that_win=wins,
            recovery_point_seconds=behind,
        )

    async def _lost(self) -> int:
        """The number of the replica's keys that are not what their writer was answered last."""
        lost = 0
        async with httpx2.AsyncClient(
            base_url=self._stores.recovery.url, trust_env=False
        ) as client:
            for key, record in self.clients.records.items():
                lost += await _value(client, key) not in record.possible
        return lost

    async def _missing_below(self, checkpoint: Timestamp) -> int:
        """The number of acknowledged writes at or below the checkpoint that are not there at their
        time."""
        missing = 0
        async with httpx2.AsyncClient(
            base_url=self._stores.recovery.url, trust_env=False
        ) as client:
            for key, record in self.clients.records.items():
                below = [write for write in record.acknowledged if write[0] <= checkpoint]
                for at, value in below[-VERSIONS_CHECKED:]:
                    missing += await _value(client, key, at) != value
        return missing

    async def _resolved(self) -> Timestamp:
        with suppress(httpx2.HTTPError, ServerFailed):
            for row in await self._stores.recovery.rows("SHOW KEYSPACES"):
                if row[1] == KEYSPACE and row[-1] is not None:
                    return parse_timestamp(str(row[-1]))
        return ZERO


async def _value(client: httpx2.AsyncClient, key: str, at: Timestamp | None = None) -> bytes | None:
    asked = {} if at is None else {"at": format_timestamp(at)}
    answer = await client.get(f"/v1/keyspaces/{KEYSPACE}/keys/{key}", params=asked)
    if answer.status_code == 404:
        return None
    answer.raise_for_status()
    return answer.content
