"""UPDATE … FROM, DELETE … USING, and WITH whose parts write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

T = "CREATE TABLE t (k INT8 PRIMARY KEY, n INT8 DEFAULT 9, v STRING)"
U = "CREATE TABLE u (k INT8 PRIMARY KEY, t_k INT8, n INT8)"
ROWS = "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')"
MORE = "INSERT INTO u VALUES (1, 1, 100), (2, 2, 200), (3, 2, 200), (4, 9, 900)"
BOTH = pytest.mark.parametrize("begin", [False, True], ids=["alone", "in a transaction"])


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str) -> None:
    sim = Simulation(seed=8)

    async def main() -> None:
        async with sql_node(sim) as node:
            for text in set_up or (T, U, ROWS, MORE):
                await node.sql(text)
            await scenario(node)

    sim.run(main())


@BOTH
def test_update_from_changes_each_row_once(*, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN; INSERT INTO u VALUES (5, 3, 300)")
        done = await node.sql(
            "UPDATE t AS x SET n = x.n + u.n, v = v || '!' FROM u WHERE x.k = u.t_k "
            "RETURNING x.k, x.n, v || '?' AS v"
        )
        expected = [(1, 110, "a!?"), (2, 220, "b!?"), (3, 330, "c!?")]
        assert sorted(done.fetch_rows()) == expected[: 3 if begin else 2]
        assert done.tag == f"UPDATE {3 if begin else 2}"
        left = (3, 330, "c!") if begin else (3, 30, "c")
        assert await node.rows("SELECT * FROM t ORDER BY k") == [
            (1, 110, "a!"), (2, 220, "b!"), left,
        ]  # fmt: skip

    run(scenario)


@pytest.mark.parametrize(
    "source",
    [
        "u JOIN t AS o ON o.k = u.t_k WHERE t.k = o.k",
        "(SELECT t_k, max(n) AS n FROM u GROUP BY t_k) AS u WHERE u.t_k = t.k",
        "u, t AS o WHERE t.k = o.k AND u.t_k = o.k",
    ],
)
def test_sources_may_be_joins_and_queries(source: str) -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(f"UPDATE t SET n = u.n FROM {source} RETURNING t.k, t.n")
        assert sorted(done.fetch_rows()) == [(1, 100), (2, 200)]
        assert await node.rows("SELECT k, n FROM t ORDER BY k") == [(1, 100), (2, 200), (3, 30)]

    run(scenario)


@BOTH
def test_delete_using_deletes_each_row_once(*, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        done = await node.sql(
            "DELETE FROM t USING u WHERE t.k = u.t_k AND u.n > $1 RETURNING t.*", 150
        )
        assert [column.name for column in done.columns] == ["k", "n", "v"]
        assert done.fetch_rows() == [(2, 20, "b")]
        assert await node.rows("SELECT k FROM t ORDER BY k") == [(1,), (3,)]

    run(scenario)


def test_several_columns_come_from_one_list() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("UPDATE t SET (n, v) = (DEFAULT, (SELECT max(v) FROM t)) WHERE k = 3")
        assert await node.rows("SELECT * FROM t WHERE k = 3") == [(3, 9, "c")]

    run(scenario)


def test_with_stands_before_statements_that_write() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "WITH m AS (SELECT t_k, n FROM u WHERE k = $1) UPDATE t SET n = m.n FROM m "
            "WHERE m.t_k = t.k",
            2,
        )
        await node.sql("WITH m AS (SELECT max(k) AS k FROM t) INSERT INTO t SELECT k + 1 FROM m")
        await node.sql("WITH m AS (SELECT 1 AS k) DELETE FROM t WHERE k IN (SELECT k FROM m)")
        await node.sql(
            "WITH RECURSIVE r AS (SELECT 50 AS k UNION ALL SELECT k + 1 FROM r WHERE "
            "k < 52) INSERT INTO t (k) SELECT k FROM r"
        )
        assert await node.rows("SELECT k, n FROM t ORDER BY k") == [
            (2, 200), (3, 30), (4, 9), (50, 9), (51, 9), (52, 9),
        ]  # fmt: skip

    run(scenario)


@BOTH
def test_rows_move_from_one_table_to_another(*, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        done = await node.sql(
            "WITH gone (key, amount) AS (DELETE FROM t WHERE k < 3 RETURNING k, n), "
            "big AS (SELECT * FROM gone WHERE amount > $1) "
            "INSERT INTO u (k, n) SELECT key + 10, amount FROM big RETURNING k, n",
            15,
        )
        assert (done.tag, done.fetch_rows()) == ("INSERT 0 1", [(12, 20)])
        assert await node.rows("SELECT k FROM t") == [(3,)]
        assert await node.rows("SELECT n FROM u WHERE k = 12") == [(20,)]

    run(scenario)


def test_all_parts_see_one_snapshot() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(
            "WITH made AS (INSERT INTO t VALUES (4, 40) RETURNING n), "
            "gone AS (DELETE FROM t WHERE k = 1 RETURNING n), "
            "more AS (UPDATE t SET n = n + 1 WHERE k = 2) "
            "SELECT (SELECT sum(n) FROM t), (SELECT sum(n) FROM made), (SELECT n FROM gone)"
        )
        assert (done.tag, done.fetch_rows()) == ("SELECT 1", [(60, 40, 10)])
        assert await node.rows("SELECT k, n FROM t ORDER BY k") == [(2, 21), (3, 30), (4, 40)]

    run(scenario)


def test_a_part_reads_tables_that_no_other_names() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(
            "WITH made AS (INSERT INTO u (k, n) SELECT k + 50, n FROM t WHERE k < 3 RETURNING n) "
            "SELECT sum(n) FROM made"
        )
        assert done.fetch_rows() == [(30,)]

    run(scenario)


def test_a_row_is_changed_by_the_first_part_alone() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql("WITH a AS (DELETE FROM t WHERE k < 3) UPDATE t SET n = 0")
        assert done.tag == "UPDATE 1"
        assert await node.rows("SELECT k, n FROM t") == [(3, 0)]
        # What is deleted makes room for what is inserted, as in Postgres.
        await node.sql("WITH t AS (DELETE FROM t RETURNING *) INSERT INTO t SELECT k, n + 1 FROM t")
        assert await node.rows("SELECT k, n FROM t") == [(3, 1)]

    run(scenario)


def test_prepared_statements_know_their_columns() -> None:
    async def scenario(node: SqlNode) -> None:
        prepared = await node.first.prepare(
            "WITH a AS (UPDATE t SET n = $1 WHERE k = $2 RETURNING n) SELECT n + 1 AS m FROM a"
        )
        assert [type.kind.value for type in prepared.parameter_types] == ["INT8", "INT8"]
        columns = await node.first.describe(prepared)
        assert [column.name for column in columns] == ["m"]
        assert (await node.first.run(prepared, [5, 1])).fetch_rows() == [(6,)]

    run(scenario)


WRONG = {
    "UPDATE t SET n = m.n FROM u AS m WHERE m.nix = 1": "42703",
    "UPDATE t SET n = nix.n FROM u": "42P01",
    "UPDATE t SET n = 1 FROM u WHERE t.k = u.k RETURNING n": "0A000",
    "UPDATE t SET n = 1 FROM u WHERE t.k = u.k RETURNING *": "0A000",
    "UPDATE t SET n = 1 FROM u WHERE t.k = u.k RETURNING u.*": "0A000",
    "DELETE FROM t USING (SELECT 1 AS z) AS s RETURNING s.z": "0A000",
    "DELETE FROM t USING (SELECT 1 AS z) AS s RETURNING z + 1": "0A000",
    "UPDATE t SET n = 1 FROM u WHERE t.k = u.k RETURNING x.n": "42P01",
    "UPDATE t SET n = 1 FROM u WHERE t.k = u.k RETURNING t.nix": "42703",
    "UPDATE t SET (n, v) = (SELECT 1, 'x')": "0A000",
    "UPDATE t SET (n, v) = (1, 'x', 2)": "42601",
    "WITH a AS (DELETE FROM t) SELECT * FROM a": "0A000",
    "WITH a AS (DELETE FROM t), a AS (DELETE FROM u) SELECT 1": "42712",
    "SELECT * FROM (WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a) AS s": "0A000",
    "WITH a AS (INSERT INTO t VALUES (1) RETURNING k) SELECT * FROM a": "23505",
}


def test_what_is_wrong_changes_nothing() -> None:
    async def scenario(node: SqlNode) -> None:
        for text, sqlstate in WRONG.items():
            error = await node.error(text)
            assert error.sqlstate == sqlstate, (text, error)
        assert await node.rows("SELECT sum(n), (SELECT count(*) FROM u) FROM t") == [(60, 4)]

    run(scenario)
