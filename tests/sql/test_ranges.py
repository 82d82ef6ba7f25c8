"""SPLIT AT, UNSPLIT and SHOW RANGES, from text to ranges."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = "CREATE TABLE t (a INT8, b STRING, v INT8, PRIMARY KEY (a, b))"


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            for text in (TABLE, *set_up):
                await node.sql(text)
            await scenario(node)

    sim.run(main())


async def borders(node: SqlNode, of: str = "TABLE t") -> list[object]:
    """Where each range of the table but the first begins."""
    rows = await node.rows(f"SHOW RANGES FROM {of}")
    return [row[0] for row in rows[1:]]


def test_split_at_values_is_shown() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows("ALTER TABLE t SPLIT AT VALUES (10), (20, 'x')")
        assert [str(row[1]).split("/", 3)[3] for row in rows] == ["1/10", '1/20/"x"']
        assert await borders(node) == ["…/1/10", '…/1/20/"x"']
        shown = await node.rows("SHOW RANGES FROM TABLE t")
        assert shown[0][0] == "<before:/Min>"
        assert shown[-1][1] == "<after:/Max>"
        assert [row[1] for row in shown[:-1]] == [row[0] for row in shown[1:]]

    run(scenario)


def test_statements_cross_the_borders() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO t VALUES (5, 'a', 1), (15, 'b', 2), (25, 'c', 3)")
        await node.sql("UPDATE t SET v = v + 1")
        assert await node.rows("SELECT a, v FROM t") == [(5, 2), (15, 3), (25, 4)]
        assert await node.rows("SELECT a FROM t WHERE a > 10 ORDER BY a DESC, b DESC") == [
            (25,),
            (15,),
        ]
        await node.sql("DELETE FROM t WHERE a > 10")
        assert await node.rows("SELECT a FROM t") == [(5,)]

    run(scenario, "ALTER TABLE t SPLIT AT VALUES (10), (20)")


def test_details_tell_size_and_load() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO t VALUES (15, 'a', 1)")
        result = await node.sql("SHOW RANGES FROM TABLE t WITH DETAILS")
        names = [column.name for column in result.columns]
        (row,) = [row for row in result.fetch_rows() if row[0] == "…/1/10"]
        told = dict(zip(names, row, strict=True))
        assert told["version_count"] == 1
        assert isinstance(told["range_size"], int)
        assert told["range_size"] > 0
        assert told["lease_holder"] == 1

    run(scenario, "ALTER TABLE t SPLIT AT VALUES (10), (20)")


def test_unsplit_lets_the_queue_merge() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE t UNSPLIT AT VALUES (10)")
        await asyncio.sleep(30)
        assert await borders(node) == ["…/1/20"]
        await node.sql("ALTER TABLE t UNSPLIT ALL")
        await asyncio.sleep(30)
        assert await borders(node) == []

    run(scenario, "ALTER TABLE t SPLIT AT VALUES (10), (20)")


def test_parameters_are_borders() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE t SPLIT AT VALUES ($1, $2)", 7, 'say "x"')
        assert await borders(node) == ['…/1/7/"say \\"x\\""']

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("ALTER TABLE t SPLIT AT VALUES (1, 'x', 3)", "42601"),
        ("ALTER TABLE t SPLIT AT VALUES ('x')", "22P02"),
        ("ALTER TABLE t SPLIT AT VALUES (true)", "42804"),
        ("ALTER TABLE t SPLIT AT VALUES (NULL)", "23502"),
        ("ALTER TABLE t SPLIT AT VALUES (v)", "0A000"),
        ("ALTER TABLE t SPLIT AT VALUES ()", "42601"),
        ("ALTER TABLE t SPLIT AT SELECT 1", "0A000"),
        ("ALTER TABLE IF EXISTS t SPLIT AT VALUES (1)", "42601"),
        ("ALTER TABLE t SPLIT AT (1)", "42601"),
        ("ALTER TABLE t SPLIT AT VALUES (1) WITH EXPIRATION '1h'", "0A000"),
        ("ALTER TABLE t UNSPLIT AT VALUES (1)", "22023"),
        ("ALTER TABLE u SPLIT AT VALUES (1)", "42P01"),
        ("ALTER INDEX t@nothing SPLIT AT VALUES (1)", "42601"),
        ("SHOW RANGES FROM TABLE u", "42P01"),
        ("SHOW RANGES FROM TABLE tailrace_internal.leases", "42809"),
        ("SHOW RANGES", "42601"),
    ],
)
def test_bad_input_is_refused(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(text)).sqlstate == sqlstate
        assert await borders(node) == []

    run(scenario)


def test_splits_are_no_part_of_a_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        assert (await node.error("ALTER TABLE t SPLIT AT VALUES (1)")).sqlstate == "25001"

    run(scenario)
