"""Rows of VALUES and of tables, frames of windows, and operators that are called as functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def _table(node: SqlNode) -> None:
    await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY, day DATE, s STRING)")
    await node.sql(
        "INSERT INTO t VALUES (1, '2024-01-01', 'a'), (2, '2024-01-02', 'b'),"
        " (3, '2024-01-09', NULL)"
    )


async def _rows(node: SqlNode) -> None:
    await _table(node)
    for condition, expected in (
        ("(id, s) IN (VALUES (1, 'a'), (2, 'x'))", [1]),
        ("(id, s) NOT IN (VALUES (1, 'a'))", [2, 3]),
        ("id IN (VALUES (1), (3))", [1, 3]),
    ):
        found = await node.rows(f"SELECT id FROM t WHERE {condition} ORDER BY id")
        assert found == [(id,) for id in expected], condition
    assert "IN (VALUES" in ((await node.error("SELECT 1 = ANY (VALUES (1))")).hint or "")
    for item in ("count(t.*)", "(t.*)::STRING"):
        assert (await node.error(f"SELECT {item} FROM t")).sqlstate == "0A000", item


async def _frames(node: SqlNode) -> None:
    await _table(node)
    counted = "SELECT count(*) OVER (ORDER BY {} RANGE BETWEEN {} PRECEDING AND CURRENT ROW) FROM t"
    text = counted.replace("RANGE", "ROWS").format("day", "'1'") + " ORDER BY id LIMIT 2"
    assert await node.rows(text) == [(1,), (2,)], text
    for key, reach in (("day", "INTERVAL '1 day'"), ("id", "1"), ("id * 1.5", "1.5")):
        text = counted.format(key, reach) + " ORDER BY id LIMIT 2"
        assert await node.rows(text) == [(1,), (2,)], reach


async def _operators(node: SqlNode) -> None:
    for call in (
        "jsonb_exists_any('{\"a\": 1}', ARRAY['a', 'b'])",
        "jsonb_contains('{\"a\": 1}', '{}')",
        "jsonb_concat('[1]', '[2]')",
    ):
        error = await node.error(f"SELECT {call}")
        assert error.sqlstate == "0A000", call
        assert "JDBC" in (error.hint or ""), call


@pytest.mark.parametrize("scenario", [_rows, _frames, _operators])
def test_queries_are_those_of_postgres(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(8)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())
