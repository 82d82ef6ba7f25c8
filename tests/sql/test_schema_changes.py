"""Schema changes by statements: what becomes of tables, their rows and their writers."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor, logically_equal
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.keys import table_span
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


def test_transaction_alters_what_it_has_read(sim: Simulation) -> None:
    """Its first statement leases the version that the ALTER follows, as migrations of rows do."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            for name in ("a", "b"):
                await node.sql("BEGIN")
                await node.sql(f"UPDATE t SET n = {len(name)} WHERE n IS NULL")
                await node.sql(f"ALTER TABLE t ADD COLUMN {name} INT8 DEFAULT 1")
                await node.sql("COMMIT")
            assert len((await table_of(node)).visible_columns) == 5

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


def test_a_changes_timestamp_is_behind_its_last_version(sim: Simulation, locked: bool) -> None:
    """Who waits for a feed to have come there, or reads as of then, has the change."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            for change in ("ADD COLUMN c INT8 AS (n * 2) STORED", "DROP COLUMN v", "ADD w INT8"):
                result = await node.sql(f"ALTER TABLE t {change}")
                assert result.commit_timestamp is not None
                assert result.commit_timestamp >= (await table_of(node)).modification_time, change
            session = node.session()
            await session.execute("BEGIN; SELECT 1; ALTER TABLE t ADD x INT8")
            (ended,) = await session.execute("COMMIT")
            assert ended.commit_timestamp is not None
            assert ended.commit_timestamp >= (await table_of(node)).modification_time

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


def test_bytes_become_text_and_text_bytes(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql(r"ALTER TABLE t ADD b BYTES DEFAULT '\x00ff', ADD bs BYTES[]")
            await node.sql("ALTER TABLE t ALTER COLUMN b TYPE STRING, ALTER COLUMN bs TYPE STRING")
            await node.sql("UPDATE t SET n = 11 WHERE k = 1; INSERT INTO t (k) VALUES (4)")
            assert await node.rows("SELECT b, bs FROM t") == [(r"\x00ff", None)] * 4
            await node.sql("ALTER TABLE t ALTER COLUMN b TYPE BYTES, ALTER COLUMN bs TYPE BYTES[]")
            await node.sql("UPDATE t SET n = 12 WHERE k = 1; INSERT INTO t (k) VALUES (5)")
            assert await node.rows("SELECT b, bs FROM t") == [(b"\0\xff", None)] * 5
            await check(node, locked)

    sim.run(scenario())


def test_expressions_that_are_kept_cast_to_bytes(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("ALTER TABLE t ADD b BYTES AS (v::BYTES) STORED")
            await node.sql("ALTER TABLE t ADD CHECK (b::bytes <> 'c'::BYTES)")
            assert await node.rows("SELECT b FROM t WHERE k < 3") == [(b"a",), (b"b",)]
            assert (await node.error("INSERT INTO t VALUES (7, 'c')")).sqlstate == "23514"

    sim.run(scenario())


def test_arrays_of_labels_are_not_retyped(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked)
            await node.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            await node.sql("ALTER TABLE t ADD COLUMN moods mood[]")
            for change in ("moods TYPE STRING", "v TYPE mood[] USING ARRAY[v]"):
                error = await node.error(f"ALTER TABLE t ALTER COLUMN {change}")
                assert error.sqlstate == "0A000"
                assert "enumeration" in error.message

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


def test_what_was_dropped_before_its_table_goes_with_it(sim: Simulation) -> None:
    """As a migration down does; a version behind the drop would be waited for for ever."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE p (id INT8 PRIMARY KEY)")
            await node.sql(
                "CREATE TABLE c (k INT8 PRIMARY KEY, p INT8 NOT NULL REFERENCES p (id),"
                " v INT8 CHECK (v > 0), w INT8, INDEX by_v (v))"
            )
            await node.sql("INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1, 2, 3)")
            table = await table_of(node, "c")
            down = (
                "BEGIN; DROP INDEX by_v; ALTER TABLE c ALTER COLUMN p DROP NOT NULL;"
                "ALTER TABLE c DROP COLUMN v; ALTER TABLE c ADD COLUMN x INT8 DEFAULT 5;"
                "DROP TABLE c; COMMIT"
            )
            await asyncio.wait_for(node.sql(down), 10)
            assert (await node.error("SELECT * FROM c")).sqlstate == "42P01"
            assert (await table_of(node, "p")).referenced_by == ()
            await asyncio.sleep(1)
            snapshot = node.store.snapshot(await node.store.now())
            assert await snapshot.scan(table_span(table.id)) == []
            assert {job.state for job in await node.registry.list()} == {JobState.SUCCEEDED}

    sim.run(scenario())


