"""A transaction that writes rows of a table and then alters it lets go of the lease that the rows
rely on, so that nobody waits for it. Its commit finds the version that they were written under."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

NO_CHANGE = "ALTER TABLE t SET (changefeed_optimized = false)"
OTHER_KEY = "ALTER TABLE t ALTER PRIMARY KEY USING COLUMNS (v)"


async def written(node: SqlNode, isolation: str = "READ COMMITTED") -> Session:
    await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL)")
    session = node.session()
    await session.execute(f"BEGIN ISOLATION LEVEL {isolation}; INSERT INTO t VALUES (1, 10)")
    return session


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(1)

    async def at_node() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(at_node())


async def refused(session: Session, text: str) -> None:
    with pytest.raises(SQLError) as error:
        await session.execute(text)
    assert error.value.sqlstate == "40001"


def test_a_table_that_is_altered_to_what_it_is() -> None:
    async def scenario(node: SqlNode) -> None:
        session = await written(node)
        await session.execute(f"{NO_CHANGE}; INSERT INTO t VALUES (2, 20); {NO_CHANGE}; COMMIT")
        assert await node.rows("SELECT * FROM t") == [(1, 10), (2, 20)]

    run(scenario)


def test_a_table_that_is_altered_and_written_again() -> None:
    async def scenario(node: SqlNode) -> None:
        session = await written(node)
        await session.execute(
            "ALTER TABLE t RENAME COLUMN v TO w; INSERT INTO t (k, w) VALUES (2, 20)"
        )
        await session.execute("ALTER TABLE t RENAME COLUMN w TO x; COMMIT")
        assert await node.rows("SELECT k, x FROM t") == [(1, 10), (2, 20)]

    run(scenario)


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "SERIALIZABLE"])
@pytest.mark.parametrize("change", [OTHER_KEY, "DROP TABLE t"])
def test_another_changes_the_table_behind_it(change: str, isolation: str) -> None:
    """The row was acknowledged, and lay in an index that was the table's no more."""

    async def scenario(node: SqlNode) -> None:
        session = await written(node, isolation)
        await session.execute(NO_CHANGE)
        await node.sql(change)
        await refused(session, "COMMIT")

    run(scenario)


def test_another_changes_it_before_the_table_is_used_again() -> None:
    async def scenario(node: SqlNode) -> None:
        session = await written(node)
        await session.execute(NO_CHANGE)
        await node.sql(OTHER_KEY)
        await refused(session, "INSERT INTO t VALUES (2, 20); COMMIT")
        assert await node.rows("SELECT * FROM t") == []

    run(scenario)


@pytest.mark.parametrize("last", [NO_CHANGE, "ALTER TABLE t RENAME COLUMN v TO w"])
def test_another_changes_it_before_it_is_altered_again(last: str) -> None:
    async def scenario(node: SqlNode) -> None:
        session = await written(node)
        await session.execute(NO_CHANGE)
        await node.sql(OTHER_KEY)
        await refused(session, last)

    run(scenario)


def test_another_has_changed_it_when_it_is_altered() -> None:
    """Its rows were written under the version before, which is good for rows alone."""

    async def scenario(node: SqlNode) -> None:
        session = await written(node)
        await node.sql("ALTER TABLE t RENAME COLUMN v TO w")
        await refused(session, NO_CHANGE)

    run(scenario)
