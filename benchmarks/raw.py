"""Raw keyspaces under replication: what capturing costs a main, and how far a replica is behind.

    python -m benchmarks.raw [--rounds 9] [--seconds 4.5] [--writers 600] [--backlog 150000]

The main runs in this process, its recovery in another one, behind a link of 30 ms, which relays in
a process of its own too, as do the looks at the recovery. Writers put, and every fourth operation
is a get; in the open loop they offer half the rate that they reach in a closed loop without a
capture. A round has a part without a capture, one with a capture that joined the main as a process
of its own, and one whose capture runs in the main's process. Capture, recovery, link and looks
have machines of their own in life. Here they share the main's, and run where it leaves a core
free (SCHED_IDLE). The parts of a round take turns in pieces. Ratios are medians over the rounds.

- `put_avg_overhead`, `put_p99_overhead`, `get_avg_overhead`, `get_p99_overhead`: what a capture
  adds to a latency of the open loop, as a part of that without one; `put_avg_overhead_in_process`.
- `put_avg_ms`, `get_avg_ms`: the averages without a capture.
- `put_throughput_ratio`: puts of the closed loop with a capture, over those without.
- `replication_rows_over_offered`: rows a second into the replica, while it resolves them, over
  those that the main commits, by the timestamps of both.
- `recovery_point_s_p99`: the age of the oldest acknowledged write that the recovery lacks.
- `main_us_per_row`, `capture_us_per_row`, `recovery_us_per_row`: processor time of a row that is
  replicated; the main's is what it spends more than without a capture.
- `delayed_over_undelayed`: rows a second of a backlog over the link, over those without its delay.
- `entry_bytes`: what an entry has beyond the user's key and value; the time index is apart.
- `get_us_over_plain`: a get of a keyspace by its name, over a get of the store.

The grid is rows a second of a backlog of 10,000 over the link, by concurrency and batch size. A
backlog is measured from CREATE until the replica has resolved the present, so what it costs to
begin and to end, three round trips over the link, is in its rate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from statistics import median

import httpx2

from benchmarks.outcome import print_outcome
from benchmarks.servers import free_port
from tailrace.api.cli.joining import RpcAddress, open_node
from tailrace.api.demo.raw.link import Link
from tailrace.api.demo.raw.server import DemoServer
from tailrace.api.keyspaces import AsyncKeyspace
from tailrace.api.node import Node, NodeOptions
from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import Timestamp, seconds_between, timestamp_at
from tailrace.kvlayer.process.tuned_process import tuned_process
from tailrace.kvlayer.raw import raw_key
from tailrace.kvlayer.store import Store

LINK_SECONDS = 0.03
VALUE = b"v" * 100
KEY_COUNT = 5_000
GET_EVERY = 4
LOOK_SECONDS = 0.1
PIECES = 3
"""Of each part of a round."""

PROCESSES = ("main", "capture", "recovery")
GRID_ROWS = 10_000
PATIENCE_SECONDS = 120.0
GRID = [(concurrency, batch) for concurrency in (1, 4, 16) for batch in (100, 500, 2_000)]
PLAIN_READS = 2_000


Look = tuple[Timestamp, Timestamp]
"""When a look was answered, as a timestamp, and what was resolved then."""


@dataclass(slots=True)
class Latencies:
    """Seconds of each operation of a part."""

    puts: list[float] = field(default_factory=list)
    gets: list[float] = field(default_factory=list)


def average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def p99(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


@dataclass(frozen=True, slots=True)
class Relay:
    """A link that another process relays: what it costs is none of the main's."""

    port: int

    @classmethod
    async def start(cls, target_port: int, seconds: float, running: AsyncExitStack) -> Relay:
        context = get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=relay, args=(target_port, seconds, theirs), daemon=True)
        process.start()
        running.callback(process.kill)
        return cls(await asyncio.to_thread(ours.recv))


def relay(target_port: int, seconds: float, told: Connection) -> None:
    give_way(os.getpid())

    async def until_killed() -> None:
        link = Link(target_port, seconds)
        async with link.relaying():
            told.send(link.port)
            await asyncio.Event().wait()

    asyncio.run(until_killed())


class Looks:
    """Looks at what a replica has resolved, again and again, from a process of its own: a request
    costs its asker 2 ms, which are no cost of a capture."""

    def __init__(self, process: SpawnProcess, ours: Connection) -> None:
        self._process = process
        self._ours = ours

    @classmethod
    async def begin(cls, url: str) -> Looks:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=look, args=(url, theirs), daemon=True)
        process.start()
        await asyncio.to_thread(ours.recv)  # it has begun
        return cls(process, ours)

    async def end(self) -> list[Look]:
        """All looks, in order."""
        self._ours.send(None)
        seen: list[tuple[int, int]] = await asyncio.to_thread(self._ours.recv)
        self._process.kill()
        return [(timestamp_at(unix_us=at), Timestamp(resolved)) for at, resolved in seen]


