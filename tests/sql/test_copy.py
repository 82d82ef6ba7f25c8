"""COPY: which columns and rows of a table it reads and writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pyarrow as pa
import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse import parse
from tailrace.sql.syntax.statements import CopyFrom, CopyTo
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = (
    "CREATE TABLE t (k INT8 PRIMARY KEY, twice INT8 AS (k * 2) STORED, note STRING DEFAULT 'none', "
    "n INT8 NOT NULL DEFAULT 7, token UUID DEFAULT gen_random_uuid())"
)


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            await scenario(node)

    sim = Simulation(seed=9)
    sim.run(whole())


async def copy_in(node: SqlNode, text: str, **columns: list[object]) -> int:
    (statement,) = parse(text).statements
    assert isinstance(statement, CopyFrom)
    loading = await node.first.copy_in(statement)
    await loading.write(pa.RecordBatch.from_pydict(columns))
    await node.first.end_batch()
    return loading.row_count


async def copy_out(node: SqlNode, text: str) -> list[str]:
    (statement,) = parse(text).statements
    assert isinstance(statement, CopyTo)
    result = await node.first.copy_out(statement, "COPY")
    await result.close()
    return [column.name for column in result.columns]


def test_computed_columns_are_no_part_of_it() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await copy_out(node, "COPY t TO STDOUT") == ["k", "note", "n", "token"]
        (statement,) = parse("COPY t FROM STDIN").statements
        assert isinstance(statement, CopyFrom)
        loading = await node.first.copy_in(statement)
        assert [column.name for column in loading.columns] == ["k", "note", "n", "token"]
        await node.first.end_batch()
        with pytest.raises(SQLError, match="computed"):
            await copy_in(node, "COPY t (k, twice) FROM STDIN", k=[1], twice=[2])

    run(scenario)


def test_columns_that_are_left_out_may_be_arrays_of_any_type() -> None:
    """Arrow makes no lists of documents or UUIDs of Python's values, not even NULLs."""

    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE a (k INT8 PRIMARY KEY, docs JSONB[], ids UUID[], times TIME[])"
        )
        await copy_in(node, "COPY a (k) FROM STDIN", k=[1, 2])
        assert await node.rows("SELECT docs, ids, times FROM a") == [(None, None, None)] * 2

    run(scenario)
