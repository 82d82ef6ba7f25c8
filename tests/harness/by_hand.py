"""Changes to a mirror file that no feed made, in whichever process holds it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import duckdb

from tailrace.api.embedded import AsyncDatabase
from tailrace.catalog.jobs import JobState

SECONDS = 30.0


@asynccontextmanager
async def by_hand(database: AsyncDatabase, path: Path) -> AsyncIterator[duckdb.DuckDBPyConnection]:
    """A connection to the file at `path`. Where a feed worker holds it, feeds are paused meanwhile,
    and it has let go of it."""
    node = database.node
    if not node.mirrors._placement.apart(path):
        file = await node._files.acquire(path)
        with file.using_cursor() as cursor:
            yield cursor
        await file.release()
        return
    jobs = [job.id for job in await node.jobs.list() if not job.state.final]
    for job_id in jobs:
        await database.sql(f"PAUSE JOB {job_id}")
        await node.jobs.wait(job_id, JobState.PAUSED, timeout=SECONDS)
    assert not node.mirrors._placement.worker.uses(path)
    with duckdb.connect(str(path)) as cursor:
        yield cursor
    for job_id in jobs:
        await database.sql(f"RESUME JOB {job_id}")
        await database.feed(job_id).wait_until(await node.store.now())
