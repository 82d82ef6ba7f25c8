"""DECLARE, FETCH, MOVE and CLOSE."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=12)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            await node.sql("INSERT INTO t SELECT g FROM generate_series(1, 6) AS s(g)")
            await scenario(node)

    sim.run(main())


# What each direction returns, one after another, of the rows 1 to 12: as PostgreSQL 15 does.
WALK = [
    ("FETCH c", [1]),
    ("FETCH NEXT FROM c", [2]),
    ("FETCH 2 IN c", [3, 4]),
    ("FETCH ABSOLUTE 6 FROM c", [6]),
    ("FETCH ABSOLUTE 8 FROM c", [8]),
    ("FETCH FORWARD c", [9]),
    ("FETCH FORWARD 1 c", [10]),
    ("FETCH FORWARD ALL FROM c", [11, 12]),
    ("FETCH ABSOLUTE 21 FROM c", []),
]
BACKWARDS = ["PRIOR", "LAST", "BACKWARD", "BACKWARD 5", "BACKWARD ALL", "ABSOLUTE 3"]


@pytest.mark.parametrize("query", ["SELECT k FROM t ORDER BY k", "SELECT k + 0 FROM t ORDER BY 1"])
def test_a_cursor_goes_forward(query: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO t SELECT g FROM generate_series(7, 12) AS s(g)")
        await node.sql(f"BEGIN; DECLARE c CURSOR FOR {query}; DELETE FROM t WHERE k = 3")
        for text, expected in WALK:
            done = await node.sql(text)
            assert [row[0] for row in done.fetch_rows()] == expected, text
            assert done.tag == f"FETCH {len(expected)}"
        await node.sql(f"ROLLBACK; BEGIN; DECLARE c CURSOR FOR {query}; FETCH c")
        assert (await node.sql("MOVE 4 IN c")).tag == "MOVE 4"
        assert await node.rows("FETCH c") == [(6,)]
        await node.sql("CLOSE c")
        assert (await node.error("FETCH c")).sqlstate == "34000"

    run(scenario)


def test_a_cursor_ends_with_its_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        declare = "DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k"
        assert (await node.error(declare)).sqlstate == "25P01"
        await node.sql(f"BEGIN; {declare}")
        error = await node.error(declare)
        assert error.sqlstate == "42P03"
        await node.sql("ROLLBACK")
        held = "DECLARE h CURSOR WITH HOLD FOR SELECT k FROM t ORDER BY k"
        await node.sql(f"BEGIN; {declare}; {held}; COMMIT")
        assert (await node.error("FETCH c")).sqlstate == "34000"
        assert await node.rows("FETCH 2 h") == [(1,), (2,)]
        await node.sql("DISCARD ALL")
        assert (await node.error("FETCH h")).sqlstate == "34000"
        await node.sql(f"BEGIN; {held}; ROLLBACK")
        assert (await node.error("FETCH h")).sqlstate == "34000"
        await node.sql(held)
        assert await node.rows("FETCH ABSOLUTE 6 h") == [(6,)]
        await node.sql("CLOSE ALL")

    run(scenario)


def test_a_cursor_takes_parameters_and_tells_its_columns() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        prepared = await node.first.prepare("DECLARE c CURSOR FOR SELECT k FROM t WHERE k > $1")
        assert [type.kind.value for type in prepared.parameter_types] == ["INT8"]
        await node.first.run(prepared, [4])
        fetch = await node.first.prepare("FETCH ALL FROM c")
        columns = await node.first.describe(fetch)
        assert [(column.name, column.type.kind.value) for column in columns] == [("k", "INT8")]
        assert (await node.first.run(fetch)).fetch_rows() == [(5,), (6,)]

    run(scenario)


WRONG = {
    "DECLARE c CURSOR FOR DELETE FROM t": "42601",
    "DECLARE c CURSOR FOR SELECT nix FROM t": "42703",
    "FETCH nix": "34000",
    "CLOSE nix": "34000",
    "FETCH": "42601",
    "DECLARE c SCROLL CURSOR FOR SELECT k FROM t": "0A000",
    **{
        f"DECLARE c NO SCROLL CURSOR FOR SELECT k FROM t; MOVE 4 IN c; FETCH {back} IN c": "55000"
        for back in BACKWARDS
    },
}


def test_what_is_wrong_with_a_cursor() -> None:
    async def scenario(node: SqlNode) -> None:
        for text, sqlstate in WRONG.items():
            error = await node.error(f"BEGIN; {text}")
            assert error.sqlstate == sqlstate, (text, error)
            await node.sql("ROLLBACK")

    run(scenario)


def test_rollback_to_ends_the_cursors_declared_since() -> None:
    async def scenario(node: SqlNode) -> None:
        declare = "DECLARE {} CURSOR FOR SELECT k FROM t ORDER BY k"
        await node.sql(f"BEGIN; {declare.format('before')}; SAVEPOINT s")
        await node.sql(f"SAVEPOINT u; {declare.format('after')}; RELEASE SAVEPOINT u")
        await node.sql(f"ROLLBACK TO SAVEPOINT s; {declare.format('again')}")
        assert await node.rows("FETCH before") == [(1,)]
        assert await node.rows("FETCH again") == [(1,)]
        assert (await node.error("FETCH after")).sqlstate == "34000"

    run(scenario)
