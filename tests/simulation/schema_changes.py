"""Random schema changes beside a writer, with their job stopped, paused and canceled at any stage.

The oracle is a model in memory: the columns that a table has and the rows that it holds, changed
only by statements that said they succeeded. After every statement the table must read as the model
says; at rest its indexes must hold just the entries of its rows, and nothing else may be left of
it in the store; and no version may have changed the lock and anything else.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

from tailrace.catalog.descriptors.descriptor import TableDescriptor, logically_equal
from tailrace.catalog.jobs import JobState
from tailrace.catalog.rows.index_codec import IndexCodec
from tailrace.catalog.schema_change import backfill
from tailrace.catalog.schema_change.job import JOB_KIND
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.keys import table_span
from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

STATEMENTS = 12
REST_SECONDS = 3.0
"""Longer than the removal of a small table's data takes, with pauses of its job."""

Row = dict[str, object]


@dataclass
class Model:
    """What the table must be: its columns but for the key, with what a missing value reads as."""

    columns: dict[str, object] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)
    next_name: int = 0

    def new_name(self) -> str:
        self.next_name += 1
        return f"c{self.next_name}"

    def table(self) -> list[tuple[object, ...]]:
        return [
            (key, *(row[name] for name in self.columns)) for key, row in sorted(self.rows.items())
        ]


async def run(sim: Simulation, seed: int) -> None:
    """One history. Raises AssertionError where a promise is broken."""
    random = Random(seed)
    async with sql_node(sim) as node:
        await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, c0 INT8)")
        began = node.store.clock.now()
        model = Model(columns={"c0": None})
        locked = random.random() < 0.5
        if locked:
            await node.sql("ALTER TABLE t SET (schema_locked = true)")
        first = await _table(node)
        for _ in range(STATEMENTS):
            await _write(node, model, random)
            await _change(node, model, random)
            await _check_rows(node, model)
        await asyncio.sleep(REST_SECONDS)
        await _check_rest(node, locked)
        await _check_versions(node, first, began)


async def _write(node: SqlNode, model: Model, random: Random) -> None:
    for _ in range(random.randrange(4)):
        key = random.randrange(40)
        if key in model.rows and random.random() < 0.3:
            await node.sql("DELETE FROM t WHERE k = $1", key)
            del model.rows[key]
            continue
        name = random.choice(list(model.columns))
        value = random.randrange(5)
        if key in model.rows:
            text, changed = f"UPDATE t SET {name} = $2 WHERE k = $1", {**model.rows[key]}
        else:
            text = f"INSERT INTO t (k, {name}) VALUES ($1, $2)"
            changed = dict(model.columns)
        changed[name] = value
        try:
            await node.sql(text, key, value)
        except SQLError as error:
            assert error.sqlstate in ("23505", "23514"), error
        else:
            model.rows[key] = changed


async def _change(node: SqlNode, model: Model, random: Random) -> None:
    """One statement, while its job meets with what may befall it, and a writer writes."""
    text, after = _statement(model, random)
    troubles = asyncio.create_task(_trouble(node, random))
    try:
        await node.sql(text)
    except SQLError as error:
        assert error.sqlstate in ("23505", "23514", "23502", "2BP01", "57014", "42704"), error
    else:
        model.columns, model.rows = after.columns, after.rows
    finally:
        troubles.cancel()
        await asyncio.wait([troubles])
        for job in await node.registry.list():
            if job.state is JobState.PAUSED:
                await node.registry.request_resume(job.id)
    model.next_name = max(model.next_name, after.next_name)


def _statement(model: Model, random: Random) -> tuple[str, Model]:
    after = Model(
        dict(model.columns), {key: dict(row) for key, row in model.rows.items()}, model.next_name
    )
    name = random.choice(list(model.columns))
    match random.randrange(8):
        case 0 | 1:
            new, value = after.new_name(), random.randrange(5)
            after.columns[new] = value
            for row in after.rows.values():
                row[new] = value
            return f"ALTER TABLE t ADD COLUMN {new} INT8 DEFAULT {value}", after
        case 2 if len(model.columns) > 1:
            del after.columns[name]
            for row in after.rows.values():
                del row[name]
            return f"ALTER TABLE t DROP COLUMN {name} CASCADE", after
        case 3:
            new = after.new_name()
            after.columns = {new if n == name else n: v for n, v in after.columns.items()}
            for row in after.rows.values():
                row[new] = row.pop(name)
            return f"ALTER TABLE t RENAME COLUMN {name} TO {new}", after
        case 4:
            return f"CREATE INDEX ON t ({name})", after
        case 5:
            return f"CREATE UNIQUE INDEX ON t ({name})", after
        case 6:
            return f"ALTER TABLE t ADD CHECK ({name} < {random.randrange(2, 6)})", after
    after.rows = {}
    return "TRUNCATE t", after


