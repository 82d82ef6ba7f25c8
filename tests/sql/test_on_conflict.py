"""INSERT … ON CONFLICT, by itself, in transactions, and against each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

STOCK = "CREATE TABLE stock (k INT8 PRIMARY KEY, code STRING UNIQUE, n INT8 NOT NULL DEFAULT 1)"
TWO = "INSERT INTO stock VALUES (1, 'a', 10), (2, 'b', 20)"
BOTH = pytest.mark.parametrize("begin", [False, True], ids=["alone", "in a transaction"])


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str, seed: int = 5) -> None:
    sim = Simulation(seed)

    async def main() -> None:
        async with sql_node(sim) as node:
            for text in set_up:
                await node.sql(text)
            await scenario(node)

    sim.run(main())


@BOTH
@pytest.mark.parametrize(
    ("clause", "count"),
    [("", 1), ("(k)", 1), ("ON CONSTRAINT stock_pkey", 1)],
)
def test_do_nothing_passes_over_what_is_there(clause: str, count: int, *, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        done = await node.sql(
            f"INSERT INTO stock VALUES (1, 'x', 0), (3, 'c', 30), (3, 'd', 31) "
            f"ON CONFLICT {clause} DO NOTHING RETURNING k, code"
        )
        assert (done.tag, done.fetch_rows()) == (f"INSERT 0 {count}", [(3, "c")])
        assert await node.rows("SELECT * FROM stock ORDER BY k") == [
            (1, "a", 10),
            (2, "b", 20),
            (3, "c", 30),
        ]

    run(scenario, STOCK, TWO)


def test_without_a_target_every_unique_index_counts() -> None:
    async def scenario(node: SqlNode) -> None:
        insert = "INSERT INTO stock VALUES (1, 'z', 0), (8, 'b', 0), (9, NULL, 9), (10, NULL, 10)"
        assert (await node.sql(f"{insert} ON CONFLICT DO NOTHING")).tag == "INSERT 0 2"
        error = await node.error("INSERT INTO stock VALUES (8, 'b') ON CONFLICT (k) DO NOTHING")
        assert (error.sqlstate, "stock_code_key" in error.message) == ("23505", True)

    run(scenario, STOCK, TWO)


@BOTH
@pytest.mark.parametrize(
    "update",
    [
        "n = stock.n + excluded.n",
        "(n, code) = (excluded.n + stock.n, stock.code)",
        "n = abs(-stock.n) + excluded.n",
        "n = (SELECT stock.n + excluded.n)",
        "(n) = ROW (stock.n + excluded.n)",
    ],
)
def test_do_update_sees_both_rows(update: str, *, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        done = await node.sql(
            "INSERT INTO stock VALUES (3, 'c', 3), (2, 'x', 2), (1, 'y', 1) "
            f"ON CONFLICT (k) DO UPDATE SET {update} RETURNING k, n * 10 AS tenfold"
        )
        assert done.tag == "INSERT 0 3"
        assert done.fetch_rows() == [(3, 30), (2, 220), (1, 110)]
        assert await node.rows("SELECT k, code, n FROM stock ORDER BY k") == [
            (1, "a", 11),
            (2, "b", 22),
            (3, "c", 3),
        ]

    run(scenario, STOCK, TWO)


@pytest.mark.parametrize("where", ["s.n > 15", "s.n > excluded.n", "s.n > $1"])
def test_where_leaves_rows_as_they_are(where: str) -> None:
    async def scenario(node: SqlNode) -> None:
        given = (15,) if "$1" in where else ()
        done = await node.sql(
            "INSERT INTO stock AS s (k, n) VALUES (1, 15), (2, 15) "
            f"ON CONFLICT (k) DO UPDATE SET n = DEFAULT WHERE {where} RETURNING s.k",
            *given,
        )
        assert (done.tag, done.fetch_rows()) == ("INSERT 0 1", [(2,)])
        assert await node.rows("SELECT k, n FROM stock ORDER BY k") == [(1, 10), (2, 1)]

    run(scenario, STOCK, TWO)


def test_a_unique_index_decides_and_its_row_changes() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "INSERT INTO stock VALUES (7, 'b', 5) "
            "ON CONFLICT (code) DO UPDATE SET k = excluded.k, code = 'moved', n = excluded.n"
        )
        assert await node.rows("SELECT * FROM stock ORDER BY k") == [(1, "a", 10), (7, "moved", 5)]
        assert await node.rows("SELECT k FROM stock WHERE code = 'b'") == []
        error = await node.error(
            "INSERT INTO stock VALUES (9, 'a', 5) ON CONFLICT (code) DO UPDATE SET k = 7"
        )
        assert error.sqlstate == "23505"

    run(scenario, STOCK, TWO)


@pytest.mark.parametrize(
    "rows",
    ["(1, 'a', 1), (1, 'a', 2)", "(5, 'e', 1), (5, 'f', 2)"],
    ids=["updated twice", "inserted, then updated"],
)
def test_no_row_is_touched_twice(rows: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(
            f"INSERT INTO stock VALUES {rows} ON CONFLICT (k) DO UPDATE SET n = excluded.n"
        )
        assert error.sqlstate == "21000"
        assert await node.rows("SELECT count(*), sum(n) FROM stock") == [(2, 30)]

    run(scenario, STOCK, TWO)


def test_insert_from_a_query_updates_what_is_there() -> None:
    async def scenario(node: SqlNode) -> None:
        done = await node.sql(
            "INSERT INTO stock SELECT g, 'g' || g, g FROM generate_series(1, 300) AS s(g) "
            "ON CONFLICT (k) DO UPDATE SET n = stock.n + excluded.n"
        )
        assert done.tag == "INSERT 0 300"
        assert await node.rows("SELECT count(*), sum(n) FROM stock") == [(300, 30 + 300 * 301 // 2)]

    run(scenario, STOCK, TWO)


def test_rules_of_the_table_hold_for_both_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        upsert = "ON CONFLICT (k) DO UPDATE SET n = excluded.n - 5"
        assert (await node.error(f"INSERT INTO t VALUES (1, -1) {upsert}")).sqlstate == "23514"
        assert (await node.error(f"INSERT INTO t VALUES (1, 2) {upsert}")).sqlstate == "23514"
        assert (await node.error(f"INSERT INTO t VALUES (1, NULL) {upsert}")).sqlstate == "23502"
        await node.sql(f"INSERT INTO t VALUES (1, 9) {upsert}")
        assert await node.rows("SELECT * FROM t") == [(1, 4, 8)]

    run(
        scenario,
        "CREATE TABLE t (k INT8 PRIMARY KEY, n INT8 NOT NULL CHECK (n >= 0), d INT8 AS (n * 2) "
        "STORED)",
        "INSERT INTO t VALUES (1, 1)",
    )


@pytest.mark.parametrize("level", ["SERIALIZABLE", "READ COMMITTED"])
@pytest.mark.parametrize("key", ["k", "code"])
def test_counters_lose_no_increment(level: str, key: str) -> None:
    """Each of many clients inserts or increments; the sum is that of all who succeeded."""

    async def scenario(node: SqlNode) -> None:
        async def client(number: int) -> None:
            session = node.session()
            for turn in range(4):
                row = f"({turn % 2}, 'c{turn % 2}', 1)"
                while True:
                    try:
                        await session.execute(
                            f"BEGIN ISOLATION LEVEL {level}; INSERT INTO stock VALUES {row} "
                            f"ON CONFLICT ({key}) DO UPDATE SET n = stock.n + excluded.n; COMMIT"
                        )
                        break
                    except SQLError as error:
                        assert error.sqlstate == "40001", error
                        await session.execute("ROLLBACK")
            await session.close()

        await asyncio.gather(*(client(number) for number in range(6)))
        assert await node.rows("SELECT k, n FROM stock ORDER BY k") == [(0, 12), (1, 12)]

    run(scenario, STOCK)


def test_parameters_take_the_types_of_columns() -> None:
    async def scenario(node: SqlNode) -> None:
        prepared = await node.first.prepare(
            "INSERT INTO stock (k, n) VALUES ($1, $2) ON CONFLICT (k) "
            "DO UPDATE SET n = stock.n + $3, code = $4 WHERE stock.n < $5 RETURNING n"
        )
        kinds = [type.kind.value for type in prepared.parameter_types]
        assert kinds == ["INT8", "INT8", "INT8", "STRING", "INT8"]
        done = await node.first.run(prepared, [1, 5, 7, "p", 11])
        assert done.fetch_rows() == [(17,)]

    run(scenario, STOCK, TWO)


WRONG = {
    "(n) DO NOTHING": "42P10",
    "(k, code) DO NOTHING": "42P10",
    "(lower(code)) DO NOTHING": "42P10",
    "(nix) DO NOTHING": "42703",
    "ON CONSTRAINT nix DO NOTHING": "42704",
    "DO UPDATE SET n = 1": "42601",
    "(k) DO UPDATE SET n = n + 1": "42702",
    "(k) DO UPDATE SET n = stock.nix": "42703",
    "(k) DO UPDATE SET n = excluded.nix": "42703",
    "(k) DO UPDATE SET n = other.n": "42P01",
    "(k) DO UPDATE SET n = 1, n = 2": "42601",
    "(k) DO UPDATE SET (n, code) = (1, 'a', 2)": "42601",
    "(k) DO UPDATE SET n = 'x'": "22P02",
    "(k) DO UPDATE SET n = 1 WHERE k = 1": "42702",
}


def test_what_is_wrong_with_a_clause() -> None:
    async def scenario(node: SqlNode) -> None:
        for clause, sqlstate in WRONG.items():
            error = await node.error(f"INSERT INTO stock VALUES (1) ON CONFLICT {clause}")
            assert error.sqlstate == sqlstate, (clause, error)
            assert error.position is not None, (clause, error)

    run(scenario, STOCK)


def test_rows_are_compared_as_a_whole() -> None:
    where = "(s.code, s.n) IS DISTINCT FROM (excluded.code, excluded.n)"

    async def scenario(node: SqlNode) -> None:
        upsert = (
            "INSERT INTO stock AS s VALUES (1, {}, 10) "
            f"ON CONFLICT (k) DO UPDATE SET code = excluded.code WHERE {where}"
        )
        assert (await node.sql(upsert.format("'a'"))).tag == "INSERT 0 0"
        assert (await node.sql(upsert.format("'z'"))).tag == "INSERT 0 1"
        assert (await node.sql(upsert.format("NULL"))).tag == "INSERT 0 1"
        assert (await node.sql(upsert.format("NULL"))).tag == "INSERT 0 0"

    run(scenario, STOCK, TWO)
