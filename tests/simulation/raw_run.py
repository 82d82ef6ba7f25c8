"""Raw keyspaces on one store under random load and misfortune.

    outcome = run_raw(seed)

A run is some lives of one store. Clients put, delete, compare and swap, scan and look back in two
keyspaces; followers follow them; ranges are split and merged, garbage is collected, the clock
jumps, the disk is full, and a life ends by a crash at some byte of the log. Half of the stores take
their time from an oracle, which is away for a while, or goes back. Everything is judged by
`raw_model`, which knows what each key was at each timestamp.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import cast
from unittest.mock import patch

from tailrace.kvlayer import keys as key_format
from tailrace.kvlayer.clock import ZERO, Timestamp, duration
from tailrace.kvlayer.errors import (
    BatchTimestampBeforeGC,
    ClockStopped,
    LockTimeout,
    OracleAway,
    RetryableTransaction,
    StoreClosed,
    StoreFull,
)
from tailrace.kvlayer.mvcc import body_of
from tailrace.kvlayer.ranges import collection
from tailrace.kvlayer.raw import (
    OracleTime,
    OracleWatch,
    RawKeyspace,
    dead_at,
    keyspace_span,
)
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import prefix_end
from tailrace.kvlayer.store import Store
from tests.harness.sim_oracle import SimOracle
from tests.harness.simulation import Simulation
from tests.harness.validators import Start, Watch
from tests.simulation.kv_followers import SpanFollower
from tests.simulation.kv_machine import Machine
from tests.simulation.kv_model import KVModel
from tests.simulation.kv_nemeses import Nemeses
from tests.simulation.raw_model import (
    DELETED_TTL,
    NAMES,
    RAW_KEYS,
    SPANS,
    Op,
    OpKind,
    RawModel,
    Seen,
)

LIVES_MAX = 3
SETTLE_SECONDS = 60.0
REFUSED = (
    RetryableTransaction, LockTimeout, StoreFull, BatchTimestampBeforeGC, OracleAway, ClockStopped,
)  # fmt: skip
OUTAGE_SECONDS_MAX = 30.0
ASK_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RawOutcome:
    """What a run was made of."""

    writes: int
    reads: int
    crashes: int
    counts: Counter[str]


class RawFollower(SpanFollower):
    """A feed of keyspaces, under the contract of every feed."""

    def _new_watch(self, starts: Sequence[Start]) -> Watch:
        return Watch(self.model.history, starts, restarts_hidden=True, universe=list(RAW_KEYS))


class RawNemeses(Nemeses):
    """Those of a store; ranges and garbage are the keyspaces'. With an oracle there are its own."""

    def __init__(self, run: RawRun, store: Store) -> None:
        super().__init__(run.machine, store, cast(KVModel, run.model), run.sim.random, run.counts)
        self._oracle = run.oracle
        if self._oracle is not None:
            self.gathered += [self.take_oracle_away, self.set_oracle_back]

    async def take_oracle_away(self) -> None:
        """Clients hardly write meanwhile: they would fill the log with what no seed needs."""
        assert self._oracle is not None
        self._oracle.away = self._oracle.quiet = True
        await asyncio.sleep(self.random.choice((1.0, 20.0, 29.0, 31.0, 40.0)))
        self._oracle.away = self._oracle.quiet = False
        self.counts["outages"] += 1

    async def set_oracle_back(self) -> None:
        assert self._oracle is not None
        self._oracle.back_seconds = 3600
        await asyncio.sleep(self.random.choice((0.6, 2.0)))
        self._oracle.back_seconds = 0
        self.counts["oracle went back"] += 1

    async def cut_range(self) -> None:
        place = self.random.choice((*RAW_KEYS, *[span.start for span in SPANS]))
        await self.store.split(place, sticky_until=ZERO)
        self.counts["splits"] += 1

    async def collect_garbage(self) -> None:
        span = self.random.choice(SPANS)
        ago = duration(seconds=self.random.choice((0.0, 0.01, 0.1)))
        threshold = Timestamp(max(self.store.clock.now() - ago, 1))
        removed = await self.store.collect_garbage(span, threshold, dead_at=dead_at)
        self.counts["collections"] += 1
        self.counts["versions collected"] += removed


class RunOracle(SimOracle):
    """An oracle, and whether clients are to be quiet since it is away for long."""

    quiet = False

    def begin(self, *, away: bool) -> None:
        """Its asker starts anew."""
        self.away, self.quiet, self.back_seconds = away, False, 0
        self.greatest, self.good_at = ZERO, None

    def come_back(self) -> None:
        self.away = self.quiet


