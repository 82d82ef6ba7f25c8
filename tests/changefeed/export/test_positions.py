"""Positions of readers that come back, on a simulated store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.descriptors.system_tables import DESCRIPTOR, NAMESPACE
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.export import NextBatch, Positions, PositionUnknown
from tailrace.changefeed.export.position import RESOLVE_SECONDS
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps, ProtectionRefused
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

AGE_SECONDS = 10.0


class Reader:
    """A reader of table `t`, and its position."""

    def __init__(self, node: SqlNode, positions: Positions, table: TableDescriptor) -> None:
        self.node = node
        self.positions = positions
        self.table = table
        self.id = b""
        self.at = Timestamp(0)

    async def begin(self) -> None:
        self.at = self.now()
        self.id = await self.positions.create(self.table, self.at)

    async def next(self) -> NextBatch:
        found = await self.positions.next(self.table.id, self.at)
        self.at = found.upto
        return found

    def now(self) -> Timestamp:
        return self.node.store.clock.now()

    async def write(self, text: str) -> Timestamp:
        result = await self.node.sql(text)
        assert result.commit_timestamp is not None
        return result.commit_timestamp

    async def collect(self, threshold: Timestamp) -> Timestamp:
        """What the table's threshold is after a collection up to `threshold`."""
        span = self.table.primary_span
        await self.node.store.collect_garbage(span, threshold)
        return self.node.store.gc_threshold_of(span)


def run(scenario: Callable[[Reader], Awaitable[None]]) -> None:
    """A reader that has begun, on a table of two columns."""
    sim = Simulation(seed=11)

    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            protections = ProtectedTimestamps(
                node.store, always=[DESCRIPTOR.primary_span, NAMESPACE.primary_span]
            )
            descriptors = node.services.catalog.descriptors
            positions = Positions(node.store, descriptors, protections, max_age_seconds=AGE_SECONDS)
            reader = node.store.snapshot(node.store.clock.now())
            [table] = await node.services.catalog.list_tables(reader, "defaultdb")
            found = Reader(node, positions, table)
            await found.begin()
            await scenario(found)

    sim.run(whole())


def test_position_says_whose_it_is_and_where_it_stands() -> None:
    async def scenario(reader: Reader) -> None:
        assert await reader.positions.find(reader.id) == (reader.table.id, reader.at)
        await reader.positions.advance(reader.id, Timestamp(reader.at + 5))
        assert await reader.positions.find(reader.id) == (reader.table.id, reader.at + 5)
        await reader.positions.advance(reader.id, reader.at)
        assert await reader.positions.find(reader.id) == (reader.table.id, reader.at + 5)

    run(scenario)


def test_unread_versions_are_kept_until_they_are_read() -> None:
    async def scenario(reader: Reader) -> None:
        start = reader.at
        await reader.write("INSERT INTO t VALUES (1, 'a')")
        await reader.write("UPDATE t SET v = 'b' WHERE k = 1")
        assert await reader.collect(reader.now()) < start
        upto = (await reader.next()).upto
        await reader.positions.advance(reader.id, upto)
        assert start < await reader.collect(reader.now()) < upto

    run(scenario)


def test_next_is_resolved_for_good() -> None:
    """Whatever is committed later is committed above; and an open transaction holds it back."""

    async def scenario(reader: Reader) -> None:
        for number in range(20):
            found = await reader.next()
            at = await reader.write(f"UPSERT INTO t VALUES ({number % 3}, 'x')")
            assert found.upto < at
        other = reader.node.session()
        await other.execute("BEGIN")
        await other.execute("UPSERT INTO t VALUES (1, 'open')")
        before = (await reader.next()).upto
        [*_, done] = await other.execute("COMMIT")
        assert done.commit_timestamp is not None
        assert before < done.commit_timestamp
        await other.close()
        while not (found := await reader.next()).changed or found.upto < done.commit_timestamp:
            pass

    run(scenario)


def test_next_says_whether_anything_changed() -> None:
    async def scenario(reader: Reader) -> None:
        assert (await reader.next()).changed is False
        at = await reader.write("INSERT INTO t VALUES (1, 'a')")
        found = await reader.next()
        assert (found.changed, found.upto >= at) == (True, True)

    run(scenario)


