"""Columns of a grouped primary key, and rows that tie with the last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def _tables(node: SqlNode) -> None:
    await node.sql("CREATE TABLE people (id INT8 PRIMARY KEY, name STRING, facts JSONB)")
    await node.sql(
        "CREATE TABLE visits (person INT8, day INT8, place STRING, PRIMARY KEY (person, day))"
    )
    await node.sql(
        """INSERT INTO people VALUES (1, 'Ann', '{"a": 1.0}'), (2, 'Bob', NULL), (3, 'Ann', '1')"""
    )
    await node.sql(
        "INSERT INTO visits VALUES (1, 1, 'sea'), (1, 2, 'hill'), (3, 1, 'sea'), (9, 1, 'moor')"
    )


async def _dependent(node: SqlNode) -> None:
    await _tables(node)
    left = "people p LEFT JOIN visits v ON v.person = p.id"
    counted = f"SELECT p.id, name, count(v.day) FROM {left} GROUP BY p.id ORDER BY name DESC, p.id"
    assert await node.rows(counted) == [(2, "Bob", 0), (1, "Ann", 2), (3, "Ann", 1)]
    starred = f"SELECT p.*, count(v.day) FROM {left} GROUP BY p.id HAVING name > 'B'"
    assert await node.rows(starred) == [(2, "Bob", None, 0)]
    whole = "SELECT person, place FROM visits GROUP BY day, person ORDER BY place, 1"
    assert [place for _, place in await node.rows(whole)] == ["hill", "moor", "sea", "sea"]
    using = "SELECT id, name FROM people JOIN (VALUES (1, 7)) v (id, n) USING (id)"
    assert (await node.error(f"{using} GROUP BY id")).sqlstate == "42803"  # v is no table
    inner = "SELECT (SELECT count(*) FROM visits v WHERE v.person = p.id AND p.name = 'Ann')"
    assert await node.rows(f"{inner} FROM people p GROUP BY p.id ORDER BY p.id") == [
        (2,),
        (0,),
        (1,),
    ]
    lacking = "SELECT p.name, count(*) FROM people p RIGHT JOIN visits v ON v.person = p.id"
    assert await node.rows(f"{lacking} GROUP BY p.id ORDER BY p.id NULLS FIRST LIMIT 1") == [
        (None, 1)
    ]


async def _viewed(node: SqlNode) -> None:
    await _tables(node)
    await node.sql("CREATE VIEW named AS SELECT id, name, count(*) AS n FROM people GROUP BY id")
    assert await node.rows("SELECT name, n FROM named ORDER BY id LIMIT 1") == [("Ann", 1)]


async def _independent(node: SqlNode) -> None:
    await _tables(node)
    for text in (
        "SELECT person, place FROM visits GROUP BY person",
        "SELECT name FROM people GROUP BY upper(name)",
        "SELECT x.name FROM (SELECT * FROM people) x GROUP BY x.id",
        "SELECT p.name, v.place FROM people p, visits v GROUP BY p.id",
        "SELECT id, name FROM people GROUP BY ROLLUP (id)",
        "SELECT id, name FROM people GROUP BY id, ROLLUP (facts)",
    ):
        assert (await node.error(text)).sqlstate == "42803", text


@pytest.mark.parametrize("scenario", [_dependent, _viewed, _independent])
def test_groups_are_those_of_postgres(
    scenario: Callable[[SqlNode], Awaitable[None]],
) -> None:
    sim = Simulation(9)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())
