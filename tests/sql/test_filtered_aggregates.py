"""FILTER, subqueries in arrays, functions that return sets, and operands that have names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def _table(node: SqlNode) -> None:
    await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY, n INT8, s STRING)")
    await node.sql("INSERT INTO t VALUES (1, 0, 'x'), (2, 2, '7'), (3, 1, '8')")


async def _filtered(node: SqlNode) -> None:
    await _table(node)
    for aggregate, expected in (
        ("sum(6 / n) FILTER (WHERE n <> 0)", 9),
        ("count(DISTINCT 6 / n) FILTER (WHERE n <> 0)", 2),
        ("array_agg(6 / n ORDER BY 6 / n DESC) FILTER (WHERE n <> 0)", [6, 3]),
        ("max(s::INT8) FILTER (WHERE s <> 'x')", 8),
        ("sum(6 / n) FILTER (WHERE n <> 0 AND random() < 2)", None),
    ):
        if expected is None:  # a row is chosen once, so it is computed first
            assert (await node.error(f"SELECT {aggregate} FROM t")).sqlstate == "22012"
        else:
            assert await node.rows(f"SELECT {aggregate} FROM t") == [(expected,)], aggregate


async def _asked_for_rows(node: SqlNode) -> None:
    await _table(node)
    within = "SELECT id FROM t WHERE id = ANY(ARRAY(SELECT n FROM t)) ORDER BY id"
    assert await node.rows(within) == [(1,), (2,)]
    without = "SELECT id FROM t WHERE id <> ALL(ARRAY(SELECT n FROM t)) ORDER BY id"
    assert await node.rows(without) == [(3,)]


async def _conditional_series(node: SqlNode) -> None:
    await _table(node)
    for item in (
        "CASE WHEN n > 0 THEN unnest(ARRAY[1, 2]) END",
        "coalesce(generate_series(1, 2), 0)",
    ):
        assert (await node.error(f"SELECT {item} FROM t")).sqlstate == "0A000", item
    assert (await node.error("SELECT to_jsonb(r) FROM t AS r (a, b)")).sqlstate == "0A000"


@pytest.mark.parametrize("scenario", [_filtered, _asked_for_rows, _conditional_series])
def test_queries_are_those_of_postgres(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(6)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())
