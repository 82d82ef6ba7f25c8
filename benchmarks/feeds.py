"""What changefeeds cost and how late they are: each figure of its own, in one process.

python -m benchmarks.feeds [--rows 1000000] [--only NAME …]

alter_add_pause_ms_p99       emit p99 of a feed's tables while one of `--rows` rows is added
ten_feeds_cost               CPU of ten feeds on one table over that of one, writers included
hundred_tables_emit_ms_p99   one feed over 100 tables, of which one is written
idle_resolved_ms_p99         how far the progress that a mirror's reader sees is behind, feed idle
transaction_apply_over_row   rows a second into a mirror with apply=transaction over apply=row
verify_over_scans            VERIFY CHANGEFEED over reading both sides once
jobs_2000_over_10            see `benchmarks.jobs`
stage_overhead               CPU a row with stage times over without, median of alternating runs
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median

from benchmarks import jobs
from benchmarks.outcome import print_outcome
from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.pipeline.stage_times import Milestone, StageRecorder
from tailrace.kvlayer.clock import seconds_between
from tailrace.kvlayer.process.tuned_process import tuned_process

COLUMNS = "(id INT8 PRIMARY KEY, customer INT8, amount FLOAT8, note STRING)"
LOCKED = "WITH (changefeed_optimized = true)"
RATE = 100.0
LOADED_AT_ONCE = 10_000
SETTLING_SECONDS = 1.0


async def create_table(database: AsyncDatabase, name: str) -> None:
    await database.sql(f"CREATE TABLE {name} {COLUMNS} {LOCKED}")


async def load(database: AsyncDatabase, name: str, rows: int, *, first: int = 0) -> None:
    """Rows in transactions of `LOADED_AT_ONCE`."""
    for start in range(first, first + rows, LOADED_AT_ONCE):
        await database.sql(
            f"INSERT INTO {name} SELECT i, i % 997, i * 0.5, 'a note' "
            "FROM generate_series($1, $2) AS g(i)",
            [start, min(start + LOADED_AT_ONCE, first + rows) - 1],
        )


async def create_feed(database: AsyncDatabase, tables: str, sink: str) -> LiveFeed:
    """A feed that has shown all there was."""
    made = await database.sql(f"CREATE CHANGEFEED FOR TABLE {tables} INTO '{sink}'")
    job_id = made.fetchall()[0][0]
    assert isinstance(job_id, int)
    live = database.feed(job_id)
    await live.wait_until(await database.node.store.now())
    return live


async def insert_slowly(database: AsyncDatabase, name: str, first: int, rows: int) -> int:
    """Single rows, `RATE` a second; returns the next free key."""
    began = time.monotonic()
    for place in range(rows):
        await asyncio.sleep(max(0.0, began + place / RATE - time.monotonic()))
        await database.sql(
            f"INSERT INTO {name} VALUES ($1, 1, 0.5, 'a note')", [-1 - first - place]
        )
    return first + rows


def emit_p99(live: LiveFeed) -> float:
    emit = live.stages.latency(Milestone.EMIT)
    assert emit is not None, "nothing was written"
    return emit.p99


@asynccontextmanager
async def database_of() -> AsyncIterator[AsyncDatabase]:
    with tempfile.TemporaryDirectory(prefix="tailrace-feeds-") as name:
        async with await aopen(Path(name)) as database:
            yield database


async def alter_add_pause(rows: int) -> dict[str, float]:
    async with database_of() as database:
        for name in ("old", "added"):
            await create_table(database, name)
        await load(database, "added", rows)
        live = await create_feed(database, "old", "duckdb:///m.duckdb")
        written = await insert_slowly(database, "old", 0, 100)
        live.stages.clear()
        written = await insert_slowly(database, "old", written, 300)
        before = emit_p99(live)
        live.stages.clear()
        with tuned_process():
            began = time.monotonic()
            await database.sql(f"ALTER CHANGEFEED {live.job_id} ADD added")
            seen = 0
            while not seen:
                written = await insert_slowly(database, "old", written, 50)
                seen = await _shown(database, rows)
            took = time.monotonic() - began
        return {
            "alter_add_pause_ms_p99": emit_p99(live),
            "alter_add_before_ms_p99": before,
            "alter_add_seconds": took,
        }


async def _shown(database: AsyncDatabase, rows: int) -> int:
    """How many rows of the added table the mirror has, once it has all of them."""
    try:
        found = await database.mirror("m.duckdb").sql("SELECT count(*) FROM added")
    except Exception:
        return 0  # not made yet
    count = int(found.to_pydict().popitem()[1][0])
    return count if count == rows else 0


async def ten_feeds(rows: int) -> dict[str, float]:
    """Bulk loads in transactions of 100, as a burst of writes is."""
    spent = {count: await _cpu_of_feeds(count, rows) for count in (0, 1, 10)}
    return {
        "ten_feeds_cost": spent[10] / spent[1],
        "feed_us_a_row": 1e6 * (spent[1] - spent[0]) / rows,
        "tenth_feed_us_a_row": 1e6 * (spent[10] - spent[1]) / 9 / rows,
    }


async def _cpu_of_feeds(count: int, rows: int) -> float:
    """CPU seconds of loading `rows`, and of all feeds that follow: the least of three loads."""
    async with database_of() as database:
        await create_table(database, "t")
        feeds = [await create_feed(database, "t", "null://") for _ in range(count)]
        await asyncio.sleep(SETTLING_SECONDS)
        found = []
        for turn in range(4):
            began = time.process_time()
            await _burst(database, rows, first=turn * rows)
            now = await database.node.store.now()
            await asyncio.gather(*(live.wait_until(now) for live in feeds))
            found.append(time.process_time() - began)
        return min(found[1:])


async def _burst(database: AsyncDatabase, rows: int, *, first: int) -> None:
    for start in range(first, first + rows, 100):
        await database.sql(
            "INSERT INTO t SELECT i, i % 997, i * 0.5, 'a note' "
            "FROM generate_series($1, $2) AS g(i)",
            [start, min(start + 100, first + rows) - 1],
        )


async def hundred_tables() -> dict[str, float]:
    async with database_of() as database:
        names = [f"t{number}" for number in range(100)]
        for name in names:
            await create_table(database, name)
        live = await create_feed(database, ", ".join(names), "duckdb:///m.duckdb")
        written = await insert_slowly(database, "t0", 0, 100)
        found = []
        for _ in range(3):
            live.stages.clear()
            with tuned_process():
                written = await insert_slowly(database, "t0", written, 200)
            found.append(emit_p99(live))
        return {"hundred_tables_emit_ms_p99": min(found)}


async def idle_resolved(seconds: float, feeds: int) -> dict[str, float]:
    """A reader of each mirror asks for its resolved timestamp, fifty times a second in all."""
    async with database_of() as database:
        for number in range(feeds):
            await create_table(database, f"t{number}")
            await create_feed(database, f"t{number}", f"duckdb:///m{number}.duckdb")
        await asyncio.sleep(SETTLING_SECONDS)
        used, began = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        unread = (time.process_time() - used) / (time.monotonic() - began)
        lags, took, number = [], [], 0
        with tuned_process():
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                await asyncio.sleep(0.02)
                number += 1
                mirror = database.mirror(f"m{number % feeds}.duckdb")
                asked, now = time.perf_counter(), await database.node.store.now()
                found = await mirror.sql("SELECT resolved FROM _tailrace.progress")
                took.append(1e3 * (time.perf_counter() - asked))
                lags.append(1e3 * seconds_between(found.column(0)[0].as_py(), now))
        lags.sort()
        return {
            "idle_resolved_ms_p50": lags[len(lags) // 2],
            "idle_resolved_ms_p99": lags[len(lags) * 99 // 100],
            "idle_read_ms_p50": median(took),
            "idle_unread_cpu_percent": 100 * unread,
        }


async def transaction_apply(rows: int) -> dict[str, float]:
    rates = {}
    for apply in ("row", "transaction"):
        async with database_of() as database:
            await create_table(database, "t")
            live = await create_feed(database, "t", f"duckdb:///m.duckdb?apply={apply}")
            began = time.perf_counter()
            await load(database, "t", rows)
            await live.wait_until(await database.node.store.now())
            rates[apply] = rows / (time.perf_counter() - began)
    return {
        "transaction_apply_over_row": rates["transaction"] / rates["row"],
        "row_apply_rows_per_s": rates["row"],
    }


async def verify(rows: int) -> dict[str, float]:
    async with database_of() as database:
        await create_table(database, "t")
        await load(database, "t", rows)
        live = await create_feed(database, "t", "duckdb:///m.duckdb")
        began = time.perf_counter()
        assert await _read_source(database) == rows
        found = await database.mirror("m.duckdb").sql("SELECT * FROM t ORDER BY id")
        assert found.num_rows == rows
        scans = time.perf_counter() - began
        del found
        began = time.perf_counter()
        await database.sql(f"VERIFY CHANGEFEED {live.job_id}")
        took = time.perf_counter() - began
        return {"verify_over_scans": took / scans, "verify_seconds": took}


async def _read_source(database: AsyncDatabase) -> int:
    """Every row as of now, decoded."""
    node, count = database.node, 0
    at = await node.store.now()
    described = await DescriptorStore(node.store).all_at(at)
    (table,) = [
        each for each in described if isinstance(each, TableDescriptor) and each.name == "t"
    ]
    codec = codec_for(table)
    async for rows in node.store.snapshot(at).scan_slices(table.primary_span):
        codec.decode_columns([body for _, body in rows])
        count += len(rows)
    return count


@contextmanager
def unmeasured() -> Iterator[None]:
    """Nobody notes stage times."""
    kept = StageRecorder.note_received, StageRecorder.note_sunk
    StageRecorder.note_received = StageRecorder.note_sunk = (  # type: ignore[method-assign]
        lambda self, commits, stages: None
    )
    try:
        yield
    finally:
        StageRecorder.note_received, StageRecorder.note_sunk = kept  # type: ignore[method-assign]


async def stage_overhead(rows: int, runs: int) -> dict[str, float]:
    """Single-row commits, since a commit is what is noted."""
    async with database_of() as database:
        await create_table(database, "t")
        live = await create_feed(database, "t", "null://")
        number = 0

        async def cpu() -> float:
            nonlocal number
            gc.collect()
            began = time.process_time()
            for _ in range(rows):
                number += 1
                await database.sql("INSERT INTO t VALUES ($1, 1, 0.5, 'a note')", [number])
            await live.wait_until(await database.node.store.now())
            return time.process_time() - began

        await cpu()
        ratios = []
        for _ in range(runs):
            measured = await cpu()
            with unmeasured():
                ratios.append(measured / await cpu())
        return {"stage_overhead": median(ratios)}


async def measure_jobs(looks: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tailrace-jobs-") as name:
        figures = await jobs.measure(looks, Path(name))
    return {"jobs_2000_over_10": figures["jobs_2000_over_10"]}


def parts(
    rows: int, seconds: float
) -> dict[str, Callable[[], Coroutine[None, None, dict[str, float]]]]:
    return {
        "alter_add_pause": lambda: alter_add_pause(rows),
        "ten_feeds": lambda: ten_feeds(min(rows, 20_000)),
        "hundred_tables": hundred_tables,
        "idle_resolved": lambda: idle_resolved(seconds, 10),
        "transaction_apply": lambda: transaction_apply(rows // 2),
        "verify": lambda: verify(rows),
        "jobs": lambda: measure_jobs(50),
        "stage_overhead": lambda: stage_overhead(1_000, 11),
    }


def measure(names: Sequence[str], rows: int, seconds: float) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, part in parts(rows, seconds).items():
        if not names or name in names:
            found: dict[str, float] = asyncio.run(part())
            print("  ".join(f"{figure} {value:.3f}" for figure, value in found.items()), flush=True)
            figures |= found
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of looking at an idle feed")
    parser.add_argument("--only", nargs="*", default=[], choices=list(parts(0, 0.0)))
    arguments = parser.parse_args()
    print_outcome("feeds", measure(arguments.only, arguments.rows, arguments.seconds))


if __name__ == "__main__":
    main()
