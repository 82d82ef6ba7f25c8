"""What was another thing than in PostgreSQL without a word, and is the same now, or an error."""

from __future__ import annotations

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node


@pytest.mark.parametrize(
    "query",
    [
        "SELECT '10:00'::TIMETZ",
        "SELECT CASE WHEN true THEN generate_series(1, 2) END",
        "SELECT coalesce(unnest(ARRAY[1]), 2)",
        "INSERT INTO t VALUES (1), (generate_series(1, 2))",
        "SELECT array_prepend(ARRAY[1], NULL)",
    ],
)
def test_what_has_no_meaning_here_is_an_error(query: str) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (a INT8)")
            assert (await node.error(query)).sqlstate == "0A000"

    sim = Simulation(12)
    sim.run(main())


def test_an_array_from_which_a_wider_number_is_removed_is_of_the_wider_type() -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            result = await node.sql("SELECT array_remove(ARRAY[1, 2], 1.5::FLOAT8)")
            assert [column.type.sql_name for column in result.columns] == ["FLOAT8[]"]

    sim = Simulation(13)
    sim.run(main())


def test_an_array_is_joined_by_each_rows_own_separator() -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (a TEXT[], s TEXT)")
            await node.sql("INSERT INTO t VALUES ('{a,NULL,b}', '-'), ('{}', '-'), ('{c}', NULL)")
            joined = await node.rows("SELECT array_to_string(a, s) FROM t ORDER BY 1")
            assert joined == [("",), ("a-b",), (None,)]

    sim = Simulation(14)
    sim.run(main())
