"""RETURNING of what Python computes of the rows that are written; for more there is WITH."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

T = "CREATE TABLE t (k INT8 PRIMARY KEY, n INT4, v STRING, d DECIMAL(10,2), j JSONB, m mood)"
U = "CREATE TABLE u (k INT8 PRIMARY KEY, t_k INT8, note STRING)"


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=41)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            await node.sql(T)
            await node.sql(U)
            await node.sql(
                "INSERT INTO t VALUES (1, 10, 'a', 1.5, '{\"x\": 1}', 'ok'), "
                "(2, 20, 'b', 2, NULL, NULL)"
            )
            await node.sql("INSERT INTO u VALUES (1, 1, 'one'), (2, 2, 'two')")
            await scenario(node)

    sim.run(main())


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        (
            "INSERT INTO t (k, n, v) VALUES (9, 1, 'c'), (8, 2, NULL) RETURNING v, n + 1",
            ["v", "?column?"],
            [("c", 2), (None, 3)],
        ),
        (
            "UPDATE t AS x SET n = n + 1 RETURNING x.k, n * 2 AS twice, v || '!' AS loud",
            ["k", "twice", "loud"],
            [(1, 22, "a!"), (2, 42, "b!")],
        ),
        (  # as Prisma writes it
            'UPDATE "public"."t" SET "n" = 3 WHERE ("public"."t"."k" = 1 AND 1=1) '
            'RETURNING "public"."t"."k", "public"."t"."m"::text',
            ["k", "m"],
            [(1, "ok")],
        ),
        ("DELETE FROM t WHERE k = 1 RETURNING d, *", None, None),
        ("DELETE FROM t WHERE k = 7 RETURNING v", ["v"], []),
        (
            "INSERT INTO t VALUES (1, 1, 'new') ON CONFLICT (k) DO UPDATE SET v = excluded.v "
            "RETURNING v, -n",
            ["v", "?column?"],
            [("new", -10)],
        ),
        (
            "WITH w AS (SELECT 5 AS five) UPDATE t SET n = five FROM u, w "
            "WHERE u.t_k = t.k AND t.k = 2 RETURNING t.n",
            ["n"],
            [(5,)],
        ),
    ],
)
@pytest.mark.parametrize("begin", [False, True])
def test_what_python_computes_of_the_written_row(
    text: str, names: list[str] | None, rows: list[tuple[object, ...]] | None, *, begin: bool
) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        done = await node.sql(text)
        if names is None:
            assert [c.name for c in done.columns] == ["d", "k", "n", "v", "d", "j", "m"]
            assert done.fetch_rows()[0][1:4] == (1, 10, "a")
            return
        assert [column.name for column in done.columns] == names
        assert done.fetch_rows() == rows

    run(scenario)


def test_a_part_of_with_returns_them_to_the_others() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(
            "WITH gone AS (DELETE FROM t RETURNING k, v) "
            "INSERT INTO u SELECT k + 10, k, upper(v) FROM gone RETURNING note, t_k"
        )
        assert sorted(done.fetch_rows()) == [("A", 1), ("B", 2)]

    run(scenario)


def test_parameters_and_types_are_described() -> None:
    async def scenario(node: SqlNode) -> None:
        session = node.session()
        made = await session.prepare(
            "UPDATE t SET n = $1 WHERE k = $2 RETURNING n + $3, v || $4, $5::DATE, d",
            [],
        )
        assert [str(type) for type in made.parameter_types[:3]] == ["INT4", "INT8", "INT8"]
        described = await session.describe(made)
        done = await session.run(made, [4, 1, 5, "!", "2025-01-02"])
        assert done.columns == described
        assert done.fetch_rows()[0][:2] == (9, "a!")
        assert str(described[3].type) == "DECIMAL(10,2)"

    run(scenario)


@pytest.mark.parametrize(
    ("returning", "sqlstate"),
    [
        ("n + 9223372036854775807", "22003"),
        ("count(*)", "42803"),
        ("row_number() OVER ()", "42P20"),
        ("generate_series(1, 3)", "0A000"),
        ("upper(v)", "0A000"),
        ("d - 1", "0A000"),
        ("(SELECT k FROM u)", "0A000"),
        ("upper(nix)", "42703"),
        ("(SELECT k FROM nix)", "42P01"),
    ],
)
def test_one_that_fails_writes_nothing(returning: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(f"INSERT INTO t VALUES (3, 30, 'c') RETURNING {returning}")
        assert error.sqlstate == sqlstate
        assert await node.rows("SELECT count(*) FROM t") == [(2,)]

    run(scenario)
