"""Joins read the keys that their conditions allow: the oracle is DuckDB over all rows."""

from __future__ import annotations

from random import Random

import duckdb
import pytest

from tailrace.catalog.values.column_types import Datum
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ORDERS = [(k, k % 4 if k % 5 else None) for k in range(12)]
LINES = [(k % 6, n, k * n if k != n else None) for k in range(14) for n in range(3) if k // 6 < 2]
SCANNED = "key range scan"
WHOLE = "full scan"


async def prepare(node: SqlNode) -> None:
    await node.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, buyer INT8)")
    await node.sql("CREATE INDEX by_buyer ON orders (buyer)")
    await node.sql(
        "CREATE TABLE lines (order_id INT8, n INT8, price INT8, PRIMARY KEY (order_id, n))"
    )
    for table, rows in rows_of_tables().items():
        told = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        await node.sql(f"INSERT INTO {table} VALUES {told}")


def rows_of_tables() -> dict[str, list[tuple[Datum, ...]]]:
    lines = {row[:2]: row for row in LINES}
    return {"orders": list(ORDERS), "lines": list(lines.values())}


def literal(value: Datum) -> str:
    return "NULL" if value is None else repr(value)


async def reads(node: SqlNode, query: str) -> list[str]:
    """How each table of the query is read."""
    told = await node.rows(f"EXPLAIN ANALYZE {query}")
    return [str(value).partition(":")[0] for name, value in told if name == "read"]


JOINED = "FROM orders o JOIN lines l ON l.order_id = o.id"
LEFT = "FROM orders o LEFT JOIN lines l ON l.order_id = o.id"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT * {JOINED} WHERE o.id = 7", [SCANNED, SCANNED]),
        (f"SELECT * {JOINED} WHERE l.order_id IN (3, 4)", [SCANNED, SCANNED]),
        (f"SELECT * {JOINED} AND o.id < 3", [SCANNED, SCANNED]),
        (f"SELECT * {JOINED} WHERE o.id = ANY (ARRAY[3, 4])", [SCANNED, SCANNED]),
        ("SELECT * FROM orders o, lines WHERE order_id = id AND id = 7", [SCANNED, SCANNED]),
        ("SELECT * FROM orders o JOIN orders p USING (id) WHERE o.id = 7", [SCANNED, SCANNED]),
        ("SELECT * FROM orders o LEFT JOIN orders p USING (id) WHERE o.id = 7",
         [SCANNED, SCANNED]),
        ("SELECT * FROM lines a, lines b WHERE a.order_id = b.n AND b.n = 1", [SCANNED, WHOLE]),
        (f"SELECT * {LEFT} WHERE o.id = 7", [SCANNED, SCANNED]),
        (f"SELECT * {LEFT} WHERE l.order_id = 7", [WHOLE, SCANNED]),
        (f"SELECT * {LEFT} AND l.order_id < 4", [WHOLE, SCANNED]),
        (f"SELECT * {LEFT} AND o.id = 4", [WHOLE, WHOLE]),
        (f"SELECT * {LEFT} WHERE l.order_id IS NULL", [WHOLE, WHOLE]),
        ("SELECT * FROM lines l LEFT JOIN orders o ON o.id = l.n WHERE o.buyer IS NULL",
         [WHOLE, WHOLE]),
        ("SELECT * FROM orders o RIGHT JOIN lines l ON l.order_id = o.id WHERE o.id = 7",
         [WHOLE, WHOLE]),
        (f"SELECT (SELECT 1) {JOINED} WHERE o.id = 7", [WHOLE, WHOLE]),
    ],
)  # fmt: skip
def test_what_a_join_reads(query: str, expected: list[str]) -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            assert await reads(node, query) == expected

    sim.run(scenario())


def test_virtual_tables_have_no_keys() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            source = "pg_catalog.pg_class c WHERE c.oid > 0 AND c.relname = 'orders'"
            await node.sql(f"UPDATE orders SET buyer = 77 FROM {source} AND orders.id = 3")
            await node.sql(f"DELETE FROM orders USING {source} AND orders.id = 4")
            rows = await node.rows("SELECT * FROM orders WHERE id IN (3, 4)")
            assert rows == [(3, 77)]

    sim.run(scenario())


def random_query(random: Random) -> str:
    tables = [(random.choice(["orders", "lines"]), f"t{n}") for n in range(random.randint(2, 3))]
    columns = {
        alias: ["id", "buyer"] if table == "orders" else ["order_id", "n", "price"]
        for table, alias in tables
    }

    def column(aliases: list[str]) -> str:
        alias = random.choice(aliases)
        return f"{alias}.{random.choice(columns[alias])}"

    def condition(aliases: list[str]) -> str:
        one = column(aliases)
        return random.choice(
            [
                f"{one} = {column(aliases)}",
                f"{one} = {column(aliases)}",
                f"{one} = {random.randrange(7)}",
                f"{one} < {random.randrange(7)}",
                f"{one} IN ({random.randrange(7)}, {random.randrange(7)})",
                f"{one} IS NULL",
                f"{one} IS {random.choice(['', 'NOT '])}NULL",
                f"({one} = {random.randrange(7)} OR {column(aliases)} = 1)",
            ]
        )

    def conditions(aliases: list[str], least: int) -> str:
        chosen = [condition(aliases) for _ in range(random.randint(least, 3))]
        return " AND ".join(chosen)

    text, seen = f"{tables[0][0]} t0", ["t0"]
    for table, alias in tables[1:]:
        seen.append(alias)
        kind = random.choice(["JOIN", "LEFT JOIN"])
        if table == tables[0][0] and len(seen) == 2 and random.random() < 0.3:
            text += f" {kind} {table} {alias} USING ({columns[alias][0]})"
        else:
            text += f" {kind} {table} {alias} ON {conditions(seen, 1)}"
    where = conditions(seen, 0)
    items = ", ".join(f"{alias}.{name}" for alias in seen for name in columns[alias])
    return f"SELECT {items} FROM {text}" + (f" WHERE {where}" if where else "")


@pytest.mark.parametrize("seed", range(4))
def test_joins_find_what_all_rows_would_give(seed: int) -> None:
    sim, random = Simulation(seed), Random(seed)

    def ordered(rows: list[tuple[Datum, ...]]) -> list[str]:
        return sorted(map(repr, rows))

    async def scenario() -> None:
        oracle = duckdb.connect()
        for table, rows in rows_of_tables().items():
            width = len(rows[0])
            names = ["id", "buyer"] if width == 2 else ["order_id", "n", "price"]
            oracle.sql(f"CREATE TABLE {table} ({', '.join(f'{name} INT8' for name in names)})")
            oracle.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)
        narrowed = 0
        async with sql_node(sim) as node:
            await prepare(node)
            for _ in range(60):
                query = random_query(random)
                found = await node.rows(query)
                assert ordered(found) == ordered(oracle.sql(query).fetchall()), query
                narrowed += SCANNED in await reads(node, query)
        assert narrowed > 10, narrowed

    sim.run(scenario())
