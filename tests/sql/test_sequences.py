"""Sequences: each value is handed out once, whatever becomes of the statement."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


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
        assert (await node.error("SELECT lastval()")).sqlstate == "55000"
        assert await node.rows("SELECT nextval('s')") == [(1,)]
        assert await node.rows("SELECT nextval('s'::regclass), nextval('public.s')") == [(2, 3)]
        assert await node.rows("SELECT currval('public.s'), lastval()") == [(3, 3)]
        assert await node.rows("SELECT setval('s', 10)") == [(10,)]
        assert await node.rows("SELECT nextval('s')") == [(11,)]
        assert await node.rows("SELECT setval('s', 20, false)") == [(20,)]
        assert await node.rows("SELECT nextval('s')") == [(20,)]

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
        await node.sql("ALTER SEQUENCE e RENAME TO f")
        await node.sql("DROP SEQUENCE f, d")
        assert (await node.error("SELECT nextval('f')")).sqlstate == "42P01"
        await node.sql("DROP SEQUENCE IF EXISTS f")

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
        ("SELECT nextval('s') FROM generate_series(1, 3)", "0A000"),
        ("SELECT nextval('s' || 't')", "0A000"),
    ],
)
def test_what_is_wrong_is_told(statement: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(statement)).sqlstate == sqlstate

    run(scenario)


def test_serial_is_a_sequence_where_the_session_says_so() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SET serial_normalization = sql_sequence")
        await node.sql("CREATE TABLE t (id SERIAL PRIMARY KEY, v STRING)")
        assert await node.rows("INSERT INTO t (v) VALUES ('a'), ('b') RETURNING id") == [(1,), (2,)]
        shown = "SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'S'"
        assert await node.rows(shown) == [("t_id_seq",)]
        assert (await node.error("DROP SEQUENCE t_id_seq")).sqlstate == "2BP01"
        await node.sql("DROP TABLE t")
        assert await node.rows(shown) == []

    run(scenario, "SELECT 1")
