"""Temporary tables: of a session, before all others, in no feed, gone with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.sql.runtime.relations import orphans
from tailrace.sql.session.temporary_tables import sweep
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in (
                "CREATE TABLE t (k INT8 PRIMARY KEY)",
                "INSERT INTO t VALUES (1)",
                *set_up,
            ):
                await node.sql(text)
            await scenario(node)

    sim = Simulation(31)
    sim.run(whole())


TEMP = "CREATE TEMP TABLE t (k INT8, v STRING)"


def test_a_temporary_table_hides_another() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SELECT * FROM t") == [(1,)]
        await node.sql(TEMP)
        await node.sql("INSERT INTO t VALUES (2, 'two'), (3, 'three')")
        assert await node.rows("SELECT v FROM t WHERE k = 2") == [("two",)]
        assert await node.rows("SELECT k FROM public.t") == [(1,)]
        await node.sql("UPDATE t SET v = 'zwei' WHERE k = 2; DELETE FROM t WHERE k = 3")
        assert await node.rows("SELECT * FROM t") == [(2, "zwei")]
        await node.sql("DROP TABLE t")
        assert await node.rows("SELECT * FROM t") == [(1,)]

    run(scenario)


def test_other_sessions_do_not_see_it() -> None:
    async def scenario(node: SqlNode) -> None:
        other = node.session()
        await node.sql("CREATE TEMPORARY TABLE mine AS SELECT 7 AS n")
        assert await node.rows("SELECT n FROM mine") == [(7,)]
        ((schema, name, *_),) = await node.rows(
            "SELECT schemaname, tablename FROM pg_tables WHERE tablename = 'mine'"
        )
        assert (await node.rows("SHOW TABLES"))[0][1] == name
        assert isinstance(schema, str)
        for text in ("SELECT * FROM mine", f"SELECT * FROM {schema}.mine"):
            with pytest.raises(Exception, match="does not exist"):
                await other.execute(text)
        (shown,) = await other.execute("SHOW TABLES")
        assert [row[1] for row in shown.fetch_rows()] == ["t"]
        await other.execute("CREATE TEMP TABLE mine (x STRING)")
        (theirs,) = await other.execute("SELECT * FROM mine")
        assert theirs.fetch_rows() == []
        await other.close()

    run(scenario)


def test_it_is_gone_with_its_session() -> None:
    async def scenario(node: SqlNode) -> None:
        other = node.session()
        await other.execute("CREATE TEMP TABLE mine (k INT8 PRIMARY KEY, n INT8 UNIQUE)")
        await other.execute("INSERT INTO mine VALUES (1, 2)")
        assert len(await orphans(node.services)) == 1
        await other.close()
        assert await orphans(node.services) == []
        assert (await node.error("SELECT * FROM mine")).sqlstate == "42P01"

    run(scenario)


def test_what_a_dead_node_left_is_swept_up() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TEMP TABLE mine (k INT8)")
        await node.sql("CREATE DATABASE shop")
        await node.sql("USE shop")
        await node.sql("CREATE TEMP TABLE mine (k INT8)")
        left = await orphans(node.services)
        assert [database for database, _ in left] == ["defaultdb", "shop"]
        await sweep(node.services, left)
        assert await orphans(node.services) == []

    run(scenario)


@pytest.mark.parametrize("discard", ["TEMP", "ALL"])
def test_discard_drops_it(discard: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(TEMP)
        await node.sql(f"DISCARD {discard}")
        assert await node.rows("SELECT * FROM t") == [(1,)]
        assert await orphans(node.services) == []
        await node.sql(TEMP)
        assert await node.rows("SELECT * FROM t") == []

    run(scenario)


def test_a_rollback_undoes_it() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        await node.sql(TEMP)
        assert await node.rows("SELECT * FROM t") == []
        await node.sql("ROLLBACK")
        assert await node.rows("SELECT * FROM t") == [(1,)]
        await node.sql(TEMP)
        assert await node.rows("SELECT * FROM t") == []

    run(scenario)


def test_prepared_statements_mean_the_table_that_is_there() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("PREPARE all_of AS SELECT k FROM t")
        assert await node.rows("EXECUTE all_of") == [(1,)]
        await node.sql("CREATE TEMP TABLE t (k INT8); INSERT INTO t VALUES (9)")
        assert await node.rows("EXECUTE all_of") == [(9,)]
        await node.sql("DROP TABLE t")
        assert await node.rows("EXECUTE all_of") == [(1,)]

    run(scenario)


REFUSED = [
    ("CREATE CHANGEFEED FOR TABLE mine", "0A000", "cannot target temporary table"),
    ("CREATE CHANGEFEED FOR mine INTO 'duckdb:///m.duckdb'", "0A000", "temporary table"),
    ("CREATE TABLE u (m INT8 REFERENCES mine)", "42P16", "may reference only permanent tables"),
    ("CREATE TEMP TABLE u (m INT8 REFERENCES t)", "42P16", "only temporary tables"),
    ("CREATE VIEW w AS SELECT * FROM mine", "0A000", "cannot read temporary table"),
    ("CREATE TEMP TABLE public.u (k INT8)", "42P16", "non-temporary schema"),
    ("CREATE SCHEMA pg_temp_9", "42939", "unacceptable schema name"),
    ("CREATE TEMP VIEW w AS SELECT 1", "0A000", "temporary views and sequences"),
    ("CREATE TEMP TABLE u (k INT8) ON COMMIT DROP", "0A000", "ON COMMIT"),
    ("CREATE TEMP TABLE u ON COMMIT DROP AS SELECT 1 AS k", "0A000", "ON COMMIT"),
]


@pytest.mark.parametrize(("text", "sqlstate", "message"), REFUSED)
def test_what_would_outlive_it_is_refused(text: str, sqlstate: str, message: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(text)
        assert error.sqlstate == sqlstate and message in f"{error.message}", error

    run(scenario, "CREATE TEMP TABLE mine (k INT8 PRIMARY KEY)")


def test_anybody_makes_temporary_tables() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE USER ada; REVOKE CREATE ON SCHEMA public FROM public")
        ada = node.session("ada")
        await ada.execute("CREATE TEMP TABLE mine AS SELECT 1 AS n")
        await ada.execute("INSERT INTO mine VALUES (2)")
        (found,) = await ada.execute("SELECT sum(n) FROM mine")
        assert found.fetch_rows() == [(3,)]
        await ada.close()
        assert await orphans(node.services) == []

    run(scenario)
