"""A feed while its table is altered: what a row waits for, and how long the change takes.

    python -m benchmarks.schema_change [--rows 1000000] [--rate 200]

On a locked table of that many rows, mirrored into DuckDB with a second table:

    baseline_emit_ms_p99           rows of the table, nothing altered
    locked_emit_ms_p99, _max       rows of the table, through ADD COLUMN with a constant default
    publish_ms                     that ALTER TABLE, from the call until it has returned
    rewritten_emit_ms_p99          rows of the table, through ADD COLUMN with a volatile default
    other_emit_ms_p99              rows of the second table, through another of these
    loop_delay_ms_p99              by how much the event loop is late, through either of the two
    backfill_seconds               that ALTER TABLE, which rewrites every row
    backfill_rows_per_s            rows that it rewrote, a second
    feed_backfill_seconds          from its return until the feed has shown the rows again
    polling_emit_ms_p50            rows of an unlocked table whose feed polls, nothing altered

Emit is from the call of commit until the sink has the row, and sink until it is durable there. Both
are measured until the feed is behind the change, the rows that it shows again included.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bulk import orders
from benchmarks.outcome import print_outcome
from tailrace.api.bench.latency import CREATE_ORDERS, UNLOCK_ORDERS
from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.pipeline.stage_times import Latency, Milestone
from tailrace.kvlayer.process.tuned_process import tuned_process

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

BASELINE_SECONDS = 5.0
PROBE_SECONDS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What rows waited for through a change, in milliseconds, and how long it took, in seconds.

    `loop_delay_ms` are by how much the event loop was late, measured again and again. The change
    took `altered` until its statement had returned, and `shown` until the feed was behind it.
    """

    name: str
    emit: Latency
    sink: Latency
    loop_delay_ms: Sequence[float]
    altered: float
    shown: float

    @property
    def loop_p99(self) -> float:
        return sorted(self.loop_delay_ms)[len(self.loop_delay_ms) * 99 // 100]

    def __str__(self) -> str:
        return (
            f"{self.name:28} {self.emit.p50:9.2f} {self.emit.p99:9.2f} {self.emit.max:9.2f} "
            f"{self.sink.p99:9.2f} {self.loop_p99:9.2f} {max(self.loop_delay_ms):9.2f} "
            f"{self.altered:9.2f} {self.shown:9.2f}"
        )


HEADING = (
    f"{'ms (and, at the end, s)':28} {'emit p50':>9} {'emit p99':>9} {'emit max':>9} "
    f"{'sink p99':>9} {'loop p99':>9} {'loop max':>9} {'altered':>9} {'shown':>9}"
)


class Load:
    """Single-row commits at a rate, while something else happens; and what they waited for."""

    def __init__(self, database: AsyncDatabase, live: LiveFeed, *, rate: float) -> None:
        self._database = database
        self._live = live
        self._rate = rate

    async def through(self, name: str, writes: str, change: Awaitable[object]) -> Change:
        """Writes rows while something happens, and until the feed has gone on behind it."""
        self._live.stages.clear()
        delays: list[float] = []
        helpers = [asyncio.create_task(self._write(writes)), asyncio.create_task(_probe(delays))]
        await asyncio.sleep(BEFORE_AND_AFTER_SECONDS)
        began = time.monotonic()
        await change
        altered = time.monotonic() - began
        await self._caught_up()
        shown = time.monotonic() - began
        await asyncio.sleep(BEFORE_AND_AFTER_SECONDS)
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        await self._caught_up()
        emit, sink = (
            self._live.stages.latency(stage) for stage in (Milestone.EMIT, Milestone.SINK)
        )
        assert emit is not None and sink is not None, "nothing was written"
        return Change(
            name=name, emit=emit, sink=sink, loop_delay_ms=delays, altered=altered, shown=shown
        )

    async def _caught_up(self) -> None:
        await self._live.wait_until(await self._database.node.store.now())

    async def _write(self, statement: str) -> None:
        session = self._database.session()
        try:
            began, number = time.monotonic(), 0
            while True:
                await asyncio.sleep(max(0.0, began + number / self._rate - time.monotonic()))
                await session.sql(statement, (number % 1000,))
                number += 1
        finally:
            await session.close()


async def _probe(delays: list[float]) -> None:
    while True:
        due = time.monotonic() + PROBE_SECONDS
        await asyncio.sleep(PROBE_SECONDS)
        delays.append((time.monotonic() - due) * 1000)


async def measure_locked(folder: Path, *, rows: int, rate: float) -> dict[str, float]:
    async with await aopen(folder) as database:
        await database.sql(CREATE_ORDERS)
        await database.sql(CREATE_PAYMENTS)
        live = await _feed(database, MIRROR_BOTH)
        report = await database.load("orders", orders(rows))
        await live.wait_until(report.commit_timestamp)
        load = Load(database, live, rate=rate)
        with tuned_process():
            baseline = await load.through("nothing", WRITE_ORDER, asyncio.sleep(BASELINE_SECONDS))
            constant = await load.through("constant", WRITE_ORDER, database.sql(ADD_CONSTANT))
            rewritten = await load.through(
                "volatile", WRITE_ORDER, database.sql(ADD_VOLATILE.format(name="first"))
            )
            other = await load.through(
                "volatile, the other table",
                WRITE_PAYMENT,
                database.sql(ADD_VOLATILE.format(name="second")),
            )
        print(HEADING)
        print(*(baseline, constant, rewritten, other), sep="\n")
        locked = await database.sql("SHOW CREATE TABLE orders")
        assert "changefeed_optimized = true" in str(locked.fetchall()), locked
    return {
        "baseline_emit_ms_p99": baseline.emit.p99,
        "locked_emit_ms_p99": constant.emit.p99,
        "locked_emit_ms_max": constant.emit.max,
        "publish_ms": constant.altered * 1000,
        "rewritten_emit_ms_p99": rewritten.emit.p99,
        "rewritten_sink_ms_p99": rewritten.sink.p99,
        "other_emit_ms_p99": other.emit.p99,
        "other_sink_ms_p99": other.sink.p99,
        "loop_delay_ms_p99": max(rewritten.loop_p99, other.loop_p99),
        "backfill_seconds": other.altered,
        "backfill_rows_per_s": rows / other.altered,
        "feed_backfill_seconds": other.shown - other.altered,
    }


async def measure_polling(folder: Path, *, rate: float) -> float:
    async with await aopen(folder) as database:
        await database.sql(CREATE_ORDERS)
        await database.sql(UNLOCK_ORDERS)
        load = Load(database, await _feed(database, POLL_ORDERS), rate=rate)
        polling = await load.through("polling", WRITE_ORDER, asyncio.sleep(3.0))
        return polling.emit.p50


async def _feed(database: AsyncDatabase, statement: str) -> LiveFeed:
    made = await database.sql(statement)
    job_id = made.fetchall()[0][0]
    assert isinstance(job_id, int)
    live = database.feed(job_id)
    await live.wait_until(await database.node.store.now())
    return live


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