def test_foreign_key_is_validated_and_enforced(sim: Simulation) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE p (id INT8 PRIMARY KEY)")
            await node.sql("CREATE TABLE c (k INT8 PRIMARY KEY, p INT8)")
            await node.sql("INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1), (2, 9)")
            add = "ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES p (id)"
            assert (await node.error(add)).sqlstate == "23503"
            assert (await table_of(node, "p")).referenced_by == ()
            await node.sql("DELETE FROM c WHERE k = 2")
            await node.sql(add)
            assert (await node.error("INSERT INTO c VALUES (3, 9)")).sqlstate == "23503"
            assert (await node.error("DELETE FROM p WHERE id = 1")).sqlstate == "23503"
            assert (await node.error("UPDATE p SET id = 2 WHERE id = 1")).sqlstate == "23503"
            assert (await node.error("DROP TABLE p")).sqlstate == "2BP01"
            await node.sql("INSERT INTO c VALUES (3, NULL), (4, 1)")
            await node.sql("DELETE FROM c; DELETE FROM p")
            await node.sql("DROP TABLE p CASCADE")
            assert (await table_of(node, "c")).constraints == ()

    sim.run(scenario())


def test_foreign_key_to_a_locked_table_is_refused_129752(sim: Simulation) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "CREATE TABLE p (id INT8 PRIMARY KEY) WITH (changefeed_optimized = true)"
            )
            await node.sql("CREATE TABLE c (k INT8 PRIMARY KEY, p INT8)")
            error = await node.error("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p")
            assert error.sqlstate == "57000"

    sim.run(scenario())


def test_lock_beside_another_clause_is_refused_159017(sim: Simulation) -> None:
    """The comma syntax must not change a lock and anything else in one version (#150484)."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, True)
            text = "ALTER TABLE t SET (schema_locked = false), ADD COLUMN w INT8"
            assert (await node.error(text)).sqlstate == "25001"
            await check(node, True)

    sim.run(scenario())


def test_hard_lock_refuses_truncate_152932(sim: Simulation) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, True)
            await node.sql("SET CLUSTER SETTING sql.schema.auto_unlock.enabled = false")
            for text in ("TRUNCATE t", "ALTER TABLE t DROP COLUMN v", "CREATE INDEX ON t (v)"):
                error = await node.error(text)
                assert error.sqlstate == "57000"
                assert "changefeed_optimized" in str(error.detail)
            await node.sql("COMMENT ON TABLE t IS 'allowed'")
            await check(node, True)

    sim.run(scenario())


def test_hard_lock_lets_its_table_be_dropped(sim: Simulation) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, True)
            await node.sql("SET CLUSTER SETTING sql.schema.auto_unlock.enabled = false")
            await node.sql("DROP TABLE t")
            assert (await node.error("SELECT * FROM t")).sqlstate == "42P01"

    sim.run(scenario())


def test_unlock_is_a_version_of_its_own_149861(sim: Simulation) -> None:
    """Every version that changes the lock is logically equal to the one before."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, True)
            table = await table_of(node)
            before = node.store.clock.now()
            await node.sql("ALTER TABLE t ADD COLUMN u UUID DEFAULT gen_random_uuid()")
            await node.sql("ALTER TABLE t DROP COLUMN v")
            versions = await node.services.catalog.descriptors.versions(
                [table.id], before, node.store.clock.now()
            )
            changes = 0
            for older, newer in zip([table, *versions], versions, strict=False):
                assert isinstance(older, TableDescriptor)
                assert isinstance(newer, TableDescriptor)
                if older.locked != newer.locked:
                    changes += 1
                    assert logically_equal(older, newer), (older, newer)
                else:
                    assert not newer.locked, (older, newer)
            assert changes == 6  # unlock and lock, twice, and once more for the backfill

    sim.run(scenario())


