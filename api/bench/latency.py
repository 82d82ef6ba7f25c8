"""Commit-to-emit and commit-to-DuckDB latency of single-row commits."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from ...changefeed.pipeline.stage_times import Latency, Milestone, Stage
from ...kvlayer.process.tuned_process import tuned_process
from ..embedded import AsyncDatabase, aopen

CREATE_ORDERS = """CREATE TABLE orders (
    id INT8 PRIMARY KEY,
    customer INT8,
    amount FLOAT8,
    note STRING,
    ts TIMESTAMPTZ
) WITH (changefeed_optimized = true)"""
INSERT_ORDER = "INSERT INTO orders VALUES ($1, $2, $3, $4, $5)"
MIRROR_ORDERS = "CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///mirror.duckdb'"
POLLED = " WITH schema_feed = 'polling'"
"""What locking is measured against: unlocked, the leasing schema feed would ask a range feed, which
answers within milliseconds unless a transaction is open for long."""

UNLOCK_ORDERS = "ALTER TABLE orders RESET (changefeed_optimized)"
NOTE = "a note of some length"
WRITTEN_AT = "2026-01-01 00:00:00Z"

WARM_UP_ROWS = 200
"""Committed first and not measured: plans, codecs and DuckDB's file are cold before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedLatency:
    """Each stage of a feed, and the milestones from the call of commit, in milliseconds."""

    stages: dict[Stage, Latency]
    milestones: dict[Milestone, Latency]

    @property
    def emit(self) -> Latency:
        return self.milestones[Milestone.EMIT]

    @property
    def sink(self) -> Latency:
        return self.milestones[Milestone.SINK]


async def measure_latency(
    folder: Path, *, rows: int, rate: float, locked: bool, workers: str | None = None
) -> FeedLatency:
    """Commits `rows` rows, `rate` a second, on a new store in `folder` with a mirror, which a feed
    worker holds where `workers` is on, and where it is None what the default says."""
    async with await aopen(folder) as database:
        if workers is not None:
            await database.sql(f"SET CLUSTER SETTING changefeed.workers = '{workers}'")
        await database.sql(CREATE_ORDERS)
        if not locked:
            await database.sql(UNLOCK_ORDERS)
        made = await database.sql(MIRROR_ORDERS if locked else MIRROR_ORDERS + POLLED)
        job_id = made.fetchall()[0][0]
        assert isinstance(job_id, int)
        live = database.feed(job_id)
        await _insert(database, first=0, rows=WARM_UP_ROWS, rate=rate)
        await live.wait_until(await database.node.store.now())
        live.stages.clear()
        with tuned_process():
            await _insert(database, first=WARM_UP_ROWS, rows=rows, rate=rate)
            await live.wait_until(await database.node.store.now())
        stages = {each: live.stages.latency(each) for each in Stage}
        milestones = {each: live.stages.latency(each) for each in Milestone}
        assert len(live.stages.samples_ns(Milestone.SINK)) == rows, "every commit is measured once"
    return FeedLatency(
        stages={stage: found for stage, found in stages.items() if found},
        milestones={milestone: found for milestone, found in milestones.items() if found},
    )


async def _insert(database: AsyncDatabase, *, first: int, rows: int, rate: float) -> None:
    began = time.monotonic()
    for place in range(rows):
        await asyncio.sleep(max(0.0, began + place / rate - time.monotonic()))
        row = first + place
        await database.sql(INSERT_ORDER, (row, row % 997, row * 0.5, NOTE, WRITTEN_AT))
