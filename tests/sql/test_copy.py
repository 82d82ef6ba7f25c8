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


def test_where_passes_over_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        text = "COPY t (k, note) FROM STDIN WHERE k > 1 AND note LIKE 'a%' AND n = 7"
        notes: list[object] = ["a", "a", "b", None, "ab"]
        assert await copy_in(node, text, k=[1, 2, 3, 4, 5], note=notes) == 2
        assert await node.rows("SELECT k, twice, note FROM t ORDER BY k") == [
            (2, 4, "a"),
            (5, 10, "ab"),
        ]

    run(scenario)


@pytest.mark.parametrize(
    ("where", "sqlstate"),
    [
        ("nix > 1", "42703"),
        ("twice > 1", "42P10"),
        ("k + 1", "42804"),
        ("missing(k)", "42883"),
        ("token IS NULL", "0A000"),
        ("k = (SELECT 1)", "0A000"),
    ],
)
def test_what_is_no_condition(where: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        with pytest.raises(SQLError) as caught:
            await copy_in(node, f"COPY t (k) FROM STDIN WHERE {where}", k=[1])
        assert caught.value.sqlstate == sqlstate

    run(scenario)
