"""A keyspace and its replica in another store, under random load and misfortune.

    outcome = run_replica(seed)

Clients write in the main. Captures follow it, each a task of the replication, and send over a link
that loses requests before or after they are carried out, and delivers some of them late. Main,
captures and recovery die and come back; the tasks are cut anew, which the captures hear of one by
one; ranges of both are split and merged; garbage is collected in the recovery. In the end the main
dies for good, and the replica is promoted.

The model is what the clients were answered. At every checkpoint the replica has to hold exactly the
versions of the model up to there, at their timestamps; and what is written after the promotion is
newer than all of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.descriptors.keyspace import Keyspace
from tailrace.catalog.store.catalog import KEYSPACE_COLUMNS
from tailrace.changefeed.contract.changes import ChangeBatch, Form, StageTimes
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.pipeline.decode import decode
from tailrace.changefeed.sinks.protocol import (
    FeedIdentity,
    SinkContext,
    SinkError,
    SinkProgress,
    SinkRefused,
    TaskKeys,
)
from tailrace.changefeed.sinks.tailrace import ReplicaKind, ReplicaTarget, Reply
from tailrace.changefeed.sinks.tailrace.requests import Opening
from tailrace.changefeed.sinks.tailrace.transport import TransportBroken
from tailrace.changefeed.targets import Versions
from tailrace.kvlayer import keys as key_format
from tailrace.kvlayer.clock import ZERO, Clock, MemoryBoundStore, PhysicalTime, Timestamp
from tailrace.kvlayer.engine import MemoryEngine
from tailrace.kvlayer.errors import KVError
from tailrace.kvlayer.events import ValueBatch
from tailrace.kvlayer.frontier import part_of
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.mvcc import body_of
from tailrace.kvlayer.raw import (
    RawKeyspace,
    ReplicaKeyspace,
    dead_at,
    decode_entry,
    keyspace_part,
    keyspace_span,
    raw_key,
)
from tailrace.kvlayer.replication.replica import Begin, End, Ingest, Look, ReplicaRefused
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tests.harness.sim_disk import SimDisk
from tests.harness.simulation import Simulation

ID = 7
SPAN = keyspace_span(ID)
NAMES = [b"a", b"b", b"bb", b"m", b"z"]
CAPTURES_MAX = 3
SETTLE_SECONDS = 120.0

Stored = dict[tuple[bytes, Timestamp], bytes]
"""Entries by key and timestamp."""


class SimStore:
    """A store that dies and comes back, on a disk of its own."""

    def __init__(
        self,
        sim: Simulation,
        name: str,
        time: Callable[[], Awaitable[PhysicalTime]] | None = None,
    ) -> None:
        """Each life's time is what `time` returns; without it, the wall's."""
        self.sim = sim
        self.name = name
        self._time = time
        self.disk = SimDisk(Random(f"{sim.seed}:{name}"))
        self.engine = MemoryEngine()
        self.bounds = MemoryBoundStore()
        self.lives = 0
        self.down = False
        self.store: Store

    async def start(self) -> None:
        engine = self.engine.crashed()
        self.store = await Store.start(
            disk=self.disk,
            engine=engine,
            clock=Clock(
                self.sim.wall, self.bounds, None if self._time is None else await self._time()
            ),
            offload=self.sim.offload,
            settings=Settings(),
            metrics=Metrics(),
            random=Random(f"{self.sim.seed}:{self.name}:{self.lives}"),
        )
        self.engine = engine
        self.lives += 1

    async def die(self) -> None:
        """What was not durable is gone; the store is up again when the call returns."""
        dead = self.store
        self.lives += 1
        self.down = True
        self.disk = self.disk.crash()
        self.bounds = MemoryBoundStore(self.bounds.load())  # the dead clock closes the other one
        dead.fail(OSError("the process died"))
        await self.start()
        self.down = False
        await dead.close()  # of a process that is dead, what it holds of the simulation goes

    def stored(self) -> Stored:
        """Every version in the engine, read behind the store's back."""
        start = key_format.VERSION + SPAN.start
        found: Stored = {}
        for engine_key, value in self.engine.scan(start, key_format.VERSION + SPAN.end):
            body = body_of(value)
            assert body is not None, "a deletion of a raw key is an entry"
            found[key_format.split_version_key(engine_key)] = body
        return found


