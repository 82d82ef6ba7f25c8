"""NUMERIC without digits keeps nine behind the point, and drops none in silence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

import pyarrow as pa
import pytest

from tailrace.catalog.descriptors.names import TableName
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.sql.execute.write.load import load
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TOO_EXACT = Decimal("0.1234567891")


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE n (id INT8 PRIMARY KEY, bare NUMERIC, said DECIMAL(38,9))")
            await node.sql("INSERT INTO n VALUES (1, 1, 1)")
            await scenario(node)

    sim = Simulation(7)
    sim.run(whole())


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO n (id, {}) VALUES (2, 0.1234567891)",
        "INSERT INTO n (id, {}) VALUES (2, '0.1234567891')",
        "INSERT INTO n (id, {}) VALUES (2, $1)",
        "INSERT INTO n (id, {}) SELECT 2, 1 / 3.0",
        "INSERT INTO n (id, {}) SELECT 2, avg(x) FROM (VALUES (1), (1), (2)) v(x)",
        "INSERT INTO n (id, {}) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET {} = n.{} / 3",
        "UPDATE n SET {} = {} / 3",
        "UPDATE n SET {} = (SELECT {} / 3 FROM n) WHERE id = 1",
        "UPSERT INTO n (id, {}) VALUES (1, 0.1234567891)",
    ],
)
def test_a_value_of_more_digits_is_refused_and_named(statement: str) -> None:
    async def scenario(node: SqlNode) -> None:
        given = (TOO_EXACT,) if "$1" in statement else ()
        error = await node.error(statement.replace("{}", "bare"), *given)
        assert (error.sqlstate, error.message.partition(",")[0]) == (
            "22003",
            'column "bare": NUMERIC without digits keeps 9 behind the point',
        )
        assert error.hint is not None
        assert "round(x, 9)" in error.hint
        assert await node.rows("SELECT bare FROM n") == [(Decimal(1),)]
        await node.sql(statement.replace("{}", "said"), *given)  # NUMERIC(p,s) rounds

    run(scenario)


def test_zeros_behind_the_ninth_digit_are_no_digits() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("UPDATE n SET bare = 1.2500000000000 / 1.0")
        assert await node.rows("SELECT bare FROM n") == [(Decimal("1.25"),)]

    run(scenario)


def test_a_table_says_what_it_was_declared_and_so_do_its_copies() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE made AS SELECT bare, said FROM n")
        ((_, text),) = await node.rows("SHOW CREATE TABLE made")
        assert "    bare DECIMAL,\n    said DECIMAL(38,9),\n" in str(text)
        error = await node.error("INSERT INTO made (bare) VALUES ($1)", TOO_EXACT)
        assert error.sqlstate == "22003"

    run(scenario)


def test_a_column_that_becomes_one_loses_no_digit() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE q (id INT8 PRIMARY KEY, x NUMERIC(20,12))")
        await node.sql("INSERT INTO q VALUES (1, 0.123456789012)")
        assert (await node.error("ALTER TABLE q ALTER COLUMN x TYPE NUMERIC")).sqlstate == "22003"
        assert await node.rows("SELECT x FROM q") == [(Decimal("0.123456789012"),)]

    run(scenario)


def test_casts_to_it_keep_what_they_are_given() -> None:
    async def scenario(node: SqlNode) -> None:
        text = "0.12345678901234567890"
        assert await node.rows(f"SELECT '{text}'::NUMERIC, {text}::NUMERIC") == [
            (Decimal(text),) * 2
        ]
        for query in ("SELECT x::NUMERIC FROM (VALUES ('1e-15')) v(x)", "SELECT '1e-40'::NUMERIC"):
            assert (await node.error(query)).sqlstate == "22003", query
        assert (await node.error("SELECT $1::NUMERIC", TOO_EXACT)).sqlstate == "22003"
        assert await node.rows("SELECT $1::NUMERIC", Decimal("0.123456789")) != []

    run(scenario)


def test_a_bulk_load_refuses_it() -> None:
    async def scenario(node: SqlNode) -> None:
        name = TableName("defaultdb", "public", "n")
        for values in ([TOO_EXACT], [float(TOO_EXACT)], [f"{TOO_EXACT}"]):
            batch = pa.record_batch({"id": [2], "bare": values, "said": values})
            with pytest.raises(SQLError, match='column "bare"'):
                await load(node.services, name, batch)
        await load(node.services, name, pa.record_batch({"id": [2], "said": [TOO_EXACT]}))

    run(scenario)


def test_it_equals_the_type_that_it_is_stored_as() -> None:
    bare, said = ColumnType(TypeKind.DECIMAL), ColumnType(TypeKind.DECIMAL, 38, 9)
    assert bare == said
    assert (bare.bare, said.bare) == (True, False)
    assert (bare.declared_name, bare.sql_name) == ("DECIMAL", "DECIMAL(38,9)")


def test_a_number_that_no_decimal_holds_is_one_only_where_it_meets_a_float() -> None:
    async def scenario(node: SqlNode) -> None:
        for number in (
            "1e39",
            "1e-39",
            "1" * 39,
            f"0.{'1' * 39}",
            "1e400::FLOAT8",
            "1e-400::FLOAT8",
        ):
            assert (await node.error(f"SELECT {number}")).sqlstate == "22003", number
        floats = (
            "SELECT 1e39::FLOAT8, f < 1e300, coalesce(f, 1e300) FROM (VALUES (2.5::FLOAT8)) v(f)"
        )
        assert await node.rows(floats) == [(1e39, True, 2.5)]

    run(scenario)