async def _trouble(node: SqlNode, random: Random) -> None:
    """Stops the job's work at some moment, as a crash would; or pauses, or cancels it."""
    while True:
        await asyncio.sleep(random.random() * 0.05)
        running = [
            job
            for job in await node.registry.list()
            if job.kind == JOB_KIND and job.state is JobState.RUNNING
        ]
        if not running:
            continue
        job = random.choice(running)
        try:
            match random.randrange(6):
                case 0:
                    await node.registry.request_cancel(job.id)
                case _:
                    for runner in list(node.registry._runners.values()):
                        await runner.close()
        except SQLError:
            pass  # it was faster


async def _table(node: SqlNode) -> TableDescriptor:
    reader = node.store.snapshot(node.store.clock.now())
    (table,) = await node.services.catalog.list_tables(reader, "defaultdb")
    return table


async def _check_rows(node: SqlNode, model: Model) -> None:
    names = ", ".join(["k", *model.columns])
    found = await node.rows(f"SELECT {names} FROM t ORDER BY k")
    assert found == model.table(), (found, model)


async def _check_rest(node: SqlNode, locked: bool) -> None:
    table = await _table(node)
    assert table.locked is locked, table
    assert table.schema_change_job is None, table
    assert table.columns == table.visible_columns, table
    assert (table.new_primary, table.old_primary) == (None, None), table
    at = node.store.clock.now()
    rows = await node.store.snapshot(at).scan(table.primary_span)
    expected = dict(rows)
    for index in table.indexes:
        expected.update(IndexCodec(table, index).entries([body for _, body in rows]))
    found = dict(await node.store.snapshot(at).scan(table_span(table.id)))
    left = {key[5:7].hex() for key in found.keys() ^ expected.keys()}
    jobs = [(job.description, job.state.value, job.error) for job in await node.registry.list()]
    assert not left, (table, "indexes", left, jobs)


async def _check_versions(node: SqlNode, first: TableDescriptor, began: Timestamp) -> None:
    versions = await node.services.catalog.descriptors.versions(
        [first.id], began, node.store.clock.now()
    )
    numbers = [version.version for version in versions]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
    for older, newer in itertools.pairwise(versions):
        assert isinstance(older, TableDescriptor)
        assert isinstance(newer, TableDescriptor)
        if older.locked or newer.locked:
            assert logically_equal(older, newer), (older, newer)


async def run_beside_a_writer(sim: Simulation, seed: int) -> None:
    """Backfills of every kind while rows are changed, deleted and inserted under them.

    Steps are small and wait for the log one by one, so that most of a slice is written over
    between its reading and its step.
    """
    random = Random(seed)
    with patch.object(backfill, "STEP_ROWS", 4), patch.object(backfill, "PENDING_MAX", 1):
        await _backfill_beside_a_writer(sim, random)


async def _backfill_beside_a_writer(sim: Simulation, random: Random) -> None:
    async with sql_node(sim) as node:
        await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, n INT8)")
        rows = {key: key for key in range(300)}
        values = ", ".join(f"({key}, {n})" for key, n in rows.items())
        await node.sql(f"INSERT INTO t VALUES {values}")
        done = asyncio.Event()
        writer = asyncio.create_task(_write_on(node, rows, random, done))
        changer = node.session()
        for text in (
            "CREATE INDEX by_n ON t (n)",
            "ALTER TABLE t ADD COLUMN twice INT8 AS (n * 2) STORED",
            "ALTER TABLE t ADD COLUMN u UUID NOT NULL DEFAULT gen_random_uuid()",
            "CREATE UNIQUE INDEX ON t (u)",
        ):
            await changer.execute(text)
        done.set()
        await writer
        await asyncio.sleep(REST_SECONDS)
        found = await node.rows("SELECT k, n, twice FROM t ORDER BY k")
        assert found == [(key, n, n * 2) for key, n in sorted(rows.items())]
        distinct = await node.rows("SELECT count(DISTINCT u) FROM t")
        assert distinct == [(len(rows),)]
        await _check_rest(node, locked=False)
        await changer.close()


async def _write_on(
    node: SqlNode, rows: dict[int, int], random: Random, done: asyncio.Event
) -> None:
    session = node.session()
    while not done.is_set():
        key, n = random.randrange(400), random.randrange(1000)
        await _write_one(session, rows, key, n)
        if random.random() < 0.2:
            await asyncio.sleep(random.random() * 0.002)


async def _write_one(session: Session, rows: dict[int, int], key: int, n: int) -> None:
    if n % 3 == 0 and key in rows:
        await session.execute("DELETE FROM t WHERE k = $1", (key,))
        del rows[key]
    elif key in rows:
        await session.execute("UPDATE t SET n = $2 WHERE k = $1", (key, n))
        rows[key] = n
    else:
        await session.execute("INSERT INTO t (k, n) VALUES ($1, $2)", (key, n))
        rows[key] = n