class Link:
    """Implements `Transport` over a link that loses and delays. Requests outlive who asked."""

    def __init__(self, run: ReplicaRun) -> None:
        self._run = run

    async def post(
        self, path: str, body: bytes, *, media_type: str = "", seconds: float = 0.0
    ) -> Reply:
        run, random = self._run, self._run.random
        await asyncio.sleep(random.random() * 0.01)
        if run.cut or random.random() < 0.05:
            raise TransportBroken("lost on the way there")
        asked = asyncio.create_task(self._ask(path, body))
        run.requests.add(asked)
        asked.add_done_callback(run.requests.discard)
        late = random.random() < 0.05
        life = run.recovery.lives
        try:
            reply = await asyncio.wait_for(asyncio.shield(asked), 0.001 if late else 5.0)
        except TimeoutError:
            run.counts["late requests"] += 1
            raise TransportBroken("no answer in time") from None
        if run.cut or life != run.recovery.lives or random.random() < 0.05:
            raise TransportBroken("lost on the way back")
        return reply

    async def _ask(self, path: str, body: bytes) -> Reply:
        run = self._run
        await asyncio.sleep(0.5 if run.random.random() < 0.03 else run.random.random() * 0.002)
        replica = ReplicaKeyspace(run.recovery.store, ID)
        try:
            if path.endswith("/open"):
                asked = msgspec.json.decode(body, type=Opening)
                state = await replica.open(asked.source, asked.task, asked.whole)
            else:
                order = msgspec.msgpack.decode(body, type=Ingest)
                run.counts["progress with entries"] += bool(order.keys and order.note)
                state = await replica.take(order)
        except ReplicaRefused as refused:
            run.note_refusal(str(refused))
            return Reply(400, msgspec.json.encode({"title": str(refused), "sqlstate": "55000"}))
        except KVError as error:
            return Reply(503, msgspec.json.encode({"title": str(error)}))
        answer = {
            "epoch": state.epoch,
            "resolved": state.resolved,
            "note": state.note,
            "taken": state.taken,
            "known": state.known,
        }
        run.counts["known entries"] += state.known
        return Reply(200, msgspec.json.encode(answer))

    async def get(self, path: str, parameters: Mapping[str, str]) -> Reply:
        raise AssertionError("nobody verifies in a simulation: the model does")

    async def close(self) -> None: ...


@dataclass(slots=True)
class ReplicaModel:
    """What the clients were answered, and what nobody answered."""

    stored: dict[tuple[bytes, Timestamp], bytes | None] = field(default_factory=dict)
    """The value put at a timestamp; None for a deletion."""
    unanswered: set[bytes] = field(default_factory=set)
    """Values that may have been put, at a time that nobody knows."""

    def judge(self, found: Stored, upto: Timestamp) -> None:
        """Raises AssertionError where a replica is not the model up to a checkpoint."""
        values = {}
        for place, body in found.items():
            entry = decode_entry(body)
            values[place] = None if entry.deleted else entry.value
            known = place in self.stored or values[place] is None
            assert known or values[place] in self.unanswered, (place, entry)
        missing = {place for place in self.stored if place[1] <= upto} - values.keys()
        assert not missing, f"the replica has resolved {upto} and lacks {min(missing)}"
        for place in values.keys() & self.stored.keys():
            assert values[place] == self.stored[place], place


