"""Sequences: each value is handed out once, whatever becomes of the statement."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ABC = (
    "CREATE SEQUENCE s",
    "CREATE TABLE t (id INT8 PRIMARY KEY, v STRING)",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
)


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str, seed: int = 23) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in set_up or ("CREATE SEQUENCE s",):
                await node.sql(text)
            await scenario(node)

    sim = Simulation(seed)
    sim.run(whole())


def test_values_follow_each_other() -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error("SELECT currval('s')")).sqlstate == "55000"
        assert (await node.error("SELECT lastval()")).sqlstate == "0A000"
        assert await node.rows("SELECT nextval('s')") == [(1,)]
        assert await node.rows("SELECT nextval('s'::regclass), nextval('public.s')") == [(2, 3)]
        assert await node.rows("SELECT currval('public.s')") == [(3,)]
        assert await node.rows("SELECT setval('s', 10)") == [(10,)]
        assert await node.rows("SELECT nextval('s')") == [(11,)]
        assert await node.rows("SELECT setval('s', 20, false)") == [(20,)]
        assert await node.rows("SELECT nextval('s')") == [(20,)]
        # Hibernate creates post_SEQ, and draws from 'post_SEQ'
        await node.sql("CREATE SEQUENCE post_SEQ START WITH 1 INCREMENT BY 50")
        assert await node.rows("SELECT nextval('post_SEQ')") == [(1,)]
        assert (await node.error("SELECT nextval('\"post_SEQ\"')")).sqlstate == "42P01"

    run(scenario)


@pytest.mark.parametrize("change", ["RESTART WITH 0", "MAXVALUE 10 RESTART WITH 11"])
def test_a_restart_is_within_the_bounds(change: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(f"ALTER SEQUENCE s {change}")).sqlstate == "22023"
        assert await node.rows("SELECT nextval('s')") == [(1,)]

    run(scenario)


def test_sequences_are_listed_with_their_last_values() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE SCHEMA shop; CREATE SEQUENCE shop.numbers INCREMENT 5")
        query = "SELECT sequencename, increment_by, last_value FROM pg_sequences ORDER BY 1"
        assert await node.rows(query) == [("numbers", 5, None), ("s", 1, None)]
        await node.sql("SELECT nextval('shop.numbers'), nextval('shop.numbers')")
        await node.sql("SELECT setval('s', 9, false)")
        assert await node.rows(query) == [("numbers", 5, 6), ("s", 1, None)]

    run(scenario)


def test_defaults_of_a_row_see_what_it_has_drawn() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE both "
            "(id INT8 DEFAULT nextval('s'), n INT8, same INT8 DEFAULT currval('s'))"
        )
        await node.sql("INSERT INTO both (n) VALUES (1), (2)")
        await node.sql("INSERT INTO both (n) SELECT g FROM generate_series(3, 4000) g")
        assert await node.rows("SELECT count(*) FROM both WHERE id = same AND id = n") == [(4000,)]

    run(scenario)


def test_default_draws_a_value_for_each_row() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = ", ".join(f"('{number}')" for number in range(50))
        await node.sql(f"INSERT INTO t (v) VALUES {rows}")
        assert await node.rows("INSERT INTO t (v) VALUES ('last') RETURNING id") == [(51,)]
        await node.sql("INSERT INTO t (v) SELECT 'x' FROM generate_series(1, 30)")
        assert await node.rows("SELECT count(*), max(id) FROM t") == [(81, 81)]
        await node.sql("INSERT INTO t VALUES (nextval('s'), 'named')")
        assert await node.rows("SELECT id FROM t WHERE v = 'named'") == [(82,)]
        assert (await node.error("DROP SEQUENCE s")).sqlstate == "2BP01"

    run(scenario, "CREATE SEQUENCE s",
        "CREATE TABLE t (id INT8 PRIMARY KEY DEFAULT nextval('s'), v STRING)")  # fmt: skip


def test_rollback_gives_nothing_back() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        assert await node.rows("SELECT nextval('s')") == [(1,)]
        await node.sql("ROLLBACK")
        assert await node.rows("SELECT nextval('s')") == [(2,)]

    run(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_concurrent_statements_draw_different_values(seed: int) -> None:
    async def scenario(node: SqlNode) -> None:
        async def draw(number: int) -> None:
            session = node.session()
            try:
                rows = ", ".join(["(DEFAULT)"] * (1 + number % 5))
                await session.execute(f"INSERT INTO t (id) VALUES {rows}")
            finally:
                await session.close()

        await asyncio.gather(*(draw(number) for number in range(20)))
        wanted = sum(1 + number % 5 for number in range(20))
        assert await node.rows("SELECT count(DISTINCT id) FROM t") == [(wanted,)]

    run(scenario, "CREATE SEQUENCE s",
        "CREATE TABLE t (id INT8 PRIMARY KEY DEFAULT nextval('s'))", seed=seed)  # fmt: skip


def test_options_are_kept() -> None:
    async def scenario(node: SqlNode) -> None:
        drawn = [(await node.rows("SELECT nextval('d')"))[0][0] for _ in range(4)]
        assert drawn == [5, 3, 1, 6]
        assert [(await node.rows("SELECT nextval('e')"))[0][0] for _ in range(2)] == [1, 2]
        assert (await node.error("SELECT nextval('e')")).sqlstate == "2200H"
        await node.sql("ALTER SEQUENCE e MAXVALUE 9 INCREMENT 5 RESTART WITH 3")
        assert await node.rows("SELECT nextval('e'), nextval('e')") == [(3, 8)]
        assert (await node.error("SELECT setval('e', 10)")).sqlstate == "22003"
        assert (await node.error("ALTER SEQUENCE e RENAME TO f")).sqlstate == "0A000"
        await node.sql("DROP SEQUENCE e, d")
        assert (await node.error("SELECT nextval('e')")).sqlstate == "42P01"
        await node.sql("DROP SEQUENCE IF EXISTS e")

    run(
        scenario,
        "CREATE SEQUENCE d INCREMENT BY -2 MINVALUE 1 MAXVALUE 6 START 5 CYCLE",
        "CREATE SEQUENCE e MAXVALUE 2",
    )


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("CREATE SEQUENCE s", "42P07"),
        ("CREATE SEQUENCE x INCREMENT 0", "22023"),
        ("CREATE SEQUENCE x MINVALUE 5 START 4", "22023"),
        ("CREATE SEQUENCE x OWNED BY none_such.id", "42P01"),
        ("ALTER SEQUENCE x RESTART", "42P01"),
        ("SELECT nextval('x')", "42P01"),
        ("SELECT id FROM generate_series(1, 3) id WHERE id + 0 = nextval('s')", "0A000"),
        ("SELECT nextval('s' || 't')", "42P01"),
    ],
)
def test_what_is_wrong_is_told(statement: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(statement)).sqlstate == sqlstate

    run(scenario)


def test_query_draws_for_each_row_in_its_order() -> None:
    async def scenario(node: SqlNode) -> None:
        drawn = await node.rows("SELECT nextval('s') AS n, id, v FROM t ORDER BY id DESC LIMIT 2")
        assert drawn == [(1, 3, "c"), (2, 2, "b")]
        counted = "SELECT v, nextval('s'), count(*) FROM t GROUP BY v ORDER BY v"
        assert await node.rows(counted) == [("a", 3, 1), ("b", 4, 1), ("c", 5, 1)]
        await node.sql("INSERT INTO t SELECT nextval('s'), upper(v) FROM t ORDER BY id")
        assert await node.rows("SELECT id FROM t WHERE v < 'a' ORDER BY v") == [(6,), (7,), (8,)]
        assert await node.rows("SELECT nextval('s') FROM t WHERE false") == []
        assert (await node.error("SELECT nextval('s') * 2 FROM t")).sqlstate == "0A000"
        assert (await node.error("SELECT nextval('s'), * FROM t")).sqlstate == "0A000"

    run(scenario, *ABC)


def test_update_draws_for_each_row() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("UPDATE t SET id = nextval('s') + 10")
        await node.sql("UPDATE t SET id = nextval('s') + 20 WHERE length(v) = 1")
        assert sorted(await node.rows("SELECT id FROM t")) == [(24,), (25,), (26,)]

    run(scenario, *ABC)


def test_many_rows_are_drawn_in_few_evaluations() -> None:
    """10,000 values take three writes, and nothing but the sequence's own is drawn."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("SELECT setval('s', 10)")
        await node.sql("INSERT INTO t SELECT nextval('s'), 'x' FROM generate_series(1, 10000)")
        assert await node.rows("SELECT min(id), max(id) FROM t WHERE v = 'x'") == [(11, 10010)]
        assert await node.rows("SELECT nextval('s')") == [(10011,)]

    run(scenario, *ABC)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT nextval('s') FROM t",
        "SELECT nextval('s') AS n FROM t ORDER BY n",
        "SELECT CASE WHEN id > 1 THEN nextval('s') END FROM t",
        "SELECT max(nextval('s')) FROM t",
        "SELECT n FROM (SELECT nextval('s') AS n FROM t) AS u",
    ],
)
def test_what_would_be_drawn_too_early_is_refused(query: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(query)).sqlstate == "0A000"
        assert await node.rows("SELECT nextval('s')") == [(1,)]

    run(scenario, *ABC)


