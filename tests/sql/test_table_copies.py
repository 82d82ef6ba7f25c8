"""CREATE TABLE … AS."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

T = (
    "CREATE TABLE t (k INT8 PRIMARY KEY, n DECIMAL(10,2) NOT NULL DEFAULT 7, v VARCHAR(3) UNIQUE, "
    "d INT8 AS (k * 2) STORED, CHECK (n > 0), INDEX by_n (n))"
)
ROWS = "INSERT INTO t (k, n, v) VALUES (1, 1.50, 'a'), (2, 2.50, 'b')"


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=9)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(T)
            await node.sql(ROWS)
            await scenario(node)

    sim.run(main())


@pytest.mark.parametrize("begin", [False, True], ids=["alone", "in a transaction"])
def test_a_table_is_made_of_a_query(*, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN; INSERT INTO t (k, v) VALUES (3, 'c')")
        count = 3 if begin else 2
        done = await node.sql("CREATE TABLE c AS SELECT k AS a, n AS m, v, now() AS at FROM t")
        assert done.tag == f"SELECT {count}"
        assert await node.rows("SELECT count(*), sum(a) FROM c") == [(count, 6 if begin else 3)]
        shown = await node.rows("SHOW COLUMNS FROM c")
        assert [row[:2] for row in shown][:4] == [
            ("a", "INT8"), ("m", "DECIMAL(10,2)"), ("v", "VARCHAR(3)"), ("at", "TIMESTAMPTZ"),
        ]  # fmt: skip
        if begin:
            await node.sql("ROLLBACK")
            assert (await node.error("SELECT * FROM c")).sqlstate == "42P01"

    run(scenario)


def test_as_takes_all_kinds_of_queries() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE a AS VALUES (1, 'x'), (2, 'y')")
        assert await node.rows("SELECT column2 FROM a ORDER BY 1") == [("x",), ("y",)]
        await node.sql(
            "CREATE TABLE b WITH (fillfactor = 70) AS WITH w AS (SELECT 1 AS i) SELECT * FROM w"
        )
        assert await node.rows("SELECT * FROM b") == [(1,)]
        done = await node.sql("CREATE TABLE IF NOT EXISTS b AS SELECT 1/0")
        assert done.notice is not None
        await node.sql("CREATE TABLE big AS SELECT g FROM generate_series(1, 2500) AS s(g)")
        assert await node.rows("SELECT count(*), sum(g) FROM big") == [(2500, 2500 * 2501 // 2)]

    run(scenario)


WRONG = {
    "CREATE TABLE t AS SELECT 1": "42P07",
    "CREATE TABLE c AS SELECT * FROM nix": "42P01",
    "CREATE TABLE c (a, b) AS SELECT 1": "42601",
    "CREATE TABLE c (a, b)": "42601",
    "CREATE TABLE c AS SELECT 1 AS a, 2 AS a": "42701",
    "CREATE TABLE c AS SELECT k FROM t AS OF SYSTEM TIME '-1s'": "0A000",
    "CREATE TABLE c AS": "42601",
    "CREATE TABLE c (LIKE t INCLUDING ALL)": "0A000",
}


def test_what_is_wrong_leaves_nothing() -> None:
    async def scenario(node: SqlNode) -> None:
        for text, sqlstate in WRONG.items():
            error = await node.error(text)
            assert error.sqlstate == sqlstate, (text, error)
        assert await node.rows("SHOW TABLES") == [("public", "t", "table", False)]

    run(scenario)
