"""Statements of many rows let the loop go on between rows, whatever they do with them."""

from __future__ import annotations

from asyncio import Handle

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

ROWS = 3000
TURNS_MIN = 160
"""Steps of the loop. Each of these statements has some 60 more."""

STATEMENTS = [
    "UPDATE t SET note = note || 'x'",
    "UPDATE t SET n = n + 1 WHERE k >= 0",
    "UPDATE t SET k = k + 100000",
    "UPDATE t SET n = 5 RETURNING *",
    "DELETE FROM t WHERE n >= 0",
    f"INSERT INTO t SELECT g, g, 'a' FROM generate_series({ROWS}, {2 * ROWS}) AS s (g)",
    f"INSERT INTO t SELECT g, g, 'a' FROM generate_series(1, {ROWS}) AS s (g) "
    "ON CONFLICT (k) DO UPDATE SET n = t.n + 1",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_loop_goes_on_meanwhile(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, n INT8, note TEXT, INDEX (n))")
            rows = ", ".join(f"({k}, {k}, 'note {k}')" for k in range(ROWS))
            await node.sql(f"INSERT INTO t VALUES {rows}")
            turns, run = 0, Handle._run

            def counted(handle: Handle) -> None:
                nonlocal turns
                turns += 1
                run(handle)

            monkeypatch.setattr(Handle, "_run", counted)
            await node.sql(text)
            monkeypatch.undo()
            assert turns > TURNS_MIN, turns

    sim = Simulation(1)
    sim.run(main(sim))
