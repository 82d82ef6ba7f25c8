"""The star over JOIN … USING, places of arrays that are computed, and rows that are no values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def _tables(node: SqlNode) -> None:
    await node.sql("CREATE TABLE a (id INT8 PRIMARY KEY, k INT8, v STRING)")
    await node.sql("CREATE TABLE b (w STRING, k INT8 PRIMARY KEY)")
    await node.sql("INSERT INTO a VALUES (1, 5, 'x'), (2, 6, 'y')")
    await node.sql("INSERT INTO b VALUES ('p', 5), ('q', 7)")


async def _stars(node: SqlNode) -> None:
    await _tables(node)
    assert await node.rows("SELECT * FROM a JOIN b USING (k)") == [(5, 1, "x", "p")]
    assert await node.rows("SELECT * FROM (a JOIN b USING (k))") == [(5, 1, "x", "p")]
    assert (await node.error("SELECT * FROM a NATURAL JOIN b")).sqlstate == "0A000"
    right = await node.rows("SELECT * FROM a RIGHT JOIN b USING (k) ORDER BY k")
    assert right == [(5, 1, "x", "p"), (7, None, None, "q")]
    of_two = await node.rows("SELECT * FROM b z, a JOIN b USING (k) WHERE z.k = 7")
    assert of_two == [("q", 7, 5, 1, "x", "p")]
    await node.sql("CREATE TABLE c (k INT8, id INT8, v STRING, w STRING)")
    await node.sql("INSERT INTO c SELECT * FROM a JOIN b USING (k)")
    assert await node.rows("SELECT k, id, v, w FROM c") == [(5, 1, "x", "p")]


async def _places(node: SqlNode) -> None:
    await _tables(node)
    places = "SELECT (ARRAY['a', 'b'])[id::INT8], (ARRAY['a', 'b'])[length(v)] FROM a ORDER BY id"
    assert await node.rows(places) == [("a", "a"), ("b", "a")]


async def _rows(node: SqlNode) -> None:
    await _tables(node)
    outer = "FROM a LEFT JOIN (SELECT w FROM b) s ON a.v = s.w"  # w may be NULL
    for text in (
        "SELECT s FROM (SELECT 1 AS n) s",
        "SELECT s::STRING FROM (SELECT 1 AS n) s",
        "SELECT x FROM (VALUES (ROW(1, 2))) v (x)",
        f"SELECT count(s) {outer}",
        f"SELECT to_jsonb(s) {outer}",
    ):
        assert (await node.error(text)).sqlstate == "0A000", text
    assert await node.rows("SELECT s, count(s) FROM (SELECT 1 AS s) s GROUP BY s") == [(1, 1)]


def _run(seed: int, scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())


def test_columns_that_are_joined_on_come_first() -> None:
    _run(1, _stars)


def test_a_place_that_is_computed_counts_from_one() -> None:
    _run(2, _places)


def test_whole_rows_are_refused_but_where_they_mean_the_same() -> None:
    _run(3, _rows)


async def _beside(node: SqlNode) -> None:
    await _tables(node)
    for text, sqlstate in {
        "SELECT * FROM a, LATERAL (SELECT count(a.id) FROM a AS b LIMIT 1) y": "42803",
        "SELECT * FROM a, LATERAL (SELECT 1 FROM a AS b HAVING max(a.id) > 0) y": "42803",
        "SELECT * FROM a, LATERAL (SELECT (SELECT sum(a.id)) FROM a AS b) y": "42803",
        "SELECT * FROM a JOIN LATERAL (SELECT 1 FROM a b ORDER BY count(a.id)) y ON true": "42803",
        "SELECT a.id, (SELECT sum(a.id) FROM a AS b LIMIT 1) FROM a": "42803",
        "SELECT lag(v, 1, 0) OVER (ORDER BY id) FROM a": "42883",
    }.items():
        assert (await node.error(text)).sqlstate == sqlstate, text
    assert await node.rows("SELECT x FROM a, LATERAL (SELECT v AS x) y ORDER BY 1") == [
        ("x",),
        ("y",),
    ]
    lagged = "SELECT lag(k, 1, 0.5) OVER (ORDER BY id)::FLOAT8 FROM a ORDER BY 1"
    assert await node.rows(lagged) == [(0.5,), (5.0,)]


def test_a_lateral_subquery_sees_columns_beside_it_and_aggregates_none() -> None:
    _run(4, _beside)
