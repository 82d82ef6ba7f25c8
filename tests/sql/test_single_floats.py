"""FLOAT4: what it equals, and what is computed of it, is PostgreSQL's in both engines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.sql.analyze.predicates import Comparison, compile_predicates
from tailrace.sql.parse import parse_expression
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE f (k FLOAT4 PRIMARY KEY, v FLOAT4, INDEX (v))")
            await node.sql("INSERT INTO f VALUES (0.1, 1004.3), (2, 0.1)")
            await scenario(node)

    sim = Simulation(6)
    sim.run(whole())


@pytest.mark.parametrize("tail", ["", " AND k + v IS NOT NULL"], ids=["native", "duckdb"])
@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("k = '0.1'", 1), ("v = '1004.3'", 1), ("k = 0.1", 0), ("k = 0.1::FLOAT8", 0),
        ("k = 0.1::FLOAT4", 1), ("k = 2", 1), ("k IN ('0.1', '7')", 1), ("k IN (0.1, 7)", 1),
        ("k IN (0.1)", 0), ("k BETWEEN '0.1' AND '0.1'", 1), ("k = ANY ('{0.1,7}')", 1),
        ("k > '0.1'", 1), ("k > 0.1", 2), ("v * v = '1008618.44'", 1),
    ],
)  # fmt: skip
def test_a_literal_beside_it_is_of_its_type_and_a_number_is_a_double(
    condition: str, found: int, tail: str
) -> None:
    async def scenario(node: SqlNode) -> None:
        assert len(await node.rows(f"SELECT k FROM f WHERE {condition}{tail}")) == found

    run(scenario)


def test_parameters_without_a_type_take_it() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SELECT v FROM f WHERE k = $1", 0.1) == [(1004.2999877929688,)]
        assert await node.rows("SELECT k FROM f WHERE v + 0 > 1 AND v = $1", 1004.3) != []

    run(scenario)


def test_what_is_computed_of_two_is_rounded_to_it() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("UPDATE f SET v = v * k WHERE k = '0.1'")
        moved = await node.rows("UPDATE f SET k = k * k WHERE k = '0.1' RETURNING k, v")
        assert moved == [(0.010000000707805157, 100.43000030517578)]
        asked = await node.rows("SELECT k, v, k + k FROM f WHERE k < '0.1'")
        assert asked == [(*moved[0], 0.020000001415610313)]
        result = await node.sql(
            "SELECT k + k, k + 1, sum(k), avg(k), coalesce(k, 1) FROM f GROUP BY k"
        )
        types = [column.type.sql_name for column in result.columns]
        assert types == ["FLOAT4", "FLOAT8", "FLOAT4", "FLOAT8", "FLOAT4"]

    run(scenario)


def test_what_is_too_small_or_too_great_for_it_is_an_error() -> None:
    async def scenario(node: SqlNode) -> None:
        for value in ("10e70", "10e-70", "'10e70'", "'10e-70'", "1e-70::FLOAT8"):
            error = await node.error(f"INSERT INTO f VALUES ({value}, 1)")
            assert error.sqlstate == "22003", value

        error = await node.error("SELECT (v / 1e60)::FLOAT4 FROM f")
        assert error.sqlstate == "22003"

    run(scenario)


def test_it_is_written_with_the_digits_that_it_has() -> None:
    async def scenario(node: SqlNode) -> None:
        texts = "SELECT k::TEXT, to_jsonb(k), v::NUMERIC = 1004.3 FROM f WHERE k < 1"
        assert await node.rows(texts) == [("0.1", "0.1", True)]
        large = "SELECT 1e6::FLOAT4::TEXT, 1234567.9::FLOAT4::TEXT, 999999::FLOAT4::TEXT"
        assert await node.rows(f"{large} FROM f LIMIT 1") == [("1e+06", "1.2345679e+06", "999999")]

    run(scenario)


def test_a_number_beside_it_needs_no_query() -> None:
    float4, float8 = ColumnType(TypeKind.FLOAT4), ColumnType(TypeKind.FLOAT8)
    (found,) = compile_predicates(parse_expression("k = 0.1"), {"k": (0, float4)}, None)
    assert isinstance(found, Comparison)
    assert (found.type, found.constant.type) == (float4, float8)
