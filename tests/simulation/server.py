"""One life of a server: a store, two nodes on it, and a feed of one table into a mirror.

The first node runs the feed; the second writes rows and changes schemas. `World` is what outlives
the process: disk, mirror and what the job table would keep, and the oracles.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.live_leases import DescriptorLeased
from tailrace.catalog.values.column_types import Datum
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.changes import Form
from tailrace.changefeed.contract.options import ChangefeedOptions, SchemaFeedKind
from tailrace.changefeed.jobs.attempt import Destination, plan_tables, run_attempt
from tailrace.changefeed.jobs.services import ChangefeedServices
from tailrace.changefeed.pipeline.budget import FeedMemory
from tailrace.changefeed.pipeline.idle_pace import IdlePace
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.pipeline.shared_decoding import SharedDecoding
from tailrace.changefeed.sinks.protocol import FormedSink, SinkError, SinkProgress
from tailrace.changefeed.targets import FeedTarget, TableTarget
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.errors import Deadlock, LockTimeout, RetryableTransaction
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Evaluation
from tailrace.schemafeed import RangeFeedSchemaFeed
from tailrace.schemafeed.feed import SchemaFeed
from tests.harness.nodes import CatalogFixture, Node
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, open_store, reopen
from tests.simulation.feed_watch import FeedWatch, WatchedLeasingFeed, WatchedPolling, WatchedSink
from tests.simulation.mirrors import JOB_ID, Mirror, MirrorState
from tests.simulation.row_model import RowModel, read_history
from tests.simulation.version_model import VersionModel

REFUSED = (RetryableTransaction, LockTimeout, Deadlock)

SETTLE_SECONDS = 60.0
"""Far above every interval of the system: a feed that has not come so far by then stands still."""

SETTINGS = {
    "kv.engine.flush_bytes": "20000",  # so that the log is cut behind the engine, again and again
    "changefeed.experimental_poll_interval": "300ms",
}


class World:
    """What outlives the process, and what is known about it."""

    def __init__(self, sim: Simulation, mirror: Mirror, *, schema_changes: bool) -> None:
        self.sim = sim
        self.mirror = mirror
        # Beside that of the run: with many it checkpoints every four seconds.
        self.idle_feeds = 200 if sim.seed % 2 else 0
        self.schema_changes = schema_changes
        self.rows = RowModel()
        self.versions = VersionModel()
        self.watch = FeedWatch(self.rows, self.versions)
        self.scan_at = ZERO
        self.watched_from = ZERO
        """What was delivered at or below it, nobody watched."""
        self.written_under: dict[Timestamp, int] = {}
        """The version by which each transaction's writer encoded it."""
        self.observed: list[MirrorState] = []
        """What readers saw since the last judgement, in order."""
        self._newest_seen: dict[Datum, Timestamp] = {}
        self.known: SinkProgress | None = None
        self.epoch = 0
        self.life = 0
        self.written = 0
        self.crash_count = 0

    @property
    def table_id(self) -> int:
        return self.versions.last.id

    def judge(self) -> None:
        """The oracles know everything up to now: what writers and the feed did was right."""
        for at, version in self.written_under.items():
            beyond = self.versions.published_at(version + 2)
            assert at < beyond, f"written at {at} under v{version}, v{version + 2} came at {beyond}"
        self.watch.check(max(self.scan_at, self.watched_from))
        for state in self.observed:
            self.check_mirror(state, quiet=False)
            if state.scan_complete:
                self._check_forward(state)
        self.observed = []

    def _check_forward(self, state: MirrorState) -> None:
        """No key goes back to what it was before: a deleted row least of all."""
        seen, codec = self._newest_seen, codec_for(self.versions.last)
        for name, (ts, _) in state.rows.items():
            assert ts >= seen.get(name, ZERO), f"{name!r} at {ts} came back, gone at {seen[name]}"
            seen[name] = ts
        for name in seen.keys() - state.rows.keys():
            gone_at = self.rows.deleted_from(codec.encode_key([name]), seen[name])
            assert gone_at is not None, f"{name!r}, seen at {seen[name]}, is lost"
            seen[name] = gone_at

    async def observe(self) -> None:
        """Reads the mirror as anybody may at any time."""
        state = await self.mirror.read(self.table_id)
        if not self.rows.frozen:
            self.observed.append(state)

    def crash(self, folder: Path) -> None:
        """The process dies in this step, and the machine with it."""
        for each in (self.rows, self.versions, self.watch):
            each.frozen = True
        crash(self.sim)
        self.mirror = self.mirror.crash(folder)
        self.crash_count += 1

    def check_mirror(self, state: MirrorState, *, quiet: bool) -> None:
        """All up to resolved is there, plus later single rows; at a quiet point nothing more."""
        table = self.versions.last
        expected = self.rows.rows_at(state.resolved)
        for key in expected.keys() | {codec_for(table).encode_key([k]) for k in state.rows}:
            name = codec_for(table).decode_key(key)[0]
            shown, due = state.rows.get(name), expected.get(key)
            if shown == self._shown(key, due):
                continue
            assert not quiet, f"{name!r}: {shown}, not {due!r}"
            if shown is None:
                assert self.rows.newer(key, state.resolved), f"{name!r}: {due!r} is lost"
            else:
                self._check_ahead(key, shown, state)

    def _check_ahead(
        self, key: bytes, shown: tuple[Timestamp, tuple[Datum, ...]], state: MirrorState
    ) -> None:
        """A row above resolved, or one of a scan under way: as it was committed."""
        ts = shown[0]
        assert ts > state.resolved, f"{key!r} at {ts} came back, resolved {state.resolved}"
        assert ts == self.scan_at or ts in self.rows.commits, f"{key!r} at {ts} is not committed"
        due = self.rows.rows_at(ts).get(key)
        assert shown == self._shown(key, due), (shown, due)

    def _shown(
        self, key: bytes, due: tuple[Timestamp, bytes] | None
    ) -> tuple[Timestamp, tuple[Datum, ...]] | None:
        """A row as the mirror shows it: a scanned one bears the scan's timestamp."""
        if due is None:
            return None
        ts = max(due[0], self.scan_at)
        return ts, codec_for(self.versions.canonical_at(ts)).decode_row(key, due[1])


