"""SET of parts of columns: array elements, slices, members of documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY, a INT8[], b STRING[], d JSONB)")
            await node.sql("INSERT INTO t VALUES (1, '{1,2,3}', '{x,y}', '{\"m\": {\"n\": 1}}')")
            await scenario(node)

    sim = Simulation(3)
    sim.run(whole())


@pytest.mark.parametrize(
    ("assigned", "found"),
    [
        ("a[2] = 9", [1, 9, 3]),
        ("a[5] = 9", [1, 2, 3, None, 9]),
        ("a[id + 1] = a[3] * 2", [1, 6, 3]),
        ("a[1] = 7, a[3] = a[1]", [7, 2, 1]),
        ("a[2] = NULL", [1, None, 3]),
        ("a[2:3] = '{8,9}'", [1, 8, 9]),
        ("a[2:3] = ARRAY[8, 9, 10]", [1, 8, 9]),
        ("a[:1] = ARRAY[8]", [8, 2, 3]),
        ("a[3:5] = ARRAY[8, 9, 10]", [1, 2, 8, 9, 10]),
        ("a[2:3] = NULL", [1, 2, 3]),
    ],
)
def test_part_of_an_array_is_assigned(assigned: str, found: list[object]) -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(f"UPDATE t SET {assigned} RETURNING a") == [(found,)]

    run(scenario)


@pytest.mark.parametrize(
    ("assigned", "sqlstate"),
    [
        ("a[NULL] = 1", "22004"),
        ("a[0] = 1", "0A000"),
        ("a[-1] = 1", "0A000"),
        ("a[1:2] = ARRAY[5]", "2202E"),
        ("a[3:2] = ARRAY[5]", "2202E"),
        ("a[1] = DEFAULT", "0A000"),
        ("a[1] = 'x'", "22P02"),
        ("a[1][2] = 5", "2202E"),
        ("id[1] = 5", "42804"),
        ("a[1] = 5, a = '{}'", "42601"),
        ("nosuch[1] = 5", "42703"),
    ],
)
def test_what_cannot_be_assigned(assigned: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(f"UPDATE t SET {assigned}")).sqlstate == sqlstate

    run(scenario)


def test_array_that_is_not_there_begins_with_its_first_element() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("UPDATE t SET a = NULL, b = '{}'")
        assert (await node.error("UPDATE t SET a[2] = 5")).sqlstate == "0A000"
        assert await node.rows("UPDATE t SET a[1] = 5, b[1:2] = '{p,q}' RETURNING a, b") == [
            ([5], ["p", "q"])
        ]

    run(scenario)


def test_members_of_documents_are_assigned() -> None:
    async def scenario(node: SqlNode) -> None:
        changed = "UPDATE t SET d['m']['n'] = '2', d['k'] = '[1]' RETURNING d::STRING"
        assert await node.rows(changed) == [('{"k": [1], "m": {"n": 2}}',)]

    run(scenario)


def test_parameters_and_conflicts_assign_parts() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("UPDATE t SET a[$1] = $2 RETURNING a", 2, 50) == [([1, 50, 3],)]
        await node.sql(
            "INSERT INTO t (id, a) VALUES (1, '{7}') "
            "ON CONFLICT (id) DO UPDATE SET a[1] = excluded.a[1] + t.a[2]"
        )
        assert await node.rows("SELECT a FROM t") == [([57, 50, 3],)]

    run(scenario)
