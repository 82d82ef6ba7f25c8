"""What UPDATE and DELETE do not take; UPSERT and OVERRIDING within WITH."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE q (id INT8 PRIMARY KEY, p INT8, v STRING)")
            await node.sql("INSERT INTO q SELECT g, g % 3, 'v' FROM generate_series(1, 9) g")
            await node.sql("CREATE TABLE i (id INT8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY)")
            await scenario(node)

    sim = Simulation(4)
    sim.run(whole())


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("DELETE FROM q ORDER BY id LIMIT 1", "0A000"),
        ("DELETE FROM q LIMIT 1", "0A000"),
        ("UPDATE q SET p = 1 ORDER BY id LIMIT 1", "0A000"),
        ("DELETE FROM q WHERE CURRENT OF c", "0A000"),
        ("UPDATE q SET p = 1 WHERE CURRENT OF c", "0A000"),
    ],
)
def test_what_is_refused(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(text)).sqlstate == sqlstate

    run(scenario)


def test_upsert_is_a_part_of_with() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(
            "WITH a AS (UPSERT INTO q (id, p) VALUES (1, 50), (20, 60) RETURNING id, p), "
            "b AS (INSERT INTO q VALUES (2, 0, 'w') ON CONFLICT (id) DO UPDATE SET v = excluded.v "
            "RETURNING id, p) SELECT * FROM a UNION ALL SELECT * FROM b ORDER BY id"
        )
        assert rows == [(1, 50), (2, 2), (20, 60)]
        await node.sql("WITH a AS (SELECT 3 AS id) UPSERT INTO q SELECT id, 70 FROM a")
        assert await node.rows("SELECT p, v FROM q WHERE id = 3") == [(70, None)]

    run(scenario)


def test_overriding_is_a_part_of_with() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(
            "WITH a AS (INSERT INTO i (id) OVERRIDING SYSTEM VALUE VALUES (70) RETURNING id), "
            "b AS (INSERT INTO i OVERRIDING SYSTEM VALUE VALUES (80) RETURNING id) "
            "SELECT a.id, b.id FROM a, b"
        )
        assert rows == [(70, 80)]
        refused = "WITH a AS (INSERT INTO i VALUES (80) RETURNING id) SELECT * FROM a"
        assert (await node.error(refused)).sqlstate == "428C9"

    run(scenario)


def test_a_nearer_with_of_the_same_name_reads_the_part_that_writes() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(
            "WITH w AS (UPDATE q SET p = 40 WHERE id = 4 RETURNING id) "
            "SELECT * FROM (WITH w AS (SELECT id + 1 AS id FROM w) SELECT id FROM w) s"
        )
        assert rows == [(5,)]

    run(scenario)
