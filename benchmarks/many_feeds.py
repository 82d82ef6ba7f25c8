"""What a feed costs where there are many: feeds of one small table each, each into its own file.

    python -m benchmarks.many_feeds [--feeds 200] [--rows 300] [--idle-seconds 10]

`rss_mb_per_feed` is the growth of resident memory over the number of feeds, `threads` the process's
with all of them. `create_last_over_first` compares the time from CREATE CHANGEFEED until the mirror
holds its table: median of the last ten feeds over that of the first ten. `emit_p99_over_one_feed`
is the emit p99 of the one table that is written, beside all feeds over beside none, each the least
of five rounds: a burst of another program's work spoils a round. `idle_cpu_percent` is of one core,
while nothing is written.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.outcome import print_outcome
from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.pipeline.stage_times import Milestone
from tailrace.kvlayer.process.tuned_process import tuned_process

ROUNDS = 5
RATE = 100.0
COMPARED = 10
WARM_UP_ROWS = 100
SETTLING_SECONDS = 3.0
"""For what the creation of the last feed leaves behind; a feed saves its progress once a second."""


def process_status() -> tuple[float, int]:
    """Resident memory in MB, and threads."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"])


async def create_table(database: AsyncDatabase, number: int) -> None:
    await database.sql(
        f"CREATE TABLE small_{number} (id INT8 PRIMARY KEY, note STRING) "
        "WITH (changefeed_optimized = true)"
    )
    await database.sql(f"INSERT INTO small_{number} VALUES (-1, 'first'), (-2, 'second')")


async def create_feed(database: AsyncDatabase, number: int) -> tuple[LiveFeed, float]:
    """The feed, and the seconds until its mirror held the table."""
    began = time.perf_counter()
    made = await database.sql(
        f"CREATE CHANGEFEED FOR TABLE small_{number} INTO 'duckdb:///small_{number}.duckdb'"
    )
    job_id = made.fetchall()[0][0]
    assert isinstance(job_id, int)
    live = database.feed(job_id)
    await live.wait_until(await database.node.store.now())
    return live, time.perf_counter() - began


async def insert(database: AsyncDatabase, first: int, rows: int) -> None:
    began = time.monotonic()
    for place in range(rows):
        await asyncio.sleep(max(0.0, began + place / RATE - time.monotonic()))
        await database.sql("INSERT INTO small_0 VALUES ($1, $2)", (first + place, "a note"))


class WrittenTable:
    """The table that is written, and its feed's latencies."""

    def __init__(self, database: AsyncDatabase, live: LiveFeed) -> None:
        self._database = database
        self._live = live
        self._next = 0

    async def write(self, rows: int) -> None:
        await insert(self._database, self._next, rows)
        self._next += rows
        await self._live.wait_until(await self._database.node.store.now())

    async def emit_ms_p99(self, rows: int) -> float:
        await self.write(WARM_UP_ROWS)
        found = []
        for _ in range(ROUNDS):
            self._live.stages.clear()
            with tuned_process():
                await self.write(rows)
            emit = self._live.stages.latency(Milestone.EMIT)
            assert emit is not None
            found.append(emit.p99)
        return min(found)


async def idle_cpu_percent(seconds: float) -> float:
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(seconds)
    return 100 * (time.process_time() - used) / (time.monotonic() - began)


async def measure(folder: Path, feeds: int, rows: int, idle_seconds: float) -> dict[str, float]:
    async with await aopen(folder) as database:
        for number in range(feeds):
            await create_table(database, number)
        await asyncio.sleep(SETTLING_SECONDS)
        rss_before, _ = process_status()
        idle_before = await idle_cpu_percent(idle_seconds)
        live, took = await create_feed(database, 0)
        created = [took]
        written = WrittenTable(database, live)
        alone = await written.emit_ms_p99(rows)
        for number in range(1, feeds):
            created.append((await create_feed(database, number))[1])
        await asyncio.sleep(SETTLING_SECONDS)
        rss, threads = process_status()
        idle = await idle_cpu_percent(idle_seconds)
        beside = await written.emit_ms_p99(rows)
    first, last = median(created[:COMPARED]), median(created[-COMPARED:])
    return {
        "rss_mb_per_feed": (rss - rss_before) / feeds,
        "threads": threads,
        "create_ms": first * 1e3,
        "create_last_over_first": last / first,
        "emit_ms_p99_one_feed": alone,
        "emit_ms_p99": beside,
        "emit_p99_over_one_feed": beside / alone,
        "idle_cpu_percent_none": idle_before,
        "idle_cpu_percent": idle,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feeds", type=int, default=200)
    parser.add_argument("--rows", type=int, default=300, help="commits a round")
    parser.add_argument("--idle-seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-many-feeds-") as name:
        metrics = asyncio.run(
            measure(Path(name), arguments.feeds, arguments.rows, arguments.idle_seconds)
        )
    print_outcome("many_feeds", metrics)


if __name__ == "__main__":
    main()
