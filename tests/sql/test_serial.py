"""SERIAL columns, and SET TIME ZONE: what ORMs write of themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim = Simulation(3)
    sim.run(whole())


@pytest.mark.parametrize("name", ["SERIAL", "BIGSERIAL", "smallserial", "serial4"])
def test_serial_draws_a_growing_number(name: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(f"CREATE TABLE t (id {name} PRIMARY KEY, v STRING)")
        drawn = [
            (await node.rows("INSERT INTO t (v) VALUES ($1) RETURNING id", v))[0][0] for v in "abc"
        ]
        assert drawn == sorted(set(drawn), key=int)  # type: ignore[arg-type]
        await node.sql("INSERT INTO t VALUES (1, 'given')")
        assert await node.rows("SELECT v FROM t ORDER BY id") == [
            ("given",),
            ("a",),
            ("b",),
            ("c",),
        ]
        (shown,) = await node.rows(
            "SELECT data_type, column_default, is_nullable FROM information_schema.columns "
            "WHERE table_name = 't' AND column_name = 'id'"
        )
        assert shown == ("bigint", "unique_rowid()", "NO")

    run(scenario)


@pytest.mark.parametrize("clauses", ["DEFAULT 7", "NULL", "AS (1) STORED"])
def test_serial_takes_no_other_default(clauses: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(f"CREATE TABLE t (k INT8 PRIMARY KEY, id SERIAL {clauses})")
        assert error.sqlstate == "42601"

    run(scenario)


def test_the_time_zone_has_other_names_for_utc() -> None:
    async def scenario(node: SqlNode) -> None:
        for zone in ("'UTC'", "LOCAL", "DEFAULT", "UTC"):
            await node.sql("SET TIME ZONE 'Europe/Rome'")
            await node.sql(f"SET TIME ZONE {zone}")
            assert await node.rows("SHOW TIME ZONE") == [("UTC",)]
        assert (await node.error("SET TIME ZONE 'Europe/Room'")).sqlstate == "22023"

    run(scenario)