def test_rolled_back_change_leaves_nothing(sim: Simulation) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, False)
            await node.sql(
                "BEGIN; ALTER TABLE t ADD COLUMN w INT8; CREATE INDEX ON t (v); ROLLBACK"
            )
            assert len((await check(node, False)).columns) == 3
            assert await node.registry.list() == []

    sim.run(scenario())


def test_changes_of_one_transaction_are_one_change(sim: Simulation) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, False)
            await node.sql(
                "BEGIN; ALTER TABLE t ADD COLUMN w INT8 DEFAULT 1; "
                "ALTER TABLE t ADD COLUMN x INT8 DEFAULT 2; CREATE UNIQUE INDEX ON t (k, w); COMMIT"
            )
            assert await node.rows("SELECT w, x FROM t WHERE k = 1") == [(1, 2)]
            assert len(await node.registry.list()) == 1
            assert len((await check(node, False)).indexes) == 1

    sim.run(scenario())


def test_changes_of_one_table_queue(sim: Simulation) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, True)
            sessions = [node.session() for _ in range(3)]
            texts = [f"ALTER TABLE t ADD COLUMN c{n} INT8 DEFAULT {n}" for n in range(3)]
            await asyncio.gather(
                *(session.execute(text) for session, text in zip(sessions, texts, strict=True))
            )
            assert await node.rows("SELECT c0, c1, c2 FROM t WHERE k = 1") == [(0, 1, 2)]
            await check(node, True)

    sim.run(scenario())


@pytest.mark.parametrize(
    "change", ["ALTER TABLE t ADD COLUMN w INT8", "ALTER TABLE t SET (changefeed_optimized = true)"]
)
def test_a_change_behind_its_own_rows_does_not_wait_for_ever(sim: Simulation, change: str) -> None:
    """The table's job waits for the transaction's rows, and the transaction for the job."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node, locked=False)
            node.store.settings.set("sql.schema_change.lease_wait_timeout", "2s")
            reader, writer, changer = node.session(), node.session(), node.session()
            await reader.execute("BEGIN")
            await reader.execute("SELECT * FROM t")
            fill = "ALTER TABLE t ADD COLUMN u UUID DEFAULT gen_random_uuid()"
            filling = asyncio.create_task(changer.execute(fill))
            await asyncio.sleep(0.1)  # the first version is out, and the next waits for the reader
            await writer.execute("BEGIN")
            await writer.execute("UPDATE t SET n = 11 WHERE k = 1")
            await reader.execute("ROLLBACK")
            with pytest.raises(SQLError, match="still being changed by job") as refused:
                await writer.execute(change)
            assert refused.value.sqlstate == "55P03"
            await writer.execute("ROLLBACK")
            await asyncio.wait_for(filling, 5)
            assert await node.rows("SELECT n FROM t WHERE k = 1") == [(10,)]
            for session in (reader, writer, changer):
                await session.close()

    sim.run(scenario())


def test_heartbeats_do_not_fail_a_transaction_that_changes_a_leased_table(sim: Simulation) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "CREATE TABLE t (k INT8 PRIMARY KEY); CREATE TABLE u (k INT8 PRIMARY KEY)"
            )
            await node.sql("INSERT INTO t VALUES (1)")  # which leases it
            await node.sql("BEGIN; SELECT count(*) FROM u; COMMENT ON TABLE t IS 'seen'")
            await asyncio.sleep(5.0)  # of which a second is between two heartbeats
            reader = node.session()
            await reader.execute("SELECT * FROM u WHERE k = 1")  # the write below is above it
            await node.sql("INSERT INTO u VALUES (1)")
            await node.sql("COMMIT")
            await reader.close()
            assert await node.rows("SELECT obj_description('t'::regclass)") == [("seen",)]

    sim.run(main())
