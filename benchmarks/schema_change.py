"""A feed while its table is altered: what a row waits for, and how long the change takes.

    python -m benchmarks.schema_change [--rows 1000000] [--rate 200]

On a locked table of that many rows, mirrored into DuckDB with a second table:

    locked_emit_ms_p99, _max       rows of the table, through ADD COLUMN with a constant default
    publish_ms                     that ALTER TABLE, from the call until it has returned
    rewritten_emit_ms_p99          rows of the table, through ADD COLUMN with a volatile default
    other_emit_ms_p99              rows of the second table, through another of these
    backfill_rows_per_s            rows that the last ALTER rewrote, a second
    polling_emit_ms_p50            rows of an unlocked table whose feed polls, nothing altered

Emit is from the call of commit until the sink has the row.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.bulk import orders
from benchmarks.outcome import print_outcome
from tailrace.api.bench.latency import CREATE_ORDERS, UNLOCK_ORDERS
from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.api.tuned_process import tuned_process
from tailrace.changefeed.live import LiveFeed
from tailrace.changefeed.stage_times import Latency, Stage

CREATE_PAYMENTS = (
    "CREATE TABLE payments (id INT8 PRIMARY KEY, note STRING) WITH (changefeed_optimized = true)"
)
MIRROR_BOTH = "CREATE CHANGEFEED FOR TABLE orders, payments INTO 'duckdb:///mirror.duckdb'"
POLL_ORDERS = "CREATE CHANGEFEED FOR TABLE orders INTO 'null://' WITH schema_feed = 'polling'"
ADD_CONSTANT = "ALTER TABLE orders ADD COLUMN extra INT8 DEFAULT 7"
ADD_VOLATILE = "ALTER TABLE orders ADD COLUMN {name} UUID DEFAULT gen_random_uuid()"
WRITE_ORDER = "UPSERT INTO orders (id, customer, amount, note) VALUES ($1, 1, 0.5, 'again')"
WRITE_PAYMENT = "UPSERT INTO payments (id, note) VALUES ($1, 'paid')"
BEFORE_AND_AFTER_SECONDS = 1.0
"""Rows are measured for as long before and behind a change."""


class Load:
    """Single-row commits at a rate, while something else happens; and what they waited for."""

    def __init__(self, database: AsyncDatabase, live: LiveFeed, *, rate: float) -> None:
        self._database = database
        self._live = live
        self._rate = rate

    @asynccontextmanager
    async def running(self, statement: str) -> AsyncIterator[None]:
        """Within the block rows are written; the feed has passed them all behind it."""
        self._live.stages.clear()
        writing = asyncio.create_task(self._write(statement))
        await asyncio.sleep(BEFORE_AND_AFTER_SECONDS)
        yield
        await asyncio.sleep(BEFORE_AND_AFTER_SECONDS)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await self._live.wait_until(await self._database.node.store.now())

    def emit(self) -> Latency:
        found = self._live.stages.latency(Stage.EMIT)
        assert found is not None, "nothing was written"
        return found

    async def _write(self, statement: str) -> None:
        session = self._database.session()
        try:
            began, number = time.monotonic(), 0
            while True:
                await asyncio.sleep(max(0.0, began + number / self._rate - time.monotonic()))
                await session.execute(statement, (number % 1000,))
                number += 1
        finally:
            await session.close()


async def measure_locked(folder: Path, *, rows: int, rate: float) -> dict[str, float]:
    async with await aopen(folder) as database:
        await database.sql(CREATE_ORDERS)
        await database.sql(CREATE_PAYMENTS)
        live = await _feed(database, MIRROR_BOTH)
        report = await database.load("orders", orders(rows))
        await live.wait_until(report.commit_timestamp)
        load = Load(database, live, rate=rate)
        with tuned_process():
            async with load.running(WRITE_ORDER):
                published = await _timed(database, ADD_CONSTANT)
            constant = load.emit()
            greatest = max(live.stages.samples_ns(Stage.EMIT)) / 1e6
            async with load.running(WRITE_ORDER):
                await _timed(database, ADD_VOLATILE.format(name="first"))
            rewritten = load.emit()
            async with load.running(WRITE_PAYMENT):
                seconds = await _timed(database, ADD_VOLATILE.format(name="second"))
            other = load.emit()
        locked = await database.sql("SHOW CREATE TABLE orders")
        assert "changefeed_optimized = true" in str(locked.fetch_rows()), locked
    return {
        "locked_emit_ms_p99": constant.p99,
        "locked_emit_ms_max": greatest,
        "publish_ms": published * 1000,
        "rewritten_emit_ms_p99": rewritten.p99,
        "other_emit_ms_p99": other.p99,
        "backfill_rows_per_s": rows / seconds,
    }


async def measure_polling(folder: Path, *, rate: float) -> float:
    async with await aopen(folder) as database:
        await database.sql(CREATE_ORDERS)
        await database.sql(UNLOCK_ORDERS)
        load = Load(database, await _feed(database, POLL_ORDERS), rate=rate)
        async with load.running(WRITE_ORDER):
            await asyncio.sleep(3.0)
        return load.emit().p50


async def _feed(database: AsyncDatabase, statement: str) -> LiveFeed:
    made = await database.sql(statement)
    job_id = made.fetch_rows()[0][0]
    assert isinstance(job_id, int)
    live = database.feed(job_id)
    await live.wait_until(await database.node.store.now())
    return live


async def _timed(database: AsyncDatabase, statement: str) -> float:
    began = time.monotonic()
    await database.sql(statement)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=200.0, help="commits a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-schema-change-") as name:
        folder, rate = Path(name), arguments.rate
        metrics = asyncio.run(measure_locked(folder / "locked", rows=arguments.rows, rate=rate))
        polling = asyncio.run(measure_polling(folder / "polling", rate=rate))
    print_outcome("schema_change", {**metrics, "polling_emit_ms_p50": polling})


if __name__ == "__main__":
    main()