def look(url: str, told: Connection) -> None:
    give_way(os.getpid())
    seen: list[tuple[int, int]] = []
    with httpx2.Client(trust_env=False) as client:
        told.send(None)
        ended = False
        while not ended:
            ended = told.poll(LOOK_SECONDS)  # and looks once more: all may be there now
            resolved: int = client.get(url).json().get("resolved", 0)
            seen.append((time.time_ns() // 1_000, resolved))
    told.send(seen)


class Bench:
    """A main, its capture and its recovery."""

    def __init__(
        self,
        main: Node,
        capture: DemoServer,
        recovery: DemoServer,
        links: Sequence[Relay],
        client: httpx2.AsyncClient,
    ) -> None:
        """`client` asks the recovery. It is one for all questions: a new one reads authorities for
        TLS, which holds this loop, the main's, for 20 ms."""
        self.main = main
        self.capture = capture
        self.recovery = recovery
        self.slow, self.fast = links
        self.keyspace = AsyncKeyspace(main, "ks")
        self.acknowledged: list[Timestamp] = []
        self._session = main.session()
        self._client = client

    async def sql(self, text: str) -> None:
        await self._session.execute(text)

    async def rows(self, text: str) -> Sequence[Sequence[object]]:
        return (await self._session.execute(text))[-1].fetch_rows()

    # Load

    async def closed_loop(self, writers: int, seconds: float) -> float:
        """Puts a second of writers that never pause."""
        count, until = 0, time.monotonic() + seconds

        async def write(number: int) -> None:
            nonlocal count
            while time.monotonic() < until:
                await self.keyspace.put(b"%06d" % (number % KEY_COUNT), VALUE)
                count, number = count + 1, number + writers

        await asyncio.gather(*(write(number) for number in range(writers)))
        return count / seconds

    async def open_loop(self, load: Load, found: Latencies) -> None:
        """Each writer has its times at which it begins an operation, however long the last took."""
        began, pause = time.monotonic(), load.writers / load.rate

        async def write(number: int) -> None:
            due, turn = began + number / load.rate, number
            while due < began + load.seconds:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                key, turn = b"%06d" % (turn % KEY_COUNT), turn + 1
                if turn % GET_EVERY == 0:
                    await self.keyspace.get(key)
                    found.gets.append(time.monotonic() - due)
                else:
                    self.acknowledged.append(await self.keyspace.put(key, VALUE))
                    found.puts.append(time.monotonic() - due)
                due += pause

        await asyncio.gather(*(write(number) for number in range(load.writers)))

    def processor_seconds(self) -> Sequence[float]:
        """What main, capture and recovery have used."""
        servers = (self.capture, self.recovery)
        return (time.process_time(), *(used_by(server.pid) for server in servers))

    # Replication

    async def replicate(self, name: str, link: Relay, *, apart: bool, sending: str = "") -> None:
        """Begins a replication: in the capture's process, or in this one."""
        target = f"tailrace://127.0.0.1:{link.port}/{name}"
        text = (
            f"CREATE REPLICATION {name} FOR KEYSPACE ks INTO '{target}' "
            f"WITH (bootstrap = 'none'{sending})"
        )
        if apart:
            await self.capture.rows(text)
        else:
            await self.sql(text)

    async def cancel(self, name: str, *, keep: bool = False) -> None:
        """Ends a replication, and what it made unless that is to be kept."""
        await self.sql(f"CANCEL REPLICATION {name}")
        await self._until(lambda: self._canceled(name))
        if not keep:
            await self.recovery.rows(f"DROP KEYSPACE {name}")

    async def caught_up(self, name: str) -> None:
        """Until the replica has resolved the present."""
        now = await self.main.store.now()

        async def there() -> bool:
            return await self.resolved(name) >= now

        await self._until(there)

    def place(self, name: str) -> str:
        """The URL that tells where a replica stands."""
        return f"{self.recovery.url}/v1/keyspaces/{name}/ingest"

    async def resolved(self, name: str) -> Timestamp:
        answer = await self._client.get(self.place(name))
        found: int = answer.json().get("resolved", 0)
        return Timestamp(found)

    def recovery_points(self, looks: Sequence[Look]) -> list[float]:
        """At each look, the age of the oldest acknowledged write that the recovery lacked."""
        written = sorted(self.acknowledged)
        ages: list[float] = []
        for now, resolved in looks:
            place = bisect_right(written, resolved)
            lacks = place < len(written) and written[place] < now
            ages.append(seconds_between(written[place], now) if lacks else 0.0)
        return ages

    def rows_per_s(self, looks: Sequence[Look]) -> float:
        """Acknowledged rows a second that the recovery resolved. It resolves them in steps: the
        time is from the first look at the first step to the first look at the last one but that
        which brings all, with which there is nothing more to do."""
        written = sorted(self.acknowledged)
        steps: dict[int, Timestamp] = {}
        for now, resolved in looks:
            steps.setdefault(bisect_right(written, resolved), now)
        (had, began), *_, (has, ended) = [
            (count, now) for count, now in steps.items() if 0 < count < len(written)
        ]
        return (has - had) / seconds_between(began, ended)

    async def backlog(self, name: str, link: Relay, rows: int, sending: str = "") -> float:
        """Rows a second into a replica that has to catch up with so many."""
        await self.replicate(name, link, apart=True, sending=sending)
        await self.caught_up(name)
        await self.cancel(name, keep=True)
        for first in range(0, rows, 5_000):
            count = min(5_000, rows - first)
            await self.keyspace.put_many(
                [(b"b%06d" % n, VALUE) for n in range(first, first + count)]
            )
        began = time.monotonic()
        # One that is created again goes on from there, and runs where it is created: what is
        # resumed, whichever node finds first.
        await self.replicate(name, link, apart=True, sending=sending)
        await self.caught_up(name)
        seconds = time.monotonic() - began
        await self.cancel(name)
        return rows / seconds

    async def _canceled(self, name: str) -> bool:
        rows = await self.rows("SHOW REPLICATIONS")
        return all(row[4] == "canceled" for row in rows if row[0] == name)

    async def _until(self, check: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await check():
                await asyncio.sleep(0.01)


def used_by(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def give_way(pid: int) -> None:
    """Has the threads of a process, and those that they start, run only on a core that is free."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))


async def entry_bytes(bench: Bench, keyspace_id: int) -> float:
    """What is stored of an entry beyond the user's key, as it is encoded, and the value."""
    store = bench.main.store
    assert isinstance(store, Store)
    await bench.keyspace.put(b"entry", VALUE)
    start = keys.VERSION + raw_key(keyspace_id, b"entry")
    ((key, value),) = store.engine.scan(start, start + b"\xff")
    return len(key) - len(start) + len(value) - len(VALUE)


async def get_us_over_plain(bench: Bench, keyspace_id: int) -> float:
    """Microseconds of processor time of a get of a keyspace by name, beyond one of the store."""
    store, keyspace = bench.main.store, bench.keyspace
    key = raw_key(keyspace_id, b"entry")

    async def timed(read: Callable[[], Awaitable[object]]) -> float:
        began = time.process_time()
        for _ in range(PLAIN_READS):
            await read()
        return (time.process_time() - began) / PLAIN_READS * 1e6

    async def plain() -> object:
        return await store.snapshot(await store.now()).get(key)

    differences = [
        await timed(lambda: keyspace.get(b"entry")) - await timed(plain) for _ in range(5)
    ]
    return median(differences)


@dataclass(frozen=True, slots=True)
class Load:
    """The open loop: so many writers, their operations a second, and the seconds of a piece."""

    writers: int
    rate: float
    seconds: float


@dataclass(slots=True)
class Part:
    """One part of a round, over its pieces: latencies, and processor seconds by process."""

    latencies: Latencies = field(default_factory=Latencies)
    used: list[float] = field(default_factory=lambda: [0.0] * len(PROCESSES))

    async def go_on(self, bench: Bench, load: Load) -> None:
        before = bench.processor_seconds()
        await bench.open_loop(load, self.latencies)
        now = bench.processor_seconds()
        self.used = [
            used + later - earlier
            for used, later, earlier in zip(self.used, now, before, strict=True)
        ]


class Round:
    """The parts of a round, in pieces that take turns: what else the machine does changes slowly,
    and is in all of them. What it finds is noted in `found`."""

    def __init__(self, bench: Bench, load: Load, found: dict[str, list[float]]) -> None:
        self._bench = bench
        self._load = load
        self._found = found
        self._plain, self._apart, self._inside = Part(), Part(), Part()

    async def run(self, number: int) -> None:
        for piece in range(PIECES):
            await self._plain.go_on(self._bench, self._load)
            looks = await self._captured(f"r{number}a{piece}", self._apart, apart=True)
            self._note_replica(looks)
            await self._captured(f"r{number}i{piece}", self._inside, apart=False)
        await self._note_throughput(f"r{number}t")
        self._note_overheads()

    async def _captured(self, name: str, part: Part, *, apart: bool) -> Sequence[Look]:
        bench = self._bench
        await bench.replicate(name, bench.slow, apart=apart)
        await bench.caught_up(name)
        bench.acknowledged.clear()
        looks = await Looks.begin(bench.place(name))
        await part.go_on(bench, self._load)
        await bench.caught_up(name)
        seen = await looks.end()
        await bench.cancel(name)
        return seen

    def _note_replica(self, looks: Sequence[Look]) -> None:
        bench, found = self._bench, self._found
        written = bench.acknowledged
        offered = len(written) / seconds_between(min(written), max(written))
        reached = bench.rows_per_s(looks)
        note(found, "replication_rows_over_offered", reached / offered)
        note(found, "replication_rows_per_s", reached)
        found.setdefault("recovery_points", []).extend(bench.recovery_points(looks))

    async def _note_throughput(self, name: str) -> None:
        bench, load = self._bench, self._load
        without = await bench.closed_loop(load.writers, load.seconds)
        await bench.replicate(name, bench.slow, apart=True)
        await bench.caught_up(name)
        captured = await bench.closed_loop(load.writers, load.seconds)
        await bench.cancel(name)
        note(self._found, "put_throughput_ratio", captured / without)

    def _note_overheads(self) -> None:
        found, plain, apart = self._found, self._plain.latencies, self._apart.latencies
        note(found, "put_avg_ms", average(plain.puts) * 1000)
        note(found, "get_avg_ms", average(plain.gets) * 1000)
        for name, of in (("avg", average), ("p99", p99)):
            note(found, f"put_{name}_overhead", of(apart.puts) / of(plain.puts) - 1)
            note(found, f"get_{name}_overhead", of(apart.gets) / of(plain.gets) - 1)
        inside = average(self._inside.latencies.puts)
        note(found, "put_avg_overhead_in_process", inside / average(plain.puts) - 1)
        used = zip(PROCESSES, self._apart.used, self._plain.used, strict=True)
        for process, captured, alone in used:
            note(found, f"{process}_us_per_row", (captured - alone) / len(apart.puts) * 1e6)


async def measure(bench: Bench, asked: argparse.Namespace) -> dict[str, float]:
    await bench.keyspace.put_many([(b"%06d" % n, VALUE) for n in range(KEY_COUNT)])
    ((_, _, keyspace_id, *_),) = await bench.rows("SHOW KEYSPACES")
    assert isinstance(keyspace_id, int)
    metrics = {
        "entry_bytes": await entry_bytes(bench, keyspace_id),
        "get_us_over_plain": await get_us_over_plain(bench, keyspace_id),
    }
    seconds = asked.seconds / PIECES
    rates = [await bench.closed_loop(asked.writers, seconds) for _ in range(PIECES)]
    load = Load(asked.writers, median(rates) / 2, seconds)
    found: dict[str, list[float]] = {}
    for number in range(asked.rounds):
        await Round(bench, load, found).run(number)
    metrics["recovery_point_s_p99"] = p99(found.pop("recovery_points"))
    metrics |= {name: median(values) for name, values in found.items()}
    metrics["offered_per_s"] = load.rate
    drained = {link: await bench.backlog(f"b{n}", link, asked.backlog) for n, link in
               enumerate((bench.slow, bench.fast))}  # fmt: skip
    metrics["delayed_over_undelayed"] = drained[bench.slow] / drained[bench.fast]
    metrics["delayed_rows_per_s"] = drained[bench.slow]
    print(f"{'concurrency':>12}{'batch_size':>12}{'rows/s':>10}")
    for place, (concurrency, batch) in enumerate(GRID):
        sending = f", concurrency = {concurrency}, batch_size = {batch}"
        reached = await bench.backlog(f"g{place}", bench.slow, GRID_ROWS, sending)
        print(f"{concurrency:>12}{batch:>12}{reached:>10.0f}", flush=True)
    return metrics


def note(found: dict[str, list[float]], name: str, value: float) -> None:
    found.setdefault(name, []).append(value)


async def run(asked: argparse.Namespace, folder: Path) -> dict[str, float]:
    async with AsyncExitStack() as running:
        port = free_port()
        main = await open_node(folder / "main", NodeOptions(), RpcAddress("127.0.0.1", port), None)
        running.push_async_callback(main.close)
        await main.session().execute("CREATE KEYSPACE ks")
        rpc = f"127.0.0.1:{port}"
        token = folder / "main" / "join.token"
        capture = DemoServer(folder / "capture", "--join", rpc, "--join-token", str(token))
        recovery = DemoServer(folder / "recovery")
        for server in (capture, recovery):
            running.push_async_callback(server.kill)
            await server.start()
            give_way(server.pid)
        links = [await Relay.start(recovery.port, delay, running) for delay in (LINK_SECONDS, 0.0)]
        client = await running.enter_async_context(httpx2.AsyncClient(trust_env=False))
        with tuned_process():  # as a server's is
            return await measure(Bench(main, capture, recovery, links, client), asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4.5)
    parser.add_argument("--writers", type=int, default=600)
    parser.add_argument("--backlog", type=int, default=150_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        metrics = asyncio.run(run(asked, Path(folder)))
    print_outcome("raw", metrics)


if __name__ == "__main__":
    main()
