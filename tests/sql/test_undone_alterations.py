"""What an ALTER that failed leaves: nothing, from the moment it says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from unittest.mock import patch

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.schema_change.job import JOB_KIND, SchemaChanger
from tailrace.catalog.schema_change.moves import apply_stage
from tailrace.catalog.schema_change.payload import decode_change
from tailrace.catalog.schema_change.planner import plan, plan_rollback, revertible
from tailrace.catalog.schema_change.stages import VersionStage, WorkStage
from tailrace.catalog.schema_change.targets import Target
from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

FAILING = {
    "ADD COLUMN g INT8 UNIQUE DEFAULT 1": "23505",
    "ADD COLUMN g INT8 DEFAULT 1, ADD CONSTRAINT u UNIQUE (g)": "23505",
    "ADD COLUMN g INT8 AS (k / k) STORED UNIQUE": "23505",
    "ADD COLUMN g INT8 AS (k / k) STORED, ADD CONSTRAINT u UNIQUE (g)": "23505",
    "ADD COLUMN g INT8 DEFAULT (random() * 0)::INT8, ADD UNIQUE (g)": "23505",
    "ADD COLUMN g UUID DEFAULT gen_random_uuid() UNIQUE, ADD h INT8 UNIQUE DEFAULT 2": "23505",
    "ADD COLUMN g INT8 DEFAULT 1, ADD h INT8 AS (k * 2) STORED, ADD UNIQUE (g)": "23505",
    "DROP COLUMN s, ADD COLUMN g INT8 UNIQUE DEFAULT 1": "23505",
    "ALTER COLUMN s TYPE INT8 USING 1, ADD UNIQUE (n)": "23505",
    "ADD COLUMN g INT8 NOT NULL DEFAULT 1, ALTER PRIMARY KEY USING COLUMNS (g)": "23505",
    "ADD COLUMN g INT8 DEFAULT 1, ALTER PRIMARY KEY USING COLUMNS (n)": "23505",
    "ADD COLUMN g INT8 DEFAULT 1 CHECK (g > 1)": "23514",
    "ADD COLUMN g INT8 AS (k * 2) STORED, ADD CHECK (n > 1)": "23514",
    "ADD COLUMN g INT8 AS (1 / (n - 1)) STORED": "22012",
    "ADD COLUMN g INT8 AS (1 / (n - 1)) STORED UNIQUE": "22012",
    "ADD COLUMN g INT2 AS (k * 40000) STORED": "22003",
    "ADD COLUMN g INT8 NOT NULL": "23502",
    "ADD COLUMN g INT8 NOT NULL AS (nullif(n, 1)) STORED": "23502",
    "ALTER COLUMN s TYPE INT8 USING s::INT8": "22P02",
    "ADD COLUMN g INT8 DEFAULT 9 REFERENCES a (k)": "23503",
    "ADD COLUMN g INT8 DEFAULT 1, ADD FOREIGN KEY (n) REFERENCES b (k), ADD UNIQUE (n)": "23505",
    "ADD COLUMN g TEXT AS (repeat(s, 70000000)) STORED": "54000",
}
"""Commands, and the SQLSTATE that each fails with on the rows of `ready`."""

ROWS = [(1, 1, "x"), (2, 1, "y")]

REMOVAL_SECONDS = 1.0
"""Of virtual time: a job removes data when its statement has been answered."""

UNDONE = "ALTER TABLE a ADD COLUMN g INT8 AS (k / k) STORED UNIQUE"


async def ready(node: SqlNode, *, locked: bool) -> None:
    await node.sql("CREATE TABLE a (k INT8 PRIMARY KEY, n INT8 NOT NULL, s STRING)")
    await node.sql("INSERT INTO a VALUES (1, 1, 'x'), (2, 1, 'y')")
    await node.sql("CREATE TABLE b (k INT8 PRIMARY KEY)")
    await node.sql("INSERT INTO b VALUES (1)")
    if locked:
        await node.sql("ALTER TABLE a SET (changefeed_optimized = true)")


async def table_of(node: SqlNode, name: str) -> TableDescriptor:
    reader = node.store.snapshot(node.store.clock.now())
    tables = await node.services.catalog.list_tables(reader, "defaultdb")
    return next(table for table in tables if table.name == name)


async def check_whole(node: SqlNode) -> None:
    """The table is as `ready` left it, and can be altered and dropped."""
    assert await node.rows("SELECT * FROM a ORDER BY k") == ROWS
    await check_changeable(node)


async def check_changeable(node: SqlNode) -> None:
    await node.sql("ALTER TABLE a ADD COLUMN g INT8 DEFAULT 3")
    await node.sql("CREATE INDEX ON a (g)")
    await node.sql("ALTER TABLE a RENAME TO c")
    await node.sql("TRUNCATE c")
    await node.sql("DROP TABLE c")


@pytest.mark.parametrize("seed", range(4))
def test_the_next_statement_knows_nothing_of_it(seed: int) -> None:
    sim = Simulation(seed=seed)

    async def main() -> None:
        async with sql_node(sim) as node:
            for number in range(6):
                table = f"t{number}"
                await node.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY, n INT8)")
                await node.sql(f"INSERT INTO {table} VALUES (1, 1)")
                failed = await node.error(f"ALTER TABLE {table} ADD CONSTRAINT c CHECK (n > 1)")
                assert failed.sqlstate == "23514"
                await node.sql(f"INSERT INTO {table} VALUES (2, 0)")

    sim.run(main())


@pytest.mark.parametrize("locked", [False, True], ids=["unlocked", "locked"])
@pytest.mark.parametrize("commands", FAILING)
def test_failed_change_leaves_the_table_whole(commands: str, locked: bool) -> None:
    sim = Simulation(seed=5)

    async def main() -> None:
        async with sql_node(sim) as node:
            await ready(node, locked=locked)
            before = await node.rows("SHOW CREATE TABLE a")
            failed = await node.error(f"ALTER TABLE a {commands}")
            assert failed.sqlstate == FAILING[commands], failed
            assert await node.rows("SHOW CREATE TABLE a") == before
            await check_whole(node)

    sim.run(main())


@pytest.mark.parametrize("locked", [False, True], ids=["unlocked", "locked"])
@pytest.mark.parametrize("commands", FAILING)
def test_way_back_from_every_stage_ends_at_the_beginning(commands: str, locked: bool) -> None:
    sim = Simulation(seed=5)

    async def main() -> None:
        async with sql_node(sim) as node:
            await ready(node, locked=locked)
            before = await table_of(node, "a")
            await node.error(f"ALTER TABLE a {commands}")
            (job,) = [job for job in await node.registry.list() if job.kind == JOB_KIND]
            change = decode_change(job.payload)
            check_every_way_back(before, change.targets, locked=locked)

    sim.run(main())


def check_every_way_back(
    before: TableDescriptor, targets: Sequence[Target], *, locked: bool
) -> None:
    stages = plan(targets, locked=locked)
    for done in range(len(stages) + 1):
        if not revertible(targets, stages, done):
            assert done > 1
            return
        table = before
        for stage in (*stages[:done], *plan_rollback(targets, stages[:done], locked=locked)):
            if isinstance(stage, VersionStage):
                table = apply_stage(table, targets, stage)
        table = replace(
            table, next_column_id=before.next_column_id, next_index_id=before.next_index_id
        )
        assert table == before
    raise AssertionError("every change comes to where it cannot be undone")


def test_database_of_a_failed_change_is_dropped() -> None:
    """Also behind a restart."""
    sim = Simulation(seed=10)

    async def fail() -> None:
        async with sql_node(sim) as node:
            for database in ("shop", "later"):
                await node.sql(f"CREATE DATABASE {database}")
                await node.sql(f"USE {database}")
                await ready(node, locked=False)
                failed = await node.error("ALTER TABLE a ADD COLUMN g INT8 UNIQUE DEFAULT 1")
                assert failed.sqlstate == "23505"
            await node.sql("USE defaultdb")
            await node.sql("DROP DATABASE shop CASCADE")

    async def look() -> None:
        async with sql_node(sim) as node:
            await node.sql("DROP DATABASE later CASCADE")
            names = [name for name, *_ in await node.rows("SHOW DATABASES")]
            assert "shop" not in names
            assert "later" not in names

    sim.run(fail())
    sim.run(look())


def test_failed_change_leaves_the_table_whole_behind_a_restart() -> None:
    sim = Simulation(seed=6)

    async def fail() -> None:
        async with sql_node(sim) as node:
            await ready(node, locked=True)
            await node.error("ALTER TABLE a ADD COLUMN g INT8 UNIQUE DEFAULT 1")

    async def look() -> None:
        async with sql_node(sim) as node:
            await check_whole(node)

    sim.run(fail())
    sim.run(look())


@pytest.mark.parametrize("locked", [False, True], ids=["unlocked", "locked"])
@pytest.mark.parametrize("fault_at", range(1, 12))
@pytest.mark.parametrize("statement", ["ALTER TABLE a ADD UNIQUE (s), DROP COLUMN n", UNDONE])
def test_fault_at_any_stage_leaves_the_table_whole(
    statement: str, fault_at: int, locked: bool
) -> None:
    """Once, what no code foresees is raised: on the way there, on the way back, or behind both."""
    sim, numbers = Simulation(seed=7), count(1)
    carry_out = SchemaChanger._carry_out

    async def faulty(*given: object, **named: object) -> None:
        if next(numbers) == fault_at:
            raise RuntimeError("a fault of ours")
        await carry_out(*given, **named)  # type: ignore[arg-type]

    async def main() -> None:
        async with sql_node(sim) as node:
            await ready(node, locked=locked)
            before = await node.rows("SHOW CREATE TABLE a")
            with patch.object(SchemaChanger, "_carry_out", faulty):
                try:
                    await node.sql(statement)
                except SQLError as failed:
                    assert failed.sqlstate in ("XX000", "23505"), failed
                    assert await node.rows("SHOW CREATE TABLE a") == before
                    assert await node.rows("SELECT * FROM a ORDER BY k") == ROWS
                await asyncio.sleep(REMOVAL_SECONDS)
            await check_changeable(node)

    sim.run(main())


def test_failed_reference_leaves_the_other_one_in_force() -> None:
    sim = Simulation(seed=8)

    async def main() -> None:
        async with sql_node(sim) as node:
            await ready(node, locked=False)
            await node.sql("ALTER TABLE a ADD FOREIGN KEY (n) REFERENCES b")
            failed = await node.error("ALTER TABLE a ADD FOREIGN KEY (k) REFERENCES b")
            assert failed.sqlstate == "23503"
            assert (await node.error("DELETE FROM b")).sqlstate == "23503"

    sim.run(main())


def test_reference_to_a_table_that_is_locked_meanwhile_is_undone() -> None:
    sim = Simulation(seed=9)

    async def main() -> None:
        async with sql_node(sim) as node:
            await ready(node, locked=False)
            other = node.session()
            carry_out = SchemaChanger._carry_out

            async def locking(*given: object, **named: object) -> None:
                if isinstance(given[2], WorkStage):
                    await other.execute("ALTER TABLE b SET (changefeed_optimized = true)")
                await carry_out(*given, **named)  # type: ignore[arg-type]

            with patch.object(SchemaChanger, "_carry_out", locking):
                failed = await node.error("ALTER TABLE a ADD FOREIGN KEY (k) REFERENCES b")
            assert failed.sqlstate == "23503"
            await check_whole(node)

    sim.run(main())
