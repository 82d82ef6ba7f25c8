"""INSERT … VALUES with subqueries and functions among the values."""

from __future__ import annotations

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

T = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING DEFAULT 'none', d DATE)"


async def _scenario(node: SqlNode) -> None:
    await node.sql(T)
    await node.sql("INSERT INTO t VALUES (abs(-1), upper('a'), '2025-01-02'), (2, 'none', NULL)")
    await node.sql("INSERT INTO t (v, k) VALUES ($1, (SELECT max(k) + 1 FROM t))", "p")
    await node.sql(
        "INSERT INTO t VALUES (length('x'), lower('B')) "
        "ON CONFLICT (k) DO UPDATE SET v = excluded.v"
    )
    rows = await node.rows("SELECT k, v, d::STRING FROM t ORDER BY k")
    assert rows == [(1, "b", "2025-01-02"), (2, "none", None), (3, "p", None)]
    wrong = {
        "INSERT INTO t VALUES (abs(-1), 'x', now(), 4)": "42601",
        "INSERT INTO t VALUES (abs(-1)), (2, 'x')": "42601",
        "INSERT INTO t VALUES (abs(nix))": "42703",
        "INSERT INTO t VALUES ((SELECT k FROM nix))": "42P01",
        "INSERT INTO t VALUES (abs(-9), lower('x'), 'no date')": "22007",
    }
    for text, sqlstate in wrong.items():
        assert (await node.error(text)).sqlstate == sqlstate, text
    assert await node.rows("SELECT count(*) FROM t") == [(3,)]


def test_values_may_be_any_expressions() -> None:
    sim = Simulation(seed=13)

    async def main() -> None:
        async with sql_node(sim) as node:
            await _scenario(node)

    sim.run(main())