class RawClients:
    """Random clients of one life: each tells the model what it asks and what it was answered."""

    def __init__(self, run: RawRun, store: Store) -> None:
        self._model, self._random, self._counts = run.model, run.sim.random, run.counts
        self._oracle, self._sim = run.oracle, run.sim
        self._store = store
        self._keyspaces = {id: RawKeyspace(store, id) for id in (7, 8)}

    async def work(self, stop: asyncio.Event) -> None:
        actions: Sequence[Callable[[], Coroutine[None, None, None]]] = [
            *[self._put] * 4, *[self._delete] * 2, self._put_many, self._swap, self._swap,
            self._delete_range, self._get, self._look_back, self._scan,
        ]  # fmt: skip
        pauses: tuple[float, ...]
        while not stop.is_set() or self._quiet:
            pauses = (0.0, 0.001, 0.01)
            try:
                await self._random.choice(actions)()
            except OracleAway:
                self._counts["refused: OracleAway"] += 1
                pauses = (0.1, 0.3)
            except REFUSED as error:
                self._counts[f"refused: {type(error).__name__}"] += 1
            except StoreClosed:
                return
            await asyncio.sleep(self._random.choice((0.7, 2.0) if self._quiet else pauses))

    @property
    def _quiet(self) -> bool:
        return self._oracle is not None and self._oracle.quiet

    def _some(self) -> tuple[RawKeyspace, bytes]:
        return self._keyspaces[self._random.choice((7, 8))], self._random.choice(NAMES)

    def _ttl(self) -> float | None:
        return self._random.choice((None, None, 0.01, 0.3))

    async def _write(self, op: Op, writing: Coroutine[None, None, Timestamp | None]) -> None:
        """What is refused has not happened, and what nobody answers may have."""
        floor = self._model.begin(op)
        began, oracle = self._sim.now, self._oracle
        told = ZERO if oracle is None else oracle.greatest
        try:
            at = await writing
        except OracleAway:
            self._model.refuse(op)
            self._check_refused()
            raise
        except REFUSED:
            self._model.refuse(op)
            raise
        self._model.acknowledge(op, at, floor)
        self._counts[op.kind.value] += 1
        if at is not None and oracle is not None and not self._model.frozen:
            assert at >= told, f"{op} at {at} lies below the oracle's {told}"
            assert oracle.good_at is not None, f"{op} was written before the oracle answered"
            age = began - oracle.good_at
            assert age <= OUTAGE_SECONDS_MAX, f"{op} was written {age} s after the last answer"
            self._counts["written in an outage"] += age > ASK_SECONDS

    def _check_refused(self) -> None:
        assert self._oracle is not None
        good_at = self._oracle.good_at
        assert good_at is None or self._sim.now - good_at > OUTAGE_SECONDS_MAX, "refused in vain"
        when = "before the first answer" if good_at is None else "in a long outage"
        self._counts[f"refused {when}"] += 1

    async def _put(self) -> None:
        keyspace, name = self._some()
        ttl, value = self._ttl(), self._model.new_value()
        op = Op(kind=OpKind.PUT, keyspace=keyspace.id, pairs={name: value}, ttl=ttl)
        await self._write(op, keyspace.put(name, value, ttl_seconds=ttl))

    async def _put_many(self) -> None:
        keyspace, _ = self._some()
        pairs = {self._some()[1]: self._model.new_value() for _ in range(3)}
        op = Op(kind=OpKind.PUT, keyspace=keyspace.id, pairs=pairs)
        await self._write(op, keyspace.put_many(list(pairs.items())))

    async def _delete(self) -> None:
        keyspace, name = self._some()
        op = Op(kind=OpKind.DELETE, keyspace=keyspace.id, pairs={name: b""})
        await self._write(op, keyspace.delete(name))

    async def _swap(self) -> None:
        keyspace, name = self._some()
        expected = await keyspace.get(name)
        value = self._random.choice((None, self._model.new_value()))
        op = Op(kind=OpKind.SWAP, keyspace=keyspace.id, pairs={name: value}, expected=expected)

        async def swap() -> Timestamp | None:
            found = await keyspace.compare_and_swap(name, expected=expected, value=value)
            assert found.swapped == (found.previous == expected), found
            return found.timestamp

        await self._write(op, swap())

    async def _delete_range(self) -> None:
        keyspace, _ = self._some()
        start, end = sorted((self._some()[1], self._some()[1]))
        op = Op(kind=OpKind.DELETE_RANGE, keyspace=keyspace.id, pairs={}, start=start, end=end)

        async def delete() -> Timestamp | None:
            found = await keyspace.delete_range(start, end)
            op.count = found.count
            return found.timestamp

        await self._write(op, delete())

    async def _get(self) -> None:
        keyspace, name = self._some()
        before = await self._store.now()
        value = await keyspace.get(name)
        self._model.saw_between(keyspace.id, name, value, before, await self._store.now())

    async def _look_back(self) -> None:
        keyspace, name = self._some()
        ago = duration(seconds=self._random.random())
        at = Timestamp(max(self._store.clock.last - ago, 1))
        value = await keyspace.get(name, at=at)
        self._model.saw(Seen(keyspace.id, at, name, name + b"\x00", _row(name, value)))

    async def _scan(self) -> None:
        keyspace, _ = self._some()
        start, end = sorted((self._some()[1], self._some()[1]))
        at = await self._store.now()
        rows = {k: v async for pairs in keyspace.scan(start, end, at=at) for k, v in pairs}
        self._model.saw(Seen(keyspace.id, at, start, end, rows))


