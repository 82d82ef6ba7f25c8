"""Columns of WITH RECURSIVE."""

from __future__ import annotations

from decimal import Decimal

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def _recursive_columns(node: SqlNode) -> None:
    recursive = (
        "WITH RECURSIVE r (n) AS (SELECT {} UNION ALL SELECT {} FROM r WHERE {}) SELECT n FROM r"
    )
    doubled = recursive.format("ARRAY[1]", "n || 2", "cardinality(n) < 3")
    assert await node.rows(doubled) == [([1],), ([1, 2],), ([1, 2, 2],)]
    grown = recursive.format("1::DECIMAL(9, 2)", "(n * 1.5)::DECIMAL(9, 2)", "n < 2")
    assert await node.rows(grown) == [(Decimal(1),), (Decimal("1.5"),), (Decimal("2.25"),)]
    rounded = await node.error(recursive.format("1", "n * 1.5", "n < 2"))
    assert (rounded.sqlstate, "column 1 has type bigint" in rounded.message) == ("42804", True)


def test_recursive_columns_have_the_types_of_their_first_rows() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with sql_node(sim) as node:
            await _recursive_columns(node)

    sim.run(main())
