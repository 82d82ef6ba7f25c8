"""The feed contract at the far end: what a mirror holds, in this process and in a feed worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from tailrace.changefeed.sinks.duckdb.table_schema import TableSchema
from tailrace.kvlayer.clock import Timestamp
from tests.changefeed.conformance.jobs import WRITES, Jobs, due, write
from tests.changefeed.conformance.sources import SOURCES, Source
from tests.harness.loop_worker import LoopWorker
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node
from tests.simulation.mirrors import DuckDBMirror

Make = Callable[[SqlNode], Awaitable[Source]]


async def kill_at_random(worker: LoopWorker, random: Random) -> None:
    """Kills the feed worker as it is asked for something, again and again."""
    while True:
        asked = random.choice(["create", "stand", "open", "emit", "flush", "close"])

        def kill(name: str, asked: str = asked) -> None:
            if name == asked:
                worker.on_frame = lambda name: None
                worker.kill()

        worker.on_frame = kill
        await asyncio.sleep(random.random())


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("apart", [False, True], ids=["here", "apart"])
@pytest.mark.parametrize("seed", range(2))
def test_mirror_scans_stops_and_catches_up(
    make: Make, apart: bool, seed: int, tmp_path: Path
) -> None:
    """Rows that were there, rows written while it runs and while it is paused, and a feed worker
    that dies at any step: in the end the mirror has each row once, as it was written last."""
    sim = Simulation(seed)
    mirror = DuckDBMirror(tmp_path, apart=apart)
    mirror.begin(sim)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            source = await make(node)
            jobs = Jobs(sim, node, mirror.kind(node.store), "duckdb")
            for _ in range(WRITES):
                await source.write(sim.random)
            await source.resolve()
            job_id = await jobs.create(source, mirror.uri)
            scanned_at = node.feeds.requests[-1][0].newest
            killing = asyncio.create_task(kill_at_random(mirror.worker, sim.random))
            for _ in range(3):
                writing = asyncio.create_task(write(source, sim.random))
                await jobs.run_until(job_id, await source.resolve())
                await writing
            killing.cancel()
            mirror.worker.on_frame = lambda name: None
            ended_at = await source.resolve()
            await jobs.run_until(job_id, ended_at)
            assert await held(mirror, source, job_id) == sorted(
                ((max(at, scanned_at), row) for at, row in due(source, ended_at)), key=repr
            )
            assert (mirror.worker.starts > 1) == apart

    sim.run(scenario())


async def held(
    mirror: DuckDBMirror, source: Source, job_id: int
) -> list[tuple[Timestamp, tuple[object, ...]]]:
    """When each row was written that the mirror holds, and the row."""
    schema = TableSchema(source.table, name="any", job_id=job_id)
    columns = ", ".join(schema.data_columns)
    found = await mirror.query(f"SELECT _commit_timestamp, {columns} FROM {schema.base}")
    return sorted(((Timestamp(row[0]), row[1:]) for row in found), key=repr)  # type: ignore[arg-type]
