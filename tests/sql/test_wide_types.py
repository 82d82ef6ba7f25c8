"""TIME, INTERVAL, JSONB and arrays: the same through every engine; refused where they must be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.interval import Interval
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = (
    "CREATE TABLE t (id INT8 PRIMARY KEY, t TIME, i INTERVAL DEFAULT '1 mon', j JSONB, "
    "n INT8[], s STRING ARRAY, v INTERVAL[], d JSONB[], u UUID[], m DECIMAL(6,2)[], "
    "z TIMESTAMPTZ[])"
)
ROW = (
    1,
    time(10, 30, 0, 5),
    Interval(months=14, days=-3, microseconds=5),
    '{"a": [1, 2.50, null], "bb": "µ"}',
    [1, None, 3],
    ["x", "a,b", ""],
    [Interval(days=1), None],
    ['{"k": 1}', "null"],
    [UUID(int=5)],
    [Decimal("1.50"), None],
    [datetime(2020, 1, 1, tzinfo=UTC)],
)
READS = pytest.mark.parametrize("query", ["SELECT * FROM t WHERE id = 1",
                                          "SELECT * FROM t AS a WHERE id + 0 = id"])  # fmt: skip


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in set_up or (TABLE,):
                await node.sql(text)
            await scenario(node)

    sim = Simulation(11)
    sim.run(whole())


def fields(row: tuple[object, ...]) -> tuple[object, ...]:
    """A row in which intervals are told apart that compare equal."""
    return tuple(repr(value) for value in row)


@READS
def test_values_come_back_through_each_engine(query: str) -> None:
    async def scenario(node: SqlNode) -> None:
        numbers = ", ".join(f"${place}" for place in range(1, len(ROW) + 1))
        await node.sql(f"INSERT INTO t VALUES ({numbers})", *ROW)
        result = await node.sql(query)
        assert [fields(row) for row in result.fetch_rows()] == [fields(ROW)]
        assert [column.type.sql_name for column in result.columns] == [
            "INT8", "TIME", "INTERVAL", "JSONB", "INT8[]", "STRING[]", "INTERVAL[]", "JSONB[]",
            "UUID[]", "DECIMAL(6,2)[]", "TIMESTAMPTZ[]",
        ]  # fmt: skip
        assert result.fetch_arrow().num_rows == 1

    run(scenario)


@READS
def test_literals_are_read_as_postgres_reads_them(query: str) -> None:
    async def scenario(node: SqlNode) -> None:
        returned = await node.rows(
            "INSERT INTO t VALUES (1, '10:30:00.000005', '1 year 2 mons -3 days 00:00:00.000005', "
            """'{"bb": "µ", "a": [1,2.50,null]}', '{1,NULL,3}', '{x,"a,b",""}', '{1 day,NULL}', """
            """'{"{\\"k\\":1}","null"}', '{00000000-0000-0000-0000-000000000005}', '{1.5,NULL}', """
            "'{2020-01-01}') RETURNING *"
        )
        assert [fields(row) for row in returned] == [fields(ROW)]
        assert [fields(row) for row in await node.rows(query)] == [fields(ROW)]

    run(scenario)


@pytest.mark.parametrize(
    ("clause", "type"),
    [("j JSONB PRIMARY KEY", "JSONB"), ("n INT8[] PRIMARY KEY", r"INT8\[\]"),
     ("id INT8 PRIMARY KEY, j JSONB, INDEX (j)", "JSONB"),
     ("id INT8 PRIMARY KEY, n INT8[] UNIQUE", r"INT8\[\]")],
)  # fmt: skip
def test_keys_of_documents_and_arrays_are_refused(clause: str, type: str) -> None:
    async def scenario(node: SqlNode) -> None:
        with pytest.raises(
            SQLError, match=f"is of type {type} and thus is not indexable"
        ) as caught:
            await node.sql(f"CREATE TABLE k ({clause})")
        assert caught.value.sqlstate == "0A000"

    run(scenario)


def test_key_of_interval_and_time_is_in_order() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "INSERT INTO k VALUES ('1 mon', '10:00'), ('-1 day', '09:00'), ('29 days 25:00', "
            "'08:00'), ('29 days', '11:00')"
        )
        rows = await node.rows("SELECT i FROM k WHERE i > '-2 days' ORDER BY i")
        assert [str(row[0]) for row in rows] == ["-1 days", "29 days", "1 mon", "29 days 25:00:00"]
        assert await node.rows("SELECT t FROM k WHERE i = '30 days'") == [(time(10),)]
        with pytest.raises(SQLError) as caught:
            await node.sql("INSERT INTO k VALUES ('30 days', '12:00')")
        assert caught.value.sqlstate == "23505"

    run(scenario, "CREATE TABLE k (i INTERVAL PRIMARY KEY, t TIME, INDEX (t))")
