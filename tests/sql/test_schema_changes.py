"""Schema changes by statements: what becomes of tables, their rows and their writers."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.descriptor import TableDescriptor
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING, n INT8)"
ROWS = "INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, NULL, NULL)"


async def table_of(node: SqlNode, name: str = "t") -> TableDescriptor:
    reader = node.store.snapshot(node.store.clock.now())
    for table in await node.services.catalog.list_tables(reader, "defaultdb"):
        if table.name == name:
            return table
    raise AssertionError(f"no table {name}")


@pytest.fixture
def sim() -> Simulation:
    return Simulation(seed=7)


@pytest.fixture(params=[False, True], ids=["unlocked", "locked"])
def locked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def prepare(node: SqlNode, locked: bool) -> None:
    await node.sql(TABLE)
    await node.sql(ROWS)
    if locked:
        await node.sql("ALTER TABLE t SET (changefeed_optimized = true)")


async def check(node: SqlNode, locked: bool) -> TableDescriptor:
    """The table is at rest: nothing is under way, and it is locked if it was."""
    table = await table_of(node)
    assert table.locked is locked
    assert table.schema_change_job is None
    assert (table.new_primary, table.old_primary) == (None, None)
    assert table.columns == table.visible_columns
    return table


def test_column_with_a_default_rewrites_nothing(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("ALTER TABLE t ADD COLUMN w INT8 NOT NULL DEFAULT 7")
            assert await node.rows("SELECT k, w FROM t ORDER BY k") == [(1, 7), (2, 7), (3, 7)]
            table = await check(node, locked)
            assert table.column("w").missing == 7
            assert table.primary_index_id == 1
            await node.sql("INSERT INTO t (k) VALUES (4)")
            await node.sql("UPDATE t SET w = 8 WHERE k = 1")
            assert await node.rows("SELECT k, w FROM t WHERE k IN (1, 4)") == [(1, 8), (4, 7)]

    sim.run(scenario())


def test_volatile_default_fills_every_row(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("ALTER TABLE t ADD COLUMN u UUID NOT NULL DEFAULT gen_random_uuid()")
            rows = await node.rows("SELECT u FROM t")
            assert len(set(rows)) == 3
            table = await check(node, locked)
            assert table.primary_index_id != 1
            await node.sql("INSERT INTO t (k) VALUES (4)")
            assert len(set(await node.rows("SELECT u FROM t"))) == 4
            assert sorted(await node.rows("SELECT u FROM t WHERE k < 4")) == sorted(rows)

    sim.run(scenario())


def test_computed_column_follows_its_row(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("ALTER TABLE t ADD COLUMN twice INT8 AS (n * 2) STORED")
            await node.sql("ALTER TABLE t ADD COLUMN big STRING AS (upper(v)) STORED")
            await node.sql("UPDATE t SET n = 11, v = 'z' WHERE k = 1")
            await node.sql("INSERT INTO t (k, v, n) VALUES (4, 'd', 40)")
            assert await node.rows("SELECT k, twice, big FROM t ORDER BY k") == [
                (1, 22, "Z"),
                (2, 40, "B"),
                (3, None, None),
                (4, 80, "D"),
            ]
            assert (await node.error("UPDATE t SET twice = 1 WHERE k = 1")).sqlstate == "428C9"
            await check(node, locked)

    sim.run(scenario())


def test_dropped_column_is_gone(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("ALTER TABLE t DROP COLUMN v")
            assert await node.rows("SELECT * FROM t WHERE k < 3") == [(1, 10), (2, 20)]
            await node.sql("ALTER TABLE t ADD COLUMN v STRING")
            assert await node.rows("SELECT v FROM t WHERE k = 1") == [(None,)]
            await check(node, locked)

    sim.run(scenario())


def test_rename_changes_only_the_name(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            before = (await table_of(node)).column("v").id
            await node.sql("ALTER TABLE t RENAME COLUMN v TO value")
            assert await node.rows("SELECT value FROM t WHERE k = 1") == [("a",)]
            assert (await check(node, locked)).column("value").id == before

    sim.run(scenario())


def test_retyped_column_is_another_one(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            before = (await table_of(node)).column("n").id
            await node.sql("ALTER TABLE t ALTER COLUMN n TYPE STRING")
            assert await node.rows("SELECT k, v, n FROM t ORDER BY k") == [
                (1, "a", "10"),
                (2, "b", "20"),
                (3, None, None),
            ]
            table = await check(node, locked)
            assert table.column("n").id != before
            assert [column.name for column in table.visible_columns] == ["k", "v", "n"]

    sim.run(scenario())


def test_retype_that_does_not_fit_leaves_the_table_as_it_was(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            before = await table_of(node)
            error = await node.error("ALTER TABLE t ALTER COLUMN v TYPE INT8")
            assert error.sqlstate == "22P02"
            after = await check(node, locked)
            assert after.columns == before.columns
            assert await node.rows("SELECT v FROM t WHERE k = 1") == [("a",)]

    sim.run(scenario())


def test_unique_index_over_duplicates_is_undone(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("INSERT INTO t VALUES (4, 'a', 1)")
            error = await node.error("CREATE UNIQUE INDEX ON t (v)")
            assert error.sqlstate == "23505"
            assert (await check(node, locked)).indexes == ()
            await node.sql("INSERT INTO t VALUES (5, 'a', 1)")

    sim.run(scenario())


def test_unique_index_holds_from_then_on(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("CREATE UNIQUE INDEX by_v ON t (v) STORING (n)")
            error = await node.error("INSERT INTO t VALUES (4, 'a', 1)")
            assert (error.sqlstate, error.detail) == ("23505", "Key (v)=(a) already exists.")
            assert (await node.error("UPDATE t SET v = 'a' WHERE k = 2")).sqlstate == "23505"
            await node.sql("INSERT INTO t VALUES (4, NULL, 1)")
            await node.sql("DELETE FROM t WHERE k = 1")
            await node.sql("INSERT INTO t VALUES (1, 'a', 1)")
            await node.sql("DROP INDEX by_v")
            await node.sql("INSERT INTO t VALUES (5, 'a', 1)")
            await check(node, locked)

    sim.run(scenario())


def test_not_null_over_nulls_is_undone(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            error = await node.error("ALTER TABLE t ALTER COLUMN v SET NOT NULL")
            assert error.sqlstate == "23502"
            table = await check(node, locked)
            assert table.column("v").nullable
            assert table.constraints == ()
            await node.sql("DELETE FROM t WHERE k = 3")
            await node.sql("ALTER TABLE t ALTER COLUMN v SET NOT NULL")
            assert (await node.error("INSERT INTO t (k) VALUES (9)")).sqlstate == "23502"
            await node.sql("ALTER TABLE t ALTER COLUMN v DROP NOT NULL")
            await node.sql("INSERT INTO t (k) VALUES (9)")

    sim.run(scenario())


def test_check_is_validated_and_enforced(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            assert (await node.error("ALTER TABLE t ADD CHECK (n > 10)")).sqlstate == "23514"
            assert (await check(node, locked)).constraints == ()
            await node.sql("ALTER TABLE t ADD CONSTRAINT least CHECK (n >= 10)")
            await node.sql("ALTER TABLE t ADD CHECK (length(v) < 3)")
            assert (await node.error("INSERT INTO t VALUES (4, 'a', 1)")).sqlstate == "23514"
            assert (await node.error("UPDATE t SET n = 1")).sqlstate == "23514"
            assert (await node.error("INSERT INTO t VALUES (4, 'abcd', 10)")).sqlstate == "23514"
            await node.sql("INSERT INTO t VALUES (4, NULL, NULL)")
            await node.sql("ALTER TABLE t DROP CONSTRAINT least")
            await node.sql("UPDATE t SET n = 1")
            await check(node, locked)

    sim.run(scenario())


def test_primary_key_changes_and_indexes_with_it(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("DELETE FROM t WHERE k = 3")
            await node.sql("CREATE INDEX by_v ON t (v)")
            await node.sql("ALTER TABLE t ALTER COLUMN n SET NOT NULL")
            await node.sql("ALTER TABLE t ALTER PRIMARY KEY USING COLUMNS (n)")
            assert await node.rows("SELECT k FROM t WHERE n = 20") == [(2,)]
            assert (await node.error("INSERT INTO t VALUES (9, 'x', 20)")).sqlstate == "23505"
            await node.sql("INSERT INTO t VALUES (1, 'x', 30)")
            table = await check(node, locked)
            assert table.indexes[0].suffix == table.primary_key

    sim.run(scenario())


def test_truncated_table_is_empty(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("CREATE UNIQUE INDEX by_v ON t (v)")
            await node.sql("TRUNCATE t")
            assert await node.rows("SELECT * FROM t") == []
            await node.sql("INSERT INTO t VALUES (1, 'a', 1)")
            assert await node.rows("SELECT * FROM t") == [(1, "a", 1)]
            assert len((await check(node, locked)).indexes) == 1

    sim.run(scenario())


def test_dropped_table_is_gone_and_its_data_too(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            table = await table_of(node)
            at = node.store.clock.now()
            await node.sql("DROP TABLE t")
            assert (await node.error("SELECT * FROM t")).sqlstate == "42P01"
            await asyncio.sleep(1)
            assert await node.store.snapshot(await node.store.now()).scan(table.primary_span) == []
            rows = await node.store.snapshot(at).scan(table.primary_span)
            assert len(rows) == 3

    sim.run(scenario())