class ReplicaRun:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulation(seed)
        self.random = self.sim.random
        self.main = SimStore(self.sim, "main")
        self.recovery = SimStore(self.sim, "recovery")
        self.model = ReplicaModel()
        self.counts: Counter[str] = Counter()
        self.requests: set[asyncio.Task[Reply]] = set()
        self.cut = False
        self.source = ""
        self.attempts: dict[int, asyncio.Task[None]] = {}
        """Of each capture."""
        self.borders = self._cut()
        self._numbers = iter(range(1, 1_000_000))
        self._descriptor = TableDescriptor(
            id=ID,
            name="ks",
            database_id=1,
            schema_id=1,
            columns=KEYSPACE_COLUMNS,
            primary_key=(KEYSPACE_COLUMNS[0].id,),
            next_column_id=len(KEYSPACE_COLUMNS) + 1,
            locked=True,
            keyspace=Keyspace(),
        )

    def run(self) -> Counter[str]:
        self.sim.run(self._run())
        return self.counts

    async def _run(self) -> None:
        await self.main.start()
        await self.recovery.start()
        await self.recovery.store.replica(SPAN, Begin())
        self.source = self.main.store.id
        stop = asyncio.Event()
        captures = [asyncio.create_task(self._capture(place)) for place in range(CAPTURES_MAX)]
        works = [self._write(stop), self._write(stop), self._strike(stop), self._watch(stop)]
        tasks = [asyncio.create_task(work) for work in works]
        await asyncio.sleep(self.random.uniform(0.5, 4.0))
        stop.set()
        await asyncio.gather(*tasks)
        self.cut = False
        if self.random.random() < 0.5:
            await self._settle(captures)
        await self._promote()
        for capture in captures:
            if capture.done():
                await capture
            capture.cancel()
        await asyncio.gather(*captures, *self.requests, return_exceptions=True)
        for each in (self.main, self.recovery):
            each.store.check_invariants()
            await each.store.close()

    # Load

    async def _write(self, stop: asyncio.Event) -> None:
        random = self.random
        while not stop.is_set():
            keyspace = RawKeyspace(self.main.store, ID)
            name = random.choice(NAMES)
            deletes = random.random() < 0.3
            value = b"" if deletes else b"%d" % next(self._numbers)
            if not deletes:
                self.model.unanswered.add(value)
            life = self.main.lives
            try:
                if deletes:
                    at = await keyspace.delete(name)
                else:
                    at = await keyspace.put(name, value, ttl_seconds=random.choice((None, 3600)))
            except KVError:
                self.counts["unanswered"] += 1
                await asyncio.sleep(0.01)
                continue
            if life == self.main.lives:
                self.model.stored[raw_key(ID, name), at] = None if deletes else value
                self.counts["writes"] += 1
            await asyncio.sleep(random.choice((0.0, 0.001, 0.02)))

    # The capture: a feed's pipeline, as far as a keyspace needs one.

    def _cut(self) -> list[bytes]:
        """Where one task ends and the next begins; there is one task at least."""
        count = self.random.randrange(CAPTURES_MAX)
        return sorted(self.random.sample(NAMES[1:], count))

    def _task(self, place: int) -> TaskKeys | None:
        """What a capture is to send, if anything."""
        borders = [b"", *self.borders, None]
        if place + 1 >= len(borders):
            return None
        start, end = borders[place : place + 2]
        return TaskKeys(own=(start or b"", end), whole=(b"", None))

    async def _capture(self, place: int) -> None:
        while True:
            task = self._task(place)
            if task is None:
                await asyncio.sleep(0.05)
                continue
            attempt = asyncio.create_task(self._attempt(task))
            self.attempts[place] = attempt
            seconds = self.random.choice((0.2, 1.0, 60.0))
            try:
                await asyncio.wait([attempt], timeout=seconds)
            finally:
                attempt.cancel()  # the capture dies, or has failed
                (outcome,) = await asyncio.gather(attempt, return_exceptions=True)
            if isinstance(outcome, Exception) and not isinstance(
                outcome, SinkError | SinkRefused | KVError
            ):
                raise outcome
            self.counts["attempts"] += 1
            await asyncio.sleep(0.01)

    async def _attempt(self, task: TaskKeys) -> None:
        store = self.main.store
        target = ReplicaTarget(
            host="recovery", port=1, keyspace="ks", user="root", password="", tls=False,
            concurrency=self.random.choice((1, 3)), batch_size=self.random.choice((3, 20, 500)),
            backoff_min=0.01, backoff_max=0.1,
        )  # fmt: skip
        kind = ReplicaKind(self.random, lambda _: Link(self))
        context = SinkContext(
            identity=FeedIdentity(store_id=self.source, job_id=1, epoch=1),
            position=lambda: store.position,
            clock=store.clock,
            offload=self.sim.offload,
            settings=store.settings,
            metrics=store.metrics,
            options=ChangefeedOptions(mvcc_timestamp=True),
            names={ID: "defaultdb.public.ks"},
            task=task if self.borders or self.counts["cut anew"] else None,
        )
        sink = kind.sink(target, context)
        try:
            stand = await sink.stand()
            if stand is not None:
                assert await store.holds(stand.position), stand
            span = keyspace_part(ID, *task.own)
            found = [] if stand is None else part_of(stand.progress.frontier, span)
            frontier = found or [(span, ZERO)]
            await sink.open([self._descriptor])
            feed = store.span_feed_from(frontier)
            try:
                while True:
                    for event in await feed.next():
                        if isinstance(event, ValueBatch):
                            sink.emit(self._changes(event))
                    await sink.flush(
                        SinkProgress(
                            frontier=tuple(feed.frontier.entries()),
                            resolved=feed.frontier.low_water,
                            scan_complete=True,
                        )
                    )
                    await asyncio.sleep(self.random.choice((0.0, 0.02)))
            finally:
                feed.close()
        finally:
            await sink.close()

    def _changes(self, batch: ValueBatch) -> ChangeBatch:
        versions = Versions([*batch.keys], [*batch.values], [*batch.timestamps])
        return decode(versions, self._descriptor, stages=StageTimes(), form=Form.STORED)

    # Misfortune

    async def _strike(self, stop: asyncio.Event) -> None:
        actions = [
            self._kill_main,
            self._kill_recovery,
            self._cut_link,
            self._reshape,
            self._collect,
            self._rebalance,
        ]
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 0.6)
            await self.random.choice(actions)()

    async def _kill_main(self) -> None:
        self.counts["main died"] += 1
        for attempt in self.attempts.values():
            attempt.cancel()  # it runs in that process
        await self.main.die()

    async def _kill_recovery(self) -> None:
        self.counts["recovery died"] += 1
        await self.recovery.die()

    async def _rebalance(self) -> None:
        """Captures go on as they were until their attempts end, or another takes their keys."""
        self.counts["cut anew"] += 1
        self.borders = self._cut()

    async def _cut_link(self) -> None:
        self.counts["cuts"] += 1
        self.cut = True
        await asyncio.sleep(self.random.random())
        self.cut = False

    async def _reshape(self) -> None:
        store = self.random.choice((self.main, self.recovery)).store
        await store.split(raw_key(ID, self.random.choice(NAMES)), sticky_until=ZERO)
        await store._range_queue.look()
        self.counts["reshaped"] += 1

    async def _collect(self) -> None:
        store = self.recovery.store
        await store.collect_garbage(SPAN, Timestamp(1), dead_at=dead_at)
        self.counts["collections"] += 1

    def note_refusal(self, words: str) -> None:
        fine = ("is over", "was promoted")
        assert any(each in words for each in fine), f"the replica refused its source: {words}"
        self.counts["stale epochs"] += "is over" in words

    # Judgement

    async def _watch(self, stop: asyncio.Event) -> None:
        resolved = ZERO
        while not stop.is_set():
            life = self.recovery.lives
            state = await self.recovery.store.replica(SPAN, Look())
            assert state is not None
            found = self.recovery.stored()
            if life == self.recovery.lives:
                assert state.resolved >= resolved, (state, resolved)
                resolved = state.resolved
                self.model.judge(found, state.resolved)
                self.counts["checkpoints"] += 1
            await asyncio.sleep(0.03)

    async def _settle(self, captures: Sequence[asyncio.Task[None]]) -> None:
        end = await self.main.store.now()
        async with asyncio.timeout(SETTLE_SECONDS):
            while True:
                for capture in captures:
                    if capture.done():
                        await capture
                state = await self.recovery.store.replica(SPAN, Look())
                if state is not None and state.resolved >= end:
                    break
                await asyncio.sleep(0.05)
        assert self.recovery.stored() == self.main.stored()
        self.counts["settled"] += 1

    async def _promote(self) -> None:
        store = self.recovery.store
        ended = await store.replica(SPAN, End())
        assert ended is not None
        found = self.recovery.stored()
        self.model.judge(found, ended.resolved)
        newest = max((at for _, at in found), default=ZERO)
        keyspace = RawKeyspace(store, ID)
        for name in NAMES:
            assert await keyspace.put(name, b"after") > newest
            assert await keyspace.get(name) == b"after"
        self.counts["promotions"] += 1


def run_replica(seed: int) -> Counter[str]:
    """Runs a seed; what happened in it. Raises AssertionError, or whatever else went wrong."""
    return ReplicaRun(seed).run()