def _row(name: bytes, value: bytes | None) -> dict[bytes, bytes]:
    return {} if value is None else {name: value}


class RawRun:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulation(seed)
        self.random = self.sim.random
        self.machine = Machine(self.sim)
        self.model = RawModel()
        self.oracle = RunOracle(self.sim) if self.random.random() < 0.5 else None
        self.counts: Counter[str] = Counter()
        self.followers: list[RawFollower] = []
        self.crash_count = 0
        self.watches: list[OracleWatch] = []

    def run(self) -> RawOutcome:
        lives = self.random.randint(1, LIVES_MAX)
        with patch.object(collection, "SLICE_ENTRIES", self.random.choice((2, 500))):
            for life in range(lives):
                self.sim.run(self._live(first=life == 0, last=life == lives - 1))
        self.model.tell_history()
        for follower in self.followers:
            follower.finish()
        return RawOutcome(
            writes=len(self.model.done),
            reads=self.model.read_count,
            crashes=self.crash_count,
            counts=self.counts,
        )

    async def _live(self, *, first: bool, last: bool) -> None:
        store = await self.machine.start(self._settings(), await self._physical())
        if not first:
            self.model.adopt(self._versions())
            self._judge(store)
        self._follow(store)
        following = [asyncio.create_task(each.follow(store)) for each in self.followers]
        stop = asyncio.Event()
        clients = RawClients(self, store)
        nemeses = RawNemeses(self, store)
        works = [clients.work(stop) for _ in range(self.random.randint(2, 5))]
        tasks = [asyncio.create_task(work) for work in (*works, nemeses.strike(stop))]
        if last:
            await asyncio.sleep(self.random.random() * 2)
            stop.set()
            await asyncio.gather(*tasks)
            await self._settle(store, following)
            self._judge(store)
            await _end(following)
            await store.close()
        else:
            await self._until_crash([*tasks, *following])
            self.machine.bring_back()
        while self.watches:
            await self.watches.pop().close()

    async def _physical(self) -> OracleTime | None:
        """The time of a store that starts: its oracle may be away then."""
        if self.oracle is None:
            return None
        self.oracle.begin(away=self.random.random() < 0.4)
        time = OracleTime("oracle", self.machine.sim.wall)
        watch = OracleWatch(time, self.oracle.now, self.machine.metrics)
        await watch.start()
        self.watches.append(watch)
        asyncio.get_running_loop().call_later(self.random.random(), self.oracle.come_back)
        return time

    def _settings(self) -> Settings:
        choice = self.random.choice
        return Settings(
            {
                "kv.engine.flush_bytes": choice(("500", "100000000")),
                "kv.rangefeed.buffer_bytes": choice(("300", "67108864")),
                "kv.raw.start_window": "100ms",
                "kv.raw.deleted_ttl": f"{DELETED_TTL}s",
            }
        )

    def _follow(self, store: Store) -> None:
        spans = self.random.choice((SPANS, SPANS[:1], SPANS[1:]))
        # What was there may have been collected, and when it was nobody remembers.
        starts = [(span, max(store.gc_threshold, store.clock.last)) for span in spans]
        follower = RawFollower(
            cast(KVModel, self.model), self.random, self.counts, starts,
            protected=self.random.random() < 0.5,
        )  # fmt: skip
        self.followers.append(follower)

    async def _until_crash(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        dead = asyncio.Event()

        def die() -> None:
            self.model.frozen = True
            dead.set()

        self.machine.plan_crash(self.random.randint(1, 300), die)
        try:
            async with asyncio.timeout(self.random.choice((0.05, 0.5, 3.0))):
                await dead.wait()
        except TimeoutError:
            self.machine.crash()
            die()
        self.crash_count += 1
        self.machine.check_running()
        for task in tasks:
            if task.done():
                await task  # it failed before the process died
        await _end(tasks)

    async def _settle(self, store: Store, following: Sequence[asyncio.Task[None]]) -> None:
        """Nobody writes: every follower comes to the present."""
        end = store.clock.now()
        async with asyncio.timeout(SETTLE_SECONDS):
            while any(each.resolved < end for each in self.followers):
                for task in following:
                    if task.done():
                        await task
                self.machine.check_running()
                await asyncio.sleep(0.02)

    def _versions(self) -> dict[tuple[bytes, Timestamp], bytes]:
        """Every version in the engine, read behind the store's back."""
        start = key_format.VERSION + key_format.RAW_KIND
        found: dict[tuple[bytes, Timestamp], bytes] = {}
        for engine_key, value in self.machine.engine.scan(start, prefix_end(start)):
            body = body_of(value)
            assert body is not None, "a deletion of a raw key is an entry"
            found[key_format.split_version_key(engine_key)] = body
        return found

    def _judge(self, store: Store) -> None:
        now = store.clock.now()
        self.model.judge(
            self._versions(), {id: store.gc_threshold_of(keyspace_span(id)) for id in (7, 8)}, now
        )
        store.check_invariants()


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def run_raw(seed: int) -> RawOutcome:
    """Runs a seed. Raises AssertionError, or whatever else went wrong."""
    return RawRun(seed).run()
