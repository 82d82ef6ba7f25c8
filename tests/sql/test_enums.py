"""ENUM types from CREATE to DROP, in each engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

SET_UP = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TABLE t (id INT8 PRIMARY KEY, m mood DEFAULT 'ok', ms mood[])",
    "INSERT INTO t VALUES (1, 'happy', '{sad,ok}'), (2, 'sad', NULL), (3, DEFAULT, '{}')",
)


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in set_up or SET_UP:
                await node.sql(text)
            await scenario(node)

    sim = Simulation(17)
    sim.run(whole())


def test_types_are_shown_with_their_labels() -> None:
    async def scenario(node: SqlNode) -> None:
        labels = (
            "SELECT enumlabel FROM pg_enum WHERE enumtypid = 'mood'::regtype ORDER BY enumsortorder"
        )
        assert await node.rows(labels) == [("sad",), ("ok",), ("happy",)]

    run(scenario)


def test_order_is_the_declared_one() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SELECT id FROM t ORDER BY m") == [(2,), (3,), (1,)]
        assert await node.rows("SELECT id FROM t WHERE m > 'sad' ORDER BY id") == [(1,), (3,)]
        assert await node.rows("SELECT max(m), min(m) FROM t") == [("happy", "sad")]
        assert await node.rows("SELECT m FROM t WHERE m = 'ok'") == [("ok",)]
        result = await node.sql("SELECT m, ms FROM t WHERE id = 1")
        assert [column.type.sql_name for column in result.columns] == ["mood", "mood[]"]
        assert result.fetch_rows() == [("happy", ["sad", "ok"])]
        analytic = await node.sql("SELECT m, ms FROM t WHERE id + 0 = 1")
        assert [column.type.sql_name for column in analytic.columns] == ["mood", "mood[]"]
        assert analytic.fetch_rows() == [("happy", ["sad", "ok"])]

    run(scenario)


def test_key_is_in_declared_order() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO k VALUES ('happy', 1), ('sad', 2), ('ok', 3)")
        rows = [("sad",), ("ok",), ("happy",)]
        assert await node.rows("SELECT m FROM k ORDER BY m LIMIT 5") == rows
        assert await node.rows("SELECT n FROM k WHERE m = 'ok'") == [(3,)]
        assert await node.rows("SELECT n FROM k WHERE m > 'sad' ORDER BY n") == [(1,), (3,)]
        await node.sql("UPDATE k SET n = 9 WHERE m = 'ok'::mood")
        await node.sql("INSERT INTO k VALUES ($1::mood, 5) ON CONFLICT DO NOTHING", "sad")

    run(
        scenario,
        SET_UP[0],
        "CREATE TABLE k (m public.mood PRIMARY KEY, n INT8, INDEX (n) STORING (n))".replace(
            " STORING (n)", ""
        ),
    )


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("INSERT INTO t VALUES (9, 'none')", "22P02"),
        ("INSERT INTO t VALUES (9, 'ok', '{none}')", "22P02"),
        ("SELECT id FROM t WHERE m = 'none'", "22P02"),
        ("CREATE TYPE mood AS ENUM ()", "42710"),
        ("CREATE TYPE t AS ENUM ('a')", "42710"),
        ("CREATE TABLE mood (id INT8 PRIMARY KEY)", "42P07"),
        ("CREATE TABLE u (id INT8 PRIMARY KEY, m moods)", "42704"),
        ("DROP TYPE mood", "2BP01"),
        ("DROP TYPE moods", "42704"),
        ("ALTER TYPE mood ADD VALUE 'ok'", "42710"),
        ("ALTER TYPE mood ADD VALUE 'x' BEFORE 'y'", "22023"),
        ("ALTER TYPE mood RENAME VALUE 'ok' TO 'y'", "0A000"),
        ("ALTER TYPE mood RENAME TO feeling", "0A000"),
        ("ALTER TABLE t ADD COLUMN x mood DEFAULT 'none'", "22P02"),
    ],
)
def test_what_is_wrong_is_told(statement: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(statement)).sqlstate == sqlstate

    run(scenario)


@pytest.mark.parametrize("locked", [False, True])
def test_values_come_between_others(locked: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if locked:
            await node.sql("ALTER TABLE t SET (changefeed_optimized = true)")
        await node.sql("ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok'")
        await node.sql("ALTER TYPE mood ADD VALUE IF NOT EXISTS 'fine'")
        await node.sql("ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad'")
        await node.sql("INSERT INTO t VALUES (4, 'fine', '{awful}'), (5, 'awful', NULL)")
        ordered = [(5,), (2,), (3,), (4,), (1,)]
        assert await node.rows("SELECT id FROM t ORDER BY m") == ordered
        tables = await node.rows("SHOW TABLES")
        assert tables == [("public", "t", locked)] or tables[0][1] == "t"

    run(scenario)


def test_type_is_dropped_when_nobody_uses_it() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE t DROP COLUMN m, DROP COLUMN ms")
        await node.sql("DROP TYPE mood")
        await node.sql("CREATE TYPE mood AS ENUM ('new')")
        await node.sql("ALTER TABLE t ADD COLUMN m mood DEFAULT 'new'")
        assert await node.rows("SELECT m FROM t WHERE id = 1") == [("new",)]
        await node.sql("DROP TYPE IF EXISTS none")

    run(scenario)


def test_keys_and_subqueries_are_compared_by_the_order_of_the_labels() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE keyed (m mood PRIMARY KEY)")
        await node.sql("INSERT INTO keyed VALUES ('happy'), ('ok'), ('sad')")
        assert await node.rows("SELECT m FROM keyed WHERE m > 'sad'") == [("ok",), ("happy",)]
        assert await node.rows("SELECT m FROM keyed WHERE m < 'happy'") == [("sad",), ("ok",)]
        assert await node.rows("SELECT (SELECT max(m) FROM keyed) > 'ok'") == [(True,)]
        assert (await node.sql("DELETE FROM keyed WHERE m < 'ok'")).tag == "DELETE 1"

    run(scenario)