@dataclass
class _Services:
    """The feed's services, with schema feeds that are watched."""

    store: Store
    descriptors: Any
    leases: Any
    watch: FeedWatch
    pace: IdlePace
    decoding: SharedDecoding = field(default_factory=SharedDecoding)
    memory: FeedMemory = field(default_factory=FeedMemory)

    def target(self, table_id: int, keyspace: None = None) -> FeedTarget:
        return TableTarget(table_id, self.descriptors)

    def schema_feed(self, kind: SchemaFeedKind | None = None) -> SchemaFeed:
        if kind is SchemaFeedKind.RANGEFEED:
            return RangeFeedSchemaFeed(self.store, self.descriptors, self.leases)
        polling = WatchedPolling(self.store, self.descriptors, self.leases)
        if kind is SchemaFeedKind.POLLING:
            return polling
        return WatchedLeasingFeed(self.leases, polling, self.watch)


class Server:
    """The parts of one process."""

    def __init__(self, world: World, catalog: CatalogFixture, nodes: list[Node]) -> None:
        self.world = world
        self.catalog = catalog
        self.store = catalog.store
        self.feed_node, self.sql_node = nodes
        self.live = LiveFeed(JOB_ID)
        self.schema_feed = SchemaFeedKind.LEASING
        self.slowest_sink = 0.0
        self.sink_failures = 0.0
        self._feed: asyncio.Task[None]

    # The feed

    def start_feed(self) -> None:
        self._feed = asyncio.create_task(self._run_feed(), name="feed")

    async def stop_feed(self) -> None:
        """Raises what has ended the feed by itself before."""
        if self._feed.done():
            await self._feed
        while not self._feed.done():
            # An attempt that fails in the same step ends in its failure, and another begins.
            self._feed.cancel()
            await asyncio.wait([self._feed], timeout=1.0)

    async def _run_feed(self) -> None:
        """Attempt after attempt, each under an epoch of its own, as the job registry does it."""
        while True:
            try:
                await self._attempt()
            except (SinkError, *REFUSED):
                await asyncio.sleep(0.05)

    async def _attempt(self) -> None:
        world = self.world
        world.epoch += 1
        inner = world.mirror.sink(self.store, world.sim, world.epoch)
        sink = WatchedSink(inner, world.watch, world.sim, observe=world.observe)
        sink.slowest, sink.fail_chance = self.slowest_sink, self.sink_failures
        services = _Services(
            self.store, self.catalog.descriptors, self.feed_node.leases, world.watch, IdlePace()
        )
        for _ in range(world.idle_feeds):
            services.pace.enter()
        await run_attempt(
            cast(ChangefeedServices, services),
            plan_tables(
                cast(ChangefeedServices, services),
                [world.table_id],
                start_at=world.scan_at,
                options=ChangefeedOptions(schema_feed=self.schema_feed),
            ),
            Destination(
                sink=sink,
                transactional=True,
                form=inner.form if isinstance(inner, FormedSink) else Form.COLUMNS,
                follows_schema=True,
                known=world.known,
                save=self._save,
            ),
            self.live,
        )

    async def _save(self, progress: SinkProgress) -> None:
        if not self.world.rows.frozen:
            self.world.known = progress

    # The SQL node

    async def write(self, rows: Mapping[int, str | None], *, seconds: float | None = None) -> bool:
        """One transaction: upserts, and deletions for None. With `seconds`, an explicit one that
        takes as long. Says whether it committed."""
        try:
            lease = await self.sql_node.leases.acquire(self.world.table_id, self.store.clock.now())
        except (SQLError, *REFUSED):
            await asyncio.sleep(0.1)
            return False
        model = self.world.rows
        writes = _encode(lease.descriptor, rows)
        ticket = model.submit(writes)
        try:
            at = await self._commit(writes, lease.deadline, seconds)
        except REFUSED:
            model.abort(ticket)
            return False
        finally:
            lease.release()
        model.commit(ticket, at)
        if not model.frozen:
            self.world.written_under[at] = lease.descriptor.version
        return True

    async def _commit(
        self, writes: Mapping[bytes, bytes | None], deadline: Any, seconds: float | None
    ) -> Timestamp:
        puts = {key: body for key, body in writes.items() if body is not None}
        gone = [key for key in writes if key not in puts]
        if seconds is None:

            def evaluate(evaluation: Evaluation) -> None:
                evaluation.put(list(puts), list(puts.values()))
                evaluation.delete(gone)

            _, at = await self.store.one_phase(evaluate, deadline=deadline)
            return at
        transaction = self.store.begin(lock_timeout=1.0)
        try:
            await transaction.put(list(puts), list(puts.values()))
            await asyncio.sleep(seconds)
            await transaction.delete(gone)
            return await transaction.commit(deadline=deadline)
        except REFUSED:
            await transaction.rollback()
            raise

    async def publish(self, **changes: Any) -> None:
        """The table's next version, as a DDL statement does it: its own lease goes first."""
        versions = self.world.versions
        while True:
            try:
                changed = await self.catalog.publish(versions.last.id, **changes)
            except (DescriptorLeased, *REFUSED):
                await asyncio.sleep(0.02)
            else:
                versions.note(changed)
                return

    async def add_column(self) -> None:
        last = self.world.versions.last
        column = replace(
            last.columns[1],
            id=last.next_column_id,
            name=f"x{last.next_column_id}",
            missing=f"missing {last.next_column_id}",
        )
        await self.publish(columns=(*last.columns, column), next_column_id=last.next_column_id + 1)

    # Judgement

    async def _wait_for_feed(self, at: Timestamp) -> None:
        arrival = asyncio.create_task(self.live.wait_until(at))
        tasks = [arrival, self._feed]
        await asyncio.wait(tasks, timeout=SETTLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if self._feed.done():
            await self._feed
        assert arrival.done(), f"the feed stands still: {self.live.state} at {self.live.resolved}"

    async def settle(self) -> None:
        """A quiet point: nobody writes. The mirror comes to equal the source, and all is judged.

        Attempts that begin now have a sink that is well: one that fails every tenth flush would
        keep a catch-up of hundreds of small ones from ever ending.
        """
        world = self.world
        failures, self.sink_failures = self.sink_failures, 0.0
        await self._wait_for_feed(self.store.clock.now())
        self.sink_failures = failures
        state = await world.mirror.read(world.table_id)
        assert state.resolved >= world.rows.last, (state.resolved, world.rows.last)
        assert state.scan_complete
        world.judge()
        world.check_mirror(state, quiet=True)
        self.feed_node.leases.check_invariants()
        self.sql_node.leases.check_invariants()
        self.store.check_invariants()


def _encode(table: TableDescriptor, rows: Mapping[int, str | None]) -> dict[bytes, bytes | None]:
    """Every column but the key holds the text."""
    codec = codec_for(table)
    width = len(table.columns) - 1
    return {
        codec.encode_key([k]): None if text is None else codec.encode_row((k, *[text] * width))[1]
        for k, text in rows.items()
    }


@asynccontextmanager
async def start_server(world: World) -> AsyncIterator[Server]:
    """Starts, or recovers and compares with the oracles; ends in order where nobody crashed it."""
    sim = world.sim
    world.life += 1
    opening = reopen if world.life > 1 else open_store
    store = await opening(sim, settings=Settings(SETTINGS))
    if world.life == 1:
        await bootstrap(store)
    catalog = CatalogFixture(store)
    if world.life == 1:
        world.versions.note(await catalog.create(locked=sim.random.random() < 0.5))
    else:
        await _compare_with_oracles(world, store, catalog)
    world.mirror.begin(sim)
    nodes = [Node(catalog, node_id) for node_id in (1, 2)]
    for node in nodes:
        await node.start()
    server = Server(world, catalog, nodes)
    yield server
    if world.rows.frozen:
        return
    for node in nodes:
        await node.close()
    store.check_invariants()
    await store.close()


async def _compare_with_oracles(world: World, store: Store, catalog: CatalogFixture) -> None:
    """What was acknowledged is there, what was in doubt is whole or absent, and what the mirror
    shows was durable."""
    above = max(world.rows.last, world.versions.last.modification_time)
    table_id = world.table_id
    found = await catalog.descriptors.versions([table_id], ZERO, store.clock.now())
    world.versions.adopt(each for each in found if isinstance(each, TableDescriptor))
    world.rows.adopt(await read_history(store, world.versions.last.primary_span))
    world.watch.frozen = False
    assert store.clock.now() > above
    world.check_mirror(world.mirror.look(table_id), quiet=False)
    world.judge()
