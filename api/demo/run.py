"""The demo from beginning to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ...changefeed.pipeline.live import LiveFeed
from ...kvlayer.clock import format_timestamp
from ...kvlayer.process.tuned_process import tuned_process
from ..embedded import AsyncDatabase
from .compare import Comparison, compare_tables
from .flights import FLIGHTS, OTHER_TABLES, DemoTable, read_table
from .replay import replay
from .report import DemoOutcome, print_outcome, print_plan
from .schedule import FlightEvent, as_scheduled, day_events
from .server import demo_server, until_told

MIRROR = "flights.duckdb"
POLL_WHILE_UNLOCKED = "SET CLUSTER SETTING changefeed.schema_feed.delegate = 'polling'"
"""What the low-latency RFC starts from. Tailrace's own way for an unlocked table, a range feed over
the catalog, is in the dashboard's comparison."""

LOAD_SLICE_ROWS = 10_000
SCAN_POLL_SECONDS = 0.1


async def run_demo(
    folder: Path, console: Console, *, rate: float, stay: bool = False
) -> DemoOutcome:
    """Loads, mirrors, replays and compares, drawing bars on `console`, and prints what came of it.

    The dashboard is up meanwhile; with `stay` also afterwards, until the process is told to end.
    """
    actual = read_table(FLIGHTS.name)
    events = day_events(actual)
    print_plan(console, commits=len(events), rate=rate)
    async with demo_server(folder, console) as database:
        outcome = await _run(database, actual, events, console, rate)
        print_outcome(console, outcome)
        if stay:
            await until_told(console)
    return outcome


async def _run(
    database: AsyncDatabase,
    actual: pa.Table,
    events: Sequence[FlightEvent],
    console: Console,
    rate: float,
) -> DemoOutcome:
    with bars_on(console) as bars:
        await database.sql(POLL_WHILE_UNLOCKED)
        await _load_tables(database, actual, bars)
        live = await _mirror(database, actual.num_rows, bars)
        bar = bars.add_task("replay 2013-11-27", total=len(events))
        with tuned_process():
            outcome = await replay(
                database, live, events, rate=rate, advanced=lambda: bars.advance(bar)
            )
    comparisons = await _compare(database, live, actual)
    return DemoOutcome(
        rows=actual.num_rows,
        unlocked=outcome.unlocked,
        locked=outcome.locked,
        comparisons=comparisons,
    )


def bars_on(console: Console) -> Progress:
    """Bars for what is loaded and replayed."""
    return Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


async def _load_tables(database: AsyncDatabase, actual: pa.Table, bars: Progress) -> None:
    scheduled = as_scheduled(actual)
    for table in (*OTHER_TABLES, FLIGHTS):
        rows = scheduled if table is FLIGHTS else read_table(table.name)
        await load_table(database, table, rows, bars)


async def load_table(
    database: AsyncDatabase, table: DemoTable, rows: pa.Table, bars: Progress
) -> None:
    await database.sql(table.create)
    bar = bars.add_task(f"load {table.name}", total=rows.num_rows)

    async def slices() -> AsyncIterator[pa.RecordBatch]:
        for batch in rows.to_batches(max_chunksize=LOAD_SLICE_ROWS):
            yield batch
            bars.advance(bar, batch.num_rows)

    await database.load(table.name, slices())


async def _mirror(database: AsyncDatabase, rows: int, bars: Progress) -> LiveFeed:
    """Creates the changefeed and waits until the table as it stands is in the mirror."""
    made = await database.sql(f"CREATE CHANGEFEED FOR TABLE flights INTO 'duckdb:///{MIRROR}'")
    job_id = made.fetchall()[0][0]
    assert isinstance(job_id, int)
    bar = bars.add_task("initial scan", total=rows)
    live = database.feed(job_id)
    mirrored = asyncio.create_task(live.wait_until(await database.node.store.now()))
    while not mirrored.done():
        await asyncio.wait([mirrored], timeout=SCAN_POLL_SECONDS)
        bars.update(bar, completed=live.scanned_rows)
    await mirrored
    return live


async def _compare(
    database: AsyncDatabase, live: LiveFeed, actual: pa.Table
) -> dict[str, Comparison]:
    await live.wait_until(await database.node.store.now())
    resolved = format_timestamp(live.resolved)
    source = (await database.sql(f"SELECT * FROM flights AS OF SYSTEM TIME '{resolved}'")).arrow()
    mirrored = await database.mirror(MIRROR).sql("SELECT * FROM flights")
    return {
        "mirror against source": compare_tables(source, mirrored, FLIGHTS.key),
        "source against the CSV": compare_tables(actual, source, FLIGHTS.key),
        "mirror against the CSV": compare_tables(actual, mirrored, FLIGHTS.key),
    }
