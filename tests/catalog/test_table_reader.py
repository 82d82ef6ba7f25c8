"""Tables and their versions as Arrow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.rows.table_reader import read_table, read_versions
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span
from tests.harness.nodes import CatalogFixture, open_catalog
from tests.harness.simulation import Simulation
from tests.harness.stores import put


@asynccontextmanager
async def _orders(sim: Simulation) -> AsyncIterator[tuple[CatalogFixture, TableDescriptor]]:
    async with open_catalog(sim) as catalog:
        yield catalog, await catalog.create()


async def _write(
    catalog: CatalogFixture, table: TableDescriptor, rows: Iterable[tuple[int, str | None]]
) -> Timestamp:
    """Commits rows; a text of None deletes."""
    codec = codec_for(table)
    changes: dict[bytes, bytes | None] = {}
    for k, v in rows:
        key, body = codec.encode_row((k, v))
        changes[key] = None if v is None else body
    return await put(catalog.store, changes)


async def _rows(
    catalog: CatalogFixture, table: TableDescriptor, at: Timestamp
) -> list[dict[str, object]]:
    batches = [batch async for batch in read_table(catalog.store, table, at)]
    return [row for batch in batches for row in batch.to_pylist()]


def test_table_is_read_at_a_timestamp(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table):
            first = await _write(catalog, table, [(2, "b"), (1, "a")])
            second = await _write(catalog, table, [(2, None), (3, "c")])
            at_first = [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
            assert await _rows(catalog, table, table.modification_time) == []
            assert await _rows(catalog, table, first) == at_first
            assert await _rows(catalog, table, Timestamp(second - 1)) == at_first
            assert await _rows(catalog, table, second) == [{"k": 1, "v": "a"}, {"k": 3, "v": "c"}]

    sim.run(scenario())


def test_batches_are_cut_to_size(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table):
            at = await _write(catalog, table, [(n, str(n)) for n in range(2_500)])
            for size, counts in (
                (1_000, [1000, 1000, 500]),
                (2_500, [2500]),
                (300, [300] * 8 + [100]),
            ):
                reader = read_table(catalog.store, table, at, batch_rows=size)
                batches = [batch async for batch in reader]
                assert [batch.num_rows for batch in batches] == counts
                keys = [k for batch in batches for k in batch.column("k").to_pylist()]
                assert keys == list(range(2_500))

    sim.run(scenario())


def test_columns_and_span_are_chosen(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table):
            at = await _write(catalog, table, [(n, str(n)) for n in range(9)])
            codec = codec_for(table)
            span = Span(codec.encode_key((3,)), codec.encode_key((5,)))
            reader = read_table(catalog.store, table, at, columns=["v"], span=span)
            assert [batch.to_pylist() async for batch in reader] == [[{"v": "3"}, {"v": "4"}]]
            with pytest.raises(SQLError, match='column "z"'):
                await anext(read_table(catalog.store, table, at, columns=["z"]))

    sim.run(scenario())


def test_old_rows_take_the_missing_value(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table):
            at = await _write(catalog, table, [(1, "a")])
            wider = await catalog.add_column(table.id, "w")
            now = catalog.store.clock.now()
            assert await _rows(catalog, wider, now) == [{"k": 1, "v": "a", "w": None}]
            assert await _rows(catalog, table, at) == [{"k": 1, "v": "a"}]

    sim.run(scenario())


def test_versions_of_an_interval_are_read(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table):
            times = [
                await _write(catalog, table, rows)
                for rows in ([(1, "a")], [(1, "b"), (2, "x")], [(1, None)], [(1, "c")])
            ]
            codec = codec_for(table)
            one, two = codec.encode_key((1,)), codec.encode_key((2,))
            reader = read_versions(catalog.store, table, times[0], times[2])
            (part,) = [part async for part in reader]
            assert list(part.keys) == [one, two, one]
            assert list(part.timestamps) == [times[1], times[1], times[2]]
            assert list(part.deleted) == [2]
            assert part.rows.to_pylist() == [{"k": 1, "v": "b"}, {"k": 2, "v": "x"}]

    sim.run(scenario())
