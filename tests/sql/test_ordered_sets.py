"""percentile_cont() and percentile_disc(), and recursive columns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def _percentiles(node: SqlNode) -> None:
    await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY, price DECIMAL(8,2), took INTERVAL)")
    await node.sql("INSERT INTO t VALUES (1, 1.00, '1h'), (2, 2.25, '4h'), (3, NULL, NULL)")
    over_prices = "percentile_cont(0.5) WITHIN GROUP (ORDER BY price)"
    assert await node.rows(f"SELECT {over_prices} FROM t") == [(1.625,)]
    assert await node.rows(f"SELECT {over_prices} FILTER (WHERE id > 1) FROM t") == [(2.25,)]
    assert await node.rows(f"SELECT {over_prices} FROM t WHERE id > 3") == [(None,)]
    for text, state in (
        ("percentile_cont(1.5) WITHIN GROUP (ORDER BY price)", "42804"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY took)", "42883"),
        ("percentile_disc(id / 4.0) WITHIN GROUP (ORDER BY price)", "0A000"),
        ("mode() WITHIN GROUP (ORDER BY price)", "0A000"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY id, price)", "0A000"),
        (f"round({over_prices}, 1)", "42883"),
        ("rank(id) WITHIN GROUP (ORDER BY id)", "0A000"),
    ):
        assert (await node.error(f"SELECT {text} FROM t")).sqlstate == state, text


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


@pytest.mark.parametrize("scenario", [_percentiles, _recursive_columns])
def test_values_are_those_of_postgres(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())
