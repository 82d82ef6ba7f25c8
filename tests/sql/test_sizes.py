"""pg_relation_size and its kin: what the store knows of sizes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())


def test_a_table_is_its_rows_and_in_total_its_indexes_too() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE t (k INT8 PRIMARY KEY, v TEXT, INDEX tv (v)); CREATE TABLE u (k INT8); "
            "CREATE VIEW w AS SELECT k FROM t"
        )
        sizes = (
            "SELECT pg_relation_size('t'), pg_table_size('t'::regclass), pg_indexes_size('t'), "
            "pg_relation_size('tv'), pg_total_relation_size('t')"
        )
        assert await node.rows(sizes) == [(0, 0, 0, 0, 0)]
        await node.sql("INSERT INTO t SELECT i, repeat('x', 80) FROM generate_series(1, 100) g(i)")
        ((main, table, indexes, index, total),) = await node.rows(sizes)
        assert isinstance(main, int)
        assert isinstance(indexes, int)
        assert 100 * 80 < main < 100 * 160
        assert (table, index, total) == (main, indexes, main + indexes)
        assert await node.rows(
            "SELECT pg_database_size('defaultdb'), pg_total_relation_size('u'), "
            "pg_relation_size('w'), pg_relation_size('t', 'fsm'), pg_relation_size(4711)"
        ) == [(total, 0, 0, 0, None)]

    run(scenario)


def test_sizes_are_the_same_where_ranges_are_split() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v TEXT)")
        await node.sql("INSERT INTO t SELECT i, repeat('x', 80) FROM generate_series(1, 100) g(i)")
        ((before,),) = await node.rows("SELECT pg_relation_size('t')")
        await node.sql("ALTER TABLE t SPLIT AT VALUES (0), (50), (1000)")
        ((after,),) = await node.rows("SELECT pg_relation_size('t')")
        assert isinstance(before, int)
        assert isinstance(after, int)
        assert abs(after - before) < before // 10

    run(scenario)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        ("0", "0 bytes"), ("10239", "10239 bytes"), ("10240", "10 kB"), ("-10240", "-10 kB"),
        ("10485247", "10239 kB"), ("10485248", "10 MB"), ("9223372036854775807", "8192 PB"),
        ("12345678.0", "12 MB"),
    ],
)  # fmt: skip
def test_sizes_are_shown_in_the_largest_unit_that_says_enough(size: str, text: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(f"SELECT pg_size_pretty({size})") == [(text,)]

    run(scenario)
