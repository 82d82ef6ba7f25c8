"""Defaults that are expressions: each row has a value of its own, by whatever way it is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

NOTES = (
    "CREATE TABLE notes (id INT8 PRIMARY KEY, tag STRING DEFAULT lower('X') || 'y', "
    "token STRING DEFAULT md5(random()::STRING), made TIMESTAMP DEFAULT (now() AT TIME ZONE 'utc'))"
)
BILLS = (
    "CREATE SEQUENCE s",
    "CREATE TABLE bills (id INT8 PRIMARY KEY, name STRING DEFAULT 'B' || nextval('s'), n INT8)",
)


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str, seed: int = 5) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in set_up or (NOTES,):
                await node.sql(text)
            await scenario(node)

    sim = Simulation(seed)
    sim.run(whole())


def test_each_row_has_its_own_value() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO notes (id) VALUES (1), (2)")
        await node.sql("INSERT INTO notes VALUES (3, DEFAULT, DEFAULT), (4, 'own', 'T')")
        await node.sql("INSERT INTO notes (id) SELECT g FROM generate_series(5, 3000) g")
        await node.sql("UPSERT INTO notes (id) VALUES (1), (3001)")
        assert await node.rows(
            "SELECT count(*), count(DISTINCT token), count(DISTINCT tag), min(length(token)), "
            "count(made) FROM notes WHERE id <> 4"
        ) == [(3000, 3000, 1, 32, 3000)]
        assert await node.rows("SELECT tag, token FROM notes WHERE id = 4") == [("own", "T")]

    run(scenario)


def test_update_draws_the_default_anew() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO notes VALUES (1, 'a', 'b'), (2, 'a', 'b')")
        await node.sql("UPDATE notes SET tag = DEFAULT, token = DEFAULT")
        assert await node.rows("SELECT tag, length(token) FROM notes") == [("xy", 32)] * 2
        assert await node.rows("SELECT count(DISTINCT token) FROM notes") == [(2,)]
        await node.sql(
            "INSERT INTO notes (id, tag) VALUES (1, 'z') "
            "ON CONFLICT (id) DO UPDATE SET tag = DEFAULT, token = 'kept'"
        )
        assert await node.rows("SELECT tag, token FROM notes WHERE id = 1") == [("xy", "kept")]

    run(scenario)


def test_default_within_a_transaction_has_its_time() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        (now,) = (await node.rows("SELECT now() AT TIME ZONE 'utc'"))[0]
        await node.sql("INSERT INTO notes (id) VALUES (1)")
        await node.sql("COMMIT")
        assert await node.rows("SELECT made FROM notes") == [(now,)]

    run(scenario)


def test_sequence_within_an_expression_is_drawn_once_a_row() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO bills (id, n) VALUES (1, nextval('s')), (2, nextval('s'))")
        await node.sql("INSERT INTO bills (id) SELECT g FROM generate_series(3, 200) g")
        drawn = await node.rows(
            "SELECT substr(name, 2)::INT8 AS k FROM bills UNION ALL "
            "SELECT n FROM bills WHERE n IS NOT NULL"
        )
        assert len(drawn) == len(set(drawn)) == 202
        assert (await node.error("DROP SEQUENCE s")).sqlstate == "2BP01"

    run(scenario, *BILLS)


def test_columns_that_are_added_are_filled_row_by_row() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY) WITH (schema_locked = true)")
        await node.sql("INSERT INTO t SELECT g FROM generate_series(1, 250) g")
        await node.sql(
            "ALTER TABLE t ADD COLUMN a STRING DEFAULT 'N' || nextval('s') || upper('x')"
        )
        await node.sql("ALTER TABLE t ADD COLUMN b INT8 NOT NULL DEFAULT nextval('s')")
        await node.sql("ALTER TABLE t ADD COLUMN c INT8 DEFAULT (random() * 1e15)::INT8")
        rows = await node.rows(
            "SELECT count(DISTINCT a), count(DISTINCT b), min(a), count(*) FROM t"
        )
        assert rows == [(250, 250, "N100X", 250)]
        assert (await node.rows("SELECT count(DISTINCT c) FROM t"))[0][0] > 240  # type: ignore[operator]

    run(scenario, "CREATE SEQUENCE s")


def test_the_same_seed_draws_the_same() -> None:
    tokens: list[object] = []

    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO notes (id) VALUES (1), (2), (3)")
        tokens.append(await node.rows("SELECT token FROM notes ORDER BY id"))

    run(scenario)
    run(scenario)
    assert tokens[0] == tokens[1]


def test_show_create_table_tells_the_expression() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE notes ALTER COLUMN tag SET DEFAULT upper('a') || current_user")
        ((_, statement),) = await node.rows("SHOW CREATE TABLE notes")
        assert isinstance(statement, str)
        assert "\"tag\" STRING DEFAULT upper('a') || CURRENT_USER" in statement or (
            "tag STRING DEFAULT upper('a') || CURRENT_USER" in statement
        )
        await node.sql("INSERT INTO notes (id) VALUES (1)")
        assert await node.rows("SELECT tag FROM notes") == [("Aroot",)]

    run(scenario)


@pytest.mark.parametrize(
    ("default", "sqlstate"),
    [
        ("nosuch(1)", "42883"),
        ("lower(id)", "0A000"),
        ("(SELECT 1)", "0A000"),
        ("max(1)", "42803"),
        ("row_number() OVER ()", "42P20"),
        ("date_trunc('day', now())", "42804"),
    ],
)
def test_what_no_default_may_be_is_refused_at_once(default: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(f"CREATE TABLE t (id INT8 PRIMARY KEY, a INT8 DEFAULT {default})")
        assert error.sqlstate == sqlstate, error
        error = await node.error(f"ALTER TABLE bills ALTER COLUMN n SET DEFAULT {default}")
        assert error.sqlstate == sqlstate, error

    run(scenario, *BILLS)


def test_a_column_keeps_no_default_of_another_type() -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error("ALTER TABLE bills ALTER COLUMN name TYPE INT8 USING 1")
        assert error.sqlstate == "42804"
        assert 'default for column "name" cannot be cast' in str(error.message)

    run(scenario, *BILLS)
