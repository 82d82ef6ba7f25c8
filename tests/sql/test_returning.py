"""RETURNING of any expression: beyond Python's, by DuckDB over the rows that are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

T = "CREATE TABLE t (k INT8 PRIMARY KEY, n INT4, v STRING, d DECIMAL(10,2), j JSONB)"
U = "CREATE TABLE u (k INT8 PRIMARY KEY, t_k INT8, note STRING)"


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=41)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(T)
            await node.sql(U)
            await node.sql(
                "INSERT INTO t VALUES (1, 10, 'a', 1.5, '{\"x\": 1}'), (2, 20, 'b', 2, NULL)"
            )
            await node.sql("INSERT INTO u VALUES (1, 1, 'one'), (2, 2, 'two')")
            await scenario(node)

    sim.run(main())


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        (
            "DELETE FROM t WHERE pg_catalog.length(v) = 1 AND k = 1 "
            "RETURNING pg_catalog.quote_ident(v), pg_catalog.upper(v)",
            ["quote_ident", "upper"],
            [("a", "A")],
        ),
        (
            "INSERT INTO t VALUES (3, 30, 'c'), (4, 40, NULL) RETURNING upper(v), coalesce(v, '-')",
            ["upper", "coalesce"],
            [("C", "c"), (None, "-")],
        ),
        (
            "INSERT INTO t (k, n) VALUES (9, 1), (8, 2) "
            "RETURNING CASE WHEN n > 1 THEN 'x' END AS c",
            ["c"],
            [(None,), ("x",)],
        ),
        (
            "UPDATE t AS x SET n = n + 1 RETURNING k, n::STRING || '!', x.v = 'a' AS same",
            ["k", "?column?", "same"],
            [(1, "11!", True), (2, "21!", False)],
        ),
        ("UPDATE t SET n = 5 WHERE k = 1 RETURNING length(v), *", None, None),
        (
            "DELETE FROM t WHERE k = 1 RETURNING j->>'x', round(d), d IS NULL",
            ["?column?", "round", "?column?"],
            [("1", 2, False)],
        ),
        ("DELETE FROM t WHERE k = 7 RETURNING upper(v)", ["upper"], []),
        (
            "UPSERT INTO t VALUES (1, 7, 'z') RETURNING k, n BETWEEN 1 AND 9, greatest(n, 8)",
            ["k", "?column?", "greatest"],
            [(1, True, 8)],
        ),
        (
            "INSERT INTO t VALUES (1, 1, 'new') ON CONFLICT (k) DO UPDATE SET v = excluded.v "
            "RETURNING initcap(v), (SELECT note FROM u WHERE u.k = t.k)",
            ["initcap", "note"],
            [("New", "one")],
        ),
    ],
)
@pytest.mark.parametrize("begin", [False, True])
def test_any_expression_of_the_written_row(
    text: str, names: list[str] | None, rows: list[tuple[object, ...]] | None, *, begin: bool
) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        done = await node.sql(text)
        if names is None:
            assert [c.name for c in done.columns] == ["length", "k", "n", "v", "d", "j"]
            assert done.fetch_rows()[0][:3] == (1, 1, 5)
            return
        assert [column.name for column in done.columns] == names
        assert done.fetch_rows() == rows

    run(scenario)


def test_subqueries_see_what_was_there_before_the_statement() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(
            "DELETE FROM t RETURNING (SELECT count(*) FROM t), (SELECT max(n) FROM t WHERE k > $1)",
            0,
        )
        assert done.fetch_rows() == [(2, 20), (2, 20)]
        assert await node.rows("SELECT count(*) FROM t") == [(0,)]

    run(scenario)


def test_beside_other_tables_it_is_of_the_written_one() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(
            "WITH w AS (SELECT 5 AS five) UPDATE t SET n = 0 FROM u WHERE u.t_k = t.k "
            "RETURNING upper(v), (SELECT max(w.five) FROM w), (SELECT t.v || '?')"
        )
        assert sorted(done.fetch_rows()) == [("A", 5, "a?"), ("B", 5, "b?")]

    run(scenario)


def test_a_part_of_with_returns_them_to_the_others() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(
            "WITH gone AS (DELETE FROM t RETURNING k, upper(v) AS big) "
            "INSERT INTO u SELECT k + 10, k, big FROM gone RETURNING note, length(note)"
        )
        assert sorted(done.fetch_rows()) == [("A", 1), ("B", 1)]

    run(scenario)


def test_parameters_and_types_are_described() -> None:
    async def scenario(node: SqlNode) -> None:
        session = node.session()
        made = await session.prepare(
            "UPDATE t SET n = $1 WHERE k = $2 RETURNING n + $3, repeat(v, $4::INT8), $5::DATE, d",
            [],
        )
        assert [str(type) for type in made.parameter_types[:3]] == ["INT8"] * 3
        described = await session.describe(made)
        done = await session.run(made, [4, 1, 5, 2, "2025-01-02"])
        assert done.columns == described
        assert done.fetch_rows()[0][:2] == (9, "aa")
        assert str(described[3].type) == "DECIMAL(10,2)"

    run(scenario)


@pytest.mark.parametrize(
    ("returning", "sqlstate"),
    [
        ("1 / (n - n)", "22012"),
        ("length(v) / (n - n)", "22012"),
        ("count(*)", "42803"),
        ("row_number() OVER ()", "42P20"),
        ("generate_series(1, 3)", "0A000"),
        ("upper(nix)", "42703"),
        ("nix(v)", "42883"),
        ("(SELECT k FROM nix)", "42P01"),
        ("(SELECT k FROM u)", "21000"),
    ],
)
def test_one_that_fails_writes_nothing(returning: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(f"INSERT INTO t VALUES (3, 30, 'c') RETURNING {returning}")
        assert error.sqlstate == sqlstate
        assert await node.rows("SELECT count(*) FROM t") == [(2,)]

    run(scenario)


def test_what_a_subquery_reads_is_asked_for() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE USER eve")
        await node.sql("GRANT INSERT, SELECT ON t TO eve")
        eve = node.session(user="eve")
        text = "INSERT INTO t VALUES (5) RETURNING (SELECT note FROM u WHERE u.k = 1)"
        with pytest.raises(SQLError) as caught:
            await eve.execute(text)
        assert caught.value.sqlstate == "42501"

    run(scenario)


def test_arithmetic_on_decimals_has_the_digits_that_select_gives_it() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE prices (k INT8 PRIMARY KEY, price DECIMAL(10,2), bare DECIMAL)"
        )
        await node.sql("INSERT INTO prices VALUES (1, 5, 2)")
        for items in ("price - 1", "price * price, price / 3", "-price, price, bare", "1.5"):
            told = await node.rows(f"UPDATE prices SET bare = bare RETURNING {items}")
            assert list(map(str, told[0])) == list(
                map(str, (await node.rows(f"SELECT {items} FROM prices"))[0])
            )

    run(scenario)
