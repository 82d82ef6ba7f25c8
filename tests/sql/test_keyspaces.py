"""Raw keyspaces in SQL: the statements, and the calls that read and write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal

import pytest

from tailrace.catalog.store.garbage_collector import GarbageCollector
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer import keys as key_format
from tailrace.kvlayer.clock import ZERO, format_timestamp
from tailrace.kvlayer.raw import IngestedEntry, ReplicaKeyspace, keyspace_span
from tailrace.kvlayer.replication.replica import Begin, Drain, Follow, Reclaim, source_of
from tailrace.sql.results.results import Row
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE KEYSPACE ks")
            await scenario(node)

    sim.run(main())


async def call(node: SqlNode, text: str) -> object:
    (row,) = (await node.sql(f"SELECT {text}")).fetch_rows()
    return row[0] if len(row) == 1 else row


async def refused(node: SqlNode, text: str) -> SQLError:
    with pytest.raises(SQLError) as caught:
        await node.sql(text)
    return caught.value


def test_calls_read_and_write() -> None:
    async def scenario(node: SqlNode) -> None:
        first = await call(node, "raw_put('ks', 'k', '1')")
        second = await call(node, r"raw_put('ks', '\x6b', '\xff00')")
        assert isinstance(first, Decimal)
        assert isinstance(second, Decimal)
        assert first < second
        assert await call(node, "raw_get('public.ks', 'k')") == b"\xff\x00"
        assert await call(node, "raw_get('ks', 'other')") is None
        assert await call(node, "raw_get(NULL, 'k')") is None
        assert await call(node, "raw_cas('ks', 'k', '1', '2')") is False
        assert await call(node, "raw_cas('ks', 'k', NULL, '2')") is False
        assert await call(node, r"raw_cas('ks', 'k', '\xff00', NULL)") is True
        assert await call(node, "raw_get('ks', 'k')") is None
        await call(node, "raw_put('ks', 'k', '3')")
        await call(node, "raw_delete('ks', 'k')")
        assert await call(node, "raw_get('ks', 'k')") is None

    run(scenario)


def test_calls_are_made_for_each_row() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (k STRING PRIMARY KEY, v STRING)")
        await node.sql("INSERT INTO t VALUES ('a', '1'), ('b', '2'), ('c', '3')")
        await node.sql("SELECT raw_put('ks', k::BYTES, v::BYTES) FROM t")
        assert await call(node, "raw_get('ks', 'a'), raw_get('ks', 'c')") == (b"1", b"3")
        assert await call(node, "raw_delete_range('ks', 'b', NULL)") == 2
        assert await call(node, "raw_get('ks', 'a'), raw_get('ks', 'c')") == (b"1", None)

    run(scenario)


def test_values_end_by_what_was_said() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE KEYSPACE brief WITH (ttl = '10s')")
        await node.sql("SELECT raw_put('brief', 'a', 'v'), raw_put('brief', 'b', 'v', '1m')")
        await asyncio.sleep(11)
        assert await call(node, "raw_get('brief', 'a'), raw_get('brief', 'b')") == (None, b"v")
        error = await refused(node, "SELECT raw_put('ks', 'a', 'v', '-1s')")
        assert (error.sqlstate, "out of range" in error.message) == ("22023", True)

    run(scenario)


def test_writes_belong_to_no_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SELECT raw_put('ks', 'k', '1')")
        calls = (
            "raw_put('ks', 'k', '2')",
            "raw_delete('ks', 'k')",
            "raw_cas('ks', 'k', '1', '2')",
            "raw_delete_range('ks', NULL, NULL)",
        )
        for text in calls:
            await node.sql("BEGIN")
            assert (await refused(node, f"SELECT {text}")).sqlstate == "25001"
            await node.sql("ROLLBACK")
        await node.sql("BEGIN")
        assert await call(node, "raw_get('ks', 'k')") == b"1"
        await node.sql("COMMIT")

    run(scenario)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM ks",
        "INSERT INTO ks VALUES ('a', 'b', NULL)",
        "UPDATE ks SET value = 'x'",
        "DELETE FROM ks",
        "TRUNCATE ks",
        "DROP TABLE ks",
        "ALTER TABLE ks ADD COLUMN x INT8",
        "CREATE INDEX ON ks (value)",
        "CREATE VIEW w AS SELECT key FROM ks",
        "CREATE CHANGEFEED FOR TABLE ks",
        "ALTER TABLE ks SET (changefeed_optimized = false)",
    ],
)
def test_a_keyspace_is_no_table(text: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await refused(node, text)
        assert error.sqlstate == "42809", error
        assert '"ks" is a raw keyspace' in error.message

    run(scenario)


@pytest.mark.parametrize(
    "text", ["SELECT raw_get('t', 'a')", "DROP KEYSPACE t", "CREATE CHANGEFEED FOR KEYSPACE t"]
)
def test_a_table_is_no_keyspace(text: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        error = await refused(node, text)
        assert (error.sqlstate, error.message) == ("42809", '"t" is a table, not a keyspace')

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("CREATE KEYSPACE ks", "42P07"),
        ("CREATE KEYSPACE x WITH (role = 'third')", "22023"),
        ("CREATE KEYSPACE x WITH (ttl = 'soon')", "22023"),
        ("CREATE KEYSPACE x WITH (ttl = '1ms')", "22023"),
        ("CREATE KEYSPACE x WITH (ttl = '1h', ttl = '2h')", "42601"),
        ("CREATE KEYSPACE nowhere.public.x", "3D000"),
        ("DROP KEYSPACE x", "42P01"),
        ("SELECT raw_get('x', 'a')", "42P01"),
        ("SELECT raw_cas('ks', NULL, 'a', 'b')", "22004"),
        ("SELECT raw_get('ks')", "42883"),
        ("SELECT repeat('k', 20000) FROM (SELECT raw_get('ks', 'a')) AS t", "0A000"),
        ("SELECT raw_put('ks', repeat('k', 20000)::BYTES, 'v')", "54000"),
        ("SET CLUSTER SETTING kv.raw.start_window = '25h'", "22023"),
    ],
)
def test_bad_input_is_named(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await refused(node, text)).sqlstate == sqlstate

    run(scenario)


def test_keyspaces_are_listed_beside_tables() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE SCHEMA web")
        await node.sql("CREATE KEYSPACE web.sessions WITH (ttl = '1h')")
        await node.sql("CREATE KEYSPACE IF NOT EXISTS ks")
        listed = (await node.sql("SHOW KEYSPACES")).fetch_rows()
        assert [(row[0], row[1], row[3]) for row in listed] == [
            ("public", "ks", None),
            ("web", "sessions", 3600),
        ]
        assert (await node.sql("SHOW TABLES")).fetch_rows() == []
        assert (await refused(node, "DROP SCHEMA web")).sqlstate == "2BP01"
        assert (await refused(node, "DROP SCHEMA web CASCADE")).sqlstate == "2BP01"
        await node.sql("DROP KEYSPACE web.sessions; DROP SCHEMA web")
        assert len((await node.sql("SHOW KEYSPACES")).fetch_rows()) == 1

    run(scenario)


def test_a_dropped_keyspace_leaves_nothing() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SELECT raw_put('ks', 'k', '1')")
        old = (await node.sql("SHOW KEYSPACES")).fetch_rows()[0][2]
        assert isinstance(old, int)
        await node.sql("DROP KEYSPACE ks; CREATE KEYSPACE ks")
        assert await call(node, "raw_get('ks', 'k')") is None
        assert await node.store.snapshot(await node.store.now()).scan(keyspace_span(old)) == []

    run(scenario)


def test_a_dropped_replica_is_purged() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE KEYSPACE copies WITH (role = 'replica')")
        found = (await node.sql("SHOW KEYSPACES")).fetch_rows()[0][2]
        assert isinstance(found, int)
        span, store = keyspace_span(found), node.store
        await store.replica(span, Begin())
        replica = ReplicaKeyspace(store, found)
        epoch = (await replica.open("main")).epoch
        entry = IngestedEntry(b"k", b"v", await store.now())
        await replica.ingest([entry], source="main", epoch=epoch, origin=9)
        await node.sql("DROP KEYSPACE copies")
        await node.sql("SET CLUSTER SETTING kv.raw.start_window = '60s'")
        collector = GarbageCollector(store, node.services.catalog.descriptors)
        await asyncio.sleep(61)
        await collector.collect()
        await asyncio.sleep(61)
        await collector.collect()
        start = key_format.VERSION + span.start
        assert list(store.engine.scan(start, key_format.VERSION + span.end)) == []

    run(scenario)


def test_garbage_of_keyspaces_is_collected() -> None:
    async def scenario(node: SqlNode) -> None:
        span = keyspace_span((await node.sql("SHOW KEYSPACES")).fetch_rows()[0][2])  # type: ignore[arg-type]
        await node.sql("SET CLUSTER SETTING kv.raw.start_window = '60s'")
        await node.sql("SET CLUSTER SETTING kv.raw.deleted_ttl = '90s'")
        await node.sql("SELECT raw_put('ks', 'a', '1'), raw_put('ks', 'a', '2')")
        await node.sql("SELECT raw_put('ks', 'b', '1'), raw_delete('ks', 'b')")
        collector = GarbageCollector(node.store, node.services.catalog.descriptors)
        await collector.collect()
        await asyncio.sleep(61)
        await collector.collect()
        slices = node.store.versions(span, node.store.gc_threshold_of(span), node.store.clock.last)
        assert sum([len(versions) async for versions in slices]) == 0
        rows = await node.store.snapshot(await node.store.now()).scan(span)
        assert len(rows) == 2, "the newest of a, and the deletion of b"
        await asyncio.sleep(30)
        await collector.collect()
        rows = await node.store.snapshot(await node.store.now()).scan(span)
        assert len(rows) == 1
        assert await call(node, "raw_get('ks', 'a'), raw_get('ks', 'b')") == (b"2", None)
        assert node.store.gc_threshold_of(span) > ZERO

    run(scenario)


def test_ranges_of_a_keyspace_tell_who_leads_it() -> None:
    async def scenario(node: SqlNode) -> None:
        async def told() -> Sequence[Row]:
            return await node.rows("SHOW RANGES FROM KEYSPACE ks")

        (shown,) = await node.rows("SHOW KEYSPACES")
        found = int(str(shown[2]))
        place, span = source_of(node.store.id, found), keyspace_span(found)
        await node.sql("SELECT raw_put('ks', 'z', '1')")
        await node.sql("ALTER KEYSPACE ks SPLIT AT 'm'")
        await node.sql("SELECT raw_put('ks', 'a', '2')")
        first, second = await told()
        assert first[:2] == (None, "m")
        assert second[:2] == ("m", None)
        assert first[3:7] == second[3:7] == ("main", place, None, None)
        assert str(first[7]) > str(second[7]) > ""
        assert first[8] > 0  # type: ignore[operator]
        drained = Drain(group=place, term=1, leader="store b")
        await node.store.replica(span, drained)
        assert [row[3:7] for row in await told()] == [("draining", None, "store b", 1)] * 2
        await node.store.replica(span, Reclaim(2))
        assert [row[3:7] for row in await told()] == [("main", place, None, 2)] * 2
        await node.store.replica(span, Drain(group=place, term=2, leader="store b"))
        state = await node.store.replica(span, Follow(source="b/7", term=3))
        assert state is not None
        assert [row[3:7] for row in await told()] == [("replica", "b/7", "store b", 3)] * 2
        assert str(first[7]) <= format_timestamp(state.resolved)

    run(scenario)
