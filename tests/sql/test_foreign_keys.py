"""Foreign keys and unique indexes between transactions, at every isolation level."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")

SCHEMA = """
    CREATE TABLE parent (k INT8 PRIMARY KEY, code STRING UNIQUE);
    CREATE TABLE child (k INT8 PRIMARY KEY, p INT8 REFERENCES parent);
    INSERT INTO parent VALUES (1, 'one'), (2, 'two')
"""


async def answer(session: Session, text: str) -> str:
    """The last statement's tag, or the SQLSTATE of its error."""
    try:
        return (await session.execute(text))[-1].tag
    except SQLError as error:
        return error.sqlstate


async def race(node: SqlNode, level: str, first: str, second: str) -> list[str]:
    """Two transactions that each run a statement before either commits; how their commits end."""
    sessions = [node.session(), node.session()]
    for session in sessions:
        await session.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM parent")
    running = []
    for session, text in zip(sessions, (first, second), strict=True):
        running.append(asyncio.create_task(answer(session, text)))
        await asyncio.sleep(0.05)
    ends = [asyncio.create_task(_end(*pair)) for pair in zip(sessions, running, strict=True)]
    outcome = [await end for end in ends]
    for session in sessions:
        await session.close()
    return outcome


async def _end(session: Session, running: asyncio.Task[str]) -> str:
    said = await running
    ended = await answer(session, "COMMIT")
    return ended if ended != "ROLLBACK" else said


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("deletes_first", [False, True])
def test_no_child_outlives_its_parent(level: str, indexed: bool, deletes_first: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(SCHEMA)
            if indexed:
                await node.sql("CREATE INDEX ON child (p)")
            refer, delete = "INSERT INTO child VALUES (7, 1)", "DELETE FROM parent WHERE k = 1"
            statements = (delete, refer) if deletes_first else (refer, delete)
            ended = await race(node, level, *statements)
            orphans = await node.rows(
                "SELECT child.k FROM child LEFT JOIN parent ON parent.k = p WHERE parent.k IS NULL"
            )
            assert orphans == [], ended
            assert ended.count("COMMIT") == 1, ended

    sim = Simulation(seed=3)
    sim.run(scenario())


@pytest.mark.parametrize("level", LEVELS)
def test_unique_value_is_written_once(level: str) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(SCHEMA)
            ended = await race(
                node,
                level,
                "INSERT INTO parent VALUES (3, 'new')",
                "UPDATE parent SET code = 'new' WHERE k = 2",
            )
            assert ended.count("COMMIT") == 1, ended
            assert len(await node.rows("SELECT k FROM parent WHERE code = 'new'")) == 1

    sim = Simulation(seed=4)
    sim.run(scenario())


@pytest.mark.parametrize("indexed", [False, True])
def test_referenced_row_stays(indexed: bool) -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(SCHEMA)
            if indexed:
                await node.sql("CREATE INDEX ON child (p) STORING (k)")
            await node.sql("INSERT INTO child VALUES (7, 1), (8, NULL)")
            session = node.session()
            with pytest.raises(SQLError) as refused:
                await session.execute("DELETE FROM parent WHERE k = 1")
            assert refused.value.sqlstate == "23503"
            assert "Key (k)=(1)" in str(refused.value.detail)
            await session.execute("DELETE FROM parent WHERE k = 2")
            await session.execute("UPDATE parent SET code = 'uno' WHERE k = 1")
            await session.close()

    sim = Simulation(seed=5)
    sim.run(scenario())
