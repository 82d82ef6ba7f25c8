"""Bulk loads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pyarrow as pa
import pytest

from tailrace.catalog.descriptors.names import TableName
from tailrace.catalog.values.errors import SQLError
from tailrace.sql import LoadMode, load
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

NAME = TableName("defaultdb", "public", "t")


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=8)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING, n INT8 DEFAULT 7)")
            await scenario(node)

    sim.run(main())


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table({"v": [f"v{number}" for number in numbers], "k": list(numbers)})


def test_load_matches_columns_by_name() -> None:
    async def scenario(node: SqlNode) -> None:
        report = await load(node.services, NAME, rows(0, 2500), rows_per_transaction=1000)
        assert report.row_count == 2500
        assert await node.rows("SELECT * FROM t WHERE k = 2499") == [(2499, "v2499", 7)]
        assert await node.rows("SELECT count(*) FROM t") == [(2500,)]

    run(scenario)


def test_load_takes_batches_from_anywhere() -> None:
    async def slowly() -> AsyncIterator[pa.RecordBatch]:
        for start in (0, 5):
            for batch in rows(start, start + 5).to_batches():
                yield batch

    async def scenario(node: SqlNode) -> None:
        assert (await load(node.services, NAME, slowly())).row_count == 10
        assert (await load(node.services, NAME, rows(10, 12).to_batches())).row_count == 2
        assert (await load(node.services, NAME, rows(0, 0))).row_count == 0
        assert await node.rows("SELECT count(*) FROM t") == [(12,)]

    run(scenario)


def test_existing_key_stops_the_load_where_it_is() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO t VALUES (2500)")
        with pytest.raises(SQLError) as caught:
            await load(node.services, NAME, rows(0, 5000), rows_per_transaction=1000)
        assert caught.value.sqlstate == "23505"
        assert "2000 rows before this transaction are committed." in str(caught.value.detail)
        assert await node.rows("SELECT count(*) FROM t") == [(2001,)]

    run(scenario)


def test_upsert_load_replaces_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO t VALUES (1, 'old', 9)")
        await load(node.services, NAME, rows(0, 3), mode=LoadMode.UPSERT)
        assert await node.rows("SELECT v, n FROM t WHERE k = 1") == [("v1", 7)]

    run(scenario)


@pytest.mark.parametrize(
    ("data", "sqlstate", "named"),
    [
        ({"k": ["x"]}, "22P02", "k"),
        ({"k": [1], "nope": [1]}, "42703", "nope"),
        ({"v": ["a"]}, "23502", "k"),
        ({"k": [None]}, "23502", "k"),
        ({"k": [1.5]}, "22P02", "k"),
    ],
)
def test_bad_values_name_their_column(
    data: dict[str, list[object]], sqlstate: str, named: str
) -> None:
    async def scenario(node: SqlNode) -> None:
        with pytest.raises(SQLError) as caught:
            await load(node.services, NAME, pa.table(data))
        assert caught.value.sqlstate == sqlstate
        assert f'"{named}"' in caught.value.message
        assert await node.rows("SELECT count(*) FROM t") == [(0,)]

    run(scenario)


def test_unknown_table_is_refused() -> None:
    async def scenario(node: SqlNode) -> None:
        with pytest.raises(SQLError) as caught:
            await load(node.services, TableName("defaultdb", "public", "u"), rows(0, 1))
        assert caught.value.sqlstate == "42P01"

    run(scenario)


def test_load_goes_on_across_a_new_version() -> None:
    async def scenario(node: SqlNode) -> None:
        async def batches() -> AsyncIterator[pa.RecordBatch]:
            for start in range(0, 4000, 1000):
                for batch in rows(start, start + 1000).to_batches():
                    yield batch
                if start in (1000, 2000):
                    await node.sql(f"ALTER TABLE t SET (gc.ttlseconds = {start})")

        assert (await load(node.services, NAME, batches())).row_count == 4000
        assert await node.rows("SELECT count(*) FROM t") == [(4000,)]

    run(scenario)