def test_setval_takes_what_is_computed() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO i VALUES (41)")
        reset = (
            "SELECT setval(pg_get_serial_sequence('i', 'id'), max(id), max(id) IS NOT NULL) FROM i"
        )
        assert await node.rows(reset) == [(41,)]
        assert await node.rows("INSERT INTO i DEFAULT VALUES RETURNING id") == [(42,)]
        assert await node.rows("SELECT currval(pg_get_serial_sequence('public.i', 'id'))") == [
            (42,)
        ]
        assert await node.rows("SELECT setval('i_id_seq', NULL)") == [(None,)]

    run(scenario, "CREATE TABLE i (id INT8 GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)")


def test_cache_is_told_of_and_not_obeyed() -> None:
    """Dumps of PostgreSQL have it. A session draws nothing ahead."""

    async def scenario(node: SqlNode) -> None:
        for statement in ("CREATE SEQUENCE ahead CACHE 10", "ALTER SEQUENCE ahead CACHE 20"):
            assert "CACHE is kept and not obeyed" in ((await node.sql(statement)).notice or "")
        assert (await node.sql("CREATE SEQUENCE one CACHE 1")).notice is None
        assert await node.rows("SELECT nextval('ahead')") == [(1,)]
        (result,) = await node.session().execute("SELECT nextval('ahead')")
        assert result.fetch_rows() == [(2,)]
        with pytest.raises(SQLError, match="greater than zero"):
            await node.sql("ALTER SEQUENCE ahead CACHE 0")

    run(scenario)
