"""What an ALTER that failed leaves: nothing, from the moment it says so."""

from __future__ import annotations

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node


@pytest.mark.parametrize("seed", range(4))
def test_the_next_statement_knows_nothing_of_it(seed: int) -> None:
    sim = Simulation(seed=seed)

    async def main() -> None:
        async with sql_node(sim) as node:
            for number in range(6):
                table = f"t{number}"
                await node.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY, n INT8)")
                await node.sql(f"INSERT INTO {table} VALUES (1, 1)")
                failed = await node.error(f"ALTER TABLE {table} ADD CONSTRAINT c CHECK (n > 1)")
                assert failed.sqlstate == "23514"
                await node.sql(f"INSERT INTO {table} VALUES (2, 0)")

    sim.run(main())
