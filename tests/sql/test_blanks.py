"""CHAR(n) beside other texts: where blanks at the end mean nothing, in both engines."""

from __future__ import annotations

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node


@pytest.mark.parametrize("tail", ["", " AND id + 0 = id"], ids=["native", "duckdb"])
@pytest.mark.parametrize(
    ("condition", "parameters", "found"),
    [
        ("c = 'ab  '", (), True),
        ("c = 'ab  '::VARCHAR", (), True),
        ("c = 'ab  '::TEXT", (), False),
        ("c = $1", ("ab  ",), True),
        ("c IN ($1, 'x')", ("ab ",), True),
        ("v = 'ab'", (), False),
        ("c = t", (), False),
        ("c = ANY ($1)", (["ab "],), True),
        ("v IN ('ab'::CHAR(3), 'x'::CHAR(3))", (), False),
    ],
)
def test_blanks_mean_nothing_beside_what_is_no_text(
    condition: str, parameters: tuple[object, ...], found: bool, tail: str
) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE b (id INT8, c CHAR(4), v VARCHAR, t TEXT, a CHAR(2)[])")
            await node.sql("INSERT INTO b VALUES (1, 'ab', 'ab  ', 'ab  ', '{a}')")
            rows = await node.rows(f"SELECT id FROM b WHERE {condition}{tail}", *parameters)
            assert rows == ([(1,)] if found else [])

    sim = Simulation(8)
    sim.run(main())