def test_next_never_crosses_a_schema_change() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.write("INSERT INTO t VALUES (1, 'a')")
        await reader.node.sql("ALTER TABLE t ADD COLUMN w INT8 NOT NULL DEFAULT 7")
        await reader.write("INSERT INTO t VALUES (2, 'b', 8)")
        await reader.node.sql("ALTER TABLE t DROP COLUMN v")
        end = await reader.write("INSERT INTO t VALUES (3, 9)")
        seen: list[tuple[str, ...]] = []
        while reader.at < end:
            start = reader.at
            found = await reader.next()
            names = tuple(column.name for column in found.descriptor.visible_columns)
            await reader.positions.check_interval(found.descriptor, found.upto)
            assert found.upto > start
            if not seen or seen[-1] != names:
                seen.append(names)
        assert seen == [("k", "v"), ("k", "v", "w"), ("k", "w")]

    run(scenario)


def test_reader_that_waits_for_versions_is_sent_past_schema_changes() -> None:
    """An empty interval that a schema change ends is one to go through, not to wait in."""

    async def scenario(reader: Reader) -> None:
        await reader.node.sql("ALTER TABLE t ADD COLUMN w INT8 NOT NULL DEFAULT 7")
        await reader.node.sql("ALTER TABLE t ALTER COLUMN w DROP NOT NULL")
        end = await reader.write("INSERT INTO t VALUES (1, 'a', 8)")
        for _ in range(10):
            found = await reader.positions.next(reader.table.id, reader.at)
            if found.changed:
                reader.at = found.upto
        assert reader.at >= end

    run(scenario)


def test_changes_that_readers_do_not_see_are_crossed() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.node.sql("ALTER TABLE t SET (changefeed_optimized = true)")
        await reader.node.sql("CREATE INDEX ON t (v)")
        end = reader.now()
        assert (await reader.next()).upto >= end

    run(scenario)


def test_dropped_table_is_read_to_its_end() -> None:
    async def scenario(reader: Reader) -> None:
        last = await reader.write("INSERT INTO t VALUES (1, 'a')")
        await reader.node.sql("DROP TABLE t")
        assert (await reader.next()).upto >= last
        with pytest.raises(SQLError) as caught:
            await reader.next()
        assert caught.value.sqlstate == "42P01"

    run(scenario)


def test_next_gives_up_waiting_but_not_the_place() -> None:
    """A reader ahead of the clock is answered with its own timestamp, and in time."""

    async def scenario(reader: Reader) -> None:
        loop = asyncio.get_running_loop()
        ahead = Timestamp(reader.now() + duration(seconds=3600))
        began = loop.time()
        found = await reader.positions.next(reader.table.id, ahead)
        assert (found.upto, found.changed) == (ahead, False)
        assert loop.time() - began <= RESOLVE_SECONDS + 1

    run(scenario)


def test_reader_that_stays_away_loses_its_position() -> None:
    async def scenario(reader: Reader) -> None:
        await asyncio.sleep(AGE_SECONDS - 1)
        await reader.positions.advance(reader.id, Timestamp(reader.at + 1))
        await asyncio.sleep(AGE_SECONDS - 1)
        assert (await reader.positions.find(reader.id))[1] == reader.at + 1
        await asyncio.sleep(2)
        for asked in (
            reader.positions.find(reader.id),
            reader.positions.advance(reader.id, reader.now()),
        ):
            with pytest.raises(PositionUnknown, match="too long"):
                await asked
        assert await reader.collect(reader.now()) > reader.at

    run(scenario)


def test_positions_of_lost_readers_are_swept() -> None:
    async def scenario(reader: Reader) -> None:
        protections = ProtectedTimestamps(reader.node.store)
        await asyncio.sleep(AGE_SECONDS + 1)
        old = reader.id
        await reader.begin()
        kept = await protections.read_all(reader.node.store.snapshot(reader.now()))
        assert [record.id for record in kept] == [reader.id] != [old]

    run(scenario)


def test_released_position_is_unknown() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.positions.release(reader.id)
        await reader.positions.release(reader.id)
        with pytest.raises(PositionUnknown, match=reader.id.hex()):
            await reader.positions.find(reader.id)

    run(scenario)


def test_collected_timestamps_are_refused() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.positions.release(reader.id)
        threshold = await reader.collect(reader.now())
        with pytest.raises(ProtectionRefused):
            await reader.positions.create(reader.table, threshold)

    run(scenario)
