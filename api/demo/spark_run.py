"""The demo's job into a Parquet lake: the same day of flights, written by Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from ...changefeed.pipeline.live import LiveFeed
from ...kvlayer.clock import Timestamp
from ..embedded import AsyncDatabase
from .compare import Comparison, compare_tables
from .flights import FLIGHTS, read_table
from .lake import final_state, read_lake
from .replay import update_statement
from .run import bars_on, load_table
from .schedule import FlightEvent, as_scheduled, day_events
from .server import demo_server

LAKE = "flights-lake"
FEED = (
    f"CREATE CHANGEFEED FOR flights INTO 'spark+parquet:///{LAKE}?master=local[2]'"
    " WITH min_checkpoint_frequency = '1s'"
)
CHANGE_KEY = (*FLIGHTS.key, "_commit_timestamp")
"""What no two rows of the lake share, where every change is there once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeOutcome:
    """The number of changes in the lake, and its differences from what it should hold."""

    changes: int
    comparisons: dict[str, Comparison]

    @property
    def differences(self) -> int:
        return sum(comparison.differences for comparison in self.comparisons.values())

    def metrics(self) -> dict[str, float]:
        return {"changes": self.changes, "differences": self.differences}


async def run_spark_demo(folder: Path, console: Console) -> LakeOutcome:
    """Loads, feeds a lake, replays and compares. Raises SQLError 58030 where Spark cannot run."""
    actual = read_table(FLIGHTS.name)
    scheduled = as_scheduled(actual)
    async with demo_server(folder, console) as database:
        with bars_on(console) as bars:
            await load_table(database, FLIGHTS, scheduled, bars)
            made = await database.sql(FEED)
            job_id = made.fetchall()[0][0]
            assert isinstance(job_id, int)
            live = database.feed(job_id)
            bar = bars.add_task("into the lake by Spark", total=None)
            await live.wait_until(await database.node.store.now())
            bars.update(bar, total=1, completed=1)
            events = day_events(actual)
            bar = bars.add_task("replay 2013-11-27", total=len(events))
            stamps = await _replay(database, events, lambda: bars.advance(bar))
        outcome = await _compare(database, live, actual, scheduled, events, stamps, folder)
    _print(console, outcome)
    return outcome


async def _replay(
    database: AsyncDatabase, events: Sequence[FlightEvent], advanced: Callable[[], None]
) -> list[Timestamp]:
    """Commits the events one after the other. Their commit timestamps."""
    stamps = []
    for event in events:
        result = await database.sql(update_statement(event.columns), (*event.values, *event.key))
        assert result.commit_timestamp is not None
        stamps.append(result.commit_timestamp)
        advanced()
    return stamps


async def _compare(
    database: AsyncDatabase,
    live: LiveFeed,
    actual: pa.Table,
    scheduled: pa.Table,
    events: Sequence[FlightEvent],
    stamps: Sequence[Timestamp],
    folder: Path,
) -> LakeOutcome:
    """Holds the lake's last state against the table and the CSV, and its changes against those
    that were committed: the scan's rows, then one whole row for each event."""
    await live.wait_until(await database.node.store.now())
    source = (await database.sql("SELECT * FROM flights")).arrow()
    changes = read_lake(folder / "mirrors" / LAKE)
    state = final_state(changes, FLIGHTS.key)
    scanned_at: int = pc.min(changes["_commit_timestamp"]).as_py()
    committed = expected_changes(scheduled, scanned_at, events, stamps)
    return LakeOutcome(
        changes=changes.num_rows,
        comparisons={
            "lake against source": compare_tables(source, state, FLIGHTS.key),
            "lake against the CSV": compare_tables(actual, state, FLIGHTS.key),
            "every change, once": compare_changes(committed, changes),
        },
    )


def expected_changes(
    scheduled: pa.Table,
    scanned_at: int,
    events: Sequence[FlightEvent],
    stamps: Sequence[Timestamp],
) -> pa.Table:
    """Every row that the lake must hold: an update's row is the whole row as of then."""
    rows = {tuple(row[name] for name in FLIGHTS.key): row for row in _of_the_day(scheduled, events)}
    changed = []
    for event, stamp in zip(events, stamps, strict=True):
        row = {**rows[event.key], **dict(zip(event.columns, event.values, strict=True))}
        rows[event.key] = row
        changed.append({**row, "_op": "upsert", "_commit_timestamp": int(stamp)})
    scan = scheduled.append_column("_op", pa.array(["upsert"] * scheduled.num_rows))
    scan = scan.append_column(
        "_commit_timestamp", pa.array([scanned_at] * scheduled.num_rows, pa.int64())
    )
    return pa.concat_tables([scan, pa.Table.from_pylist(changed, schema=scan.schema)])


def _of_the_day(scheduled: pa.Table, events: Sequence[FlightEvent]) -> list[dict[str, object]]:
    keys = {event.key for event in events}
    columns = zip(*(scheduled[name].to_pylist() for name in FLIGHTS.key), strict=True)
    places = [place for place, key in enumerate(columns) if key in keys]
    return scheduled.take(places).to_pylist()


def compare_changes(committed: pa.Table, held: pa.Table) -> Comparison:
    """As `compare_tables`; a change that is held twice is a difference too."""
    compared = compare_tables(committed, held, CHANGE_KEY)
    unique = held.group_by(list(CHANGE_KEY)).aggregate([]).num_rows
    repeated = held.num_rows - unique
    if not repeated:
        return compared
    words = f"{repeated:,} changes are there more than once"
    return Comparison(
        rows=compared.rows,
        differences=compared.differences + repeated,
        examples=(words, *compared.examples),
    )


def _print(console: Console, outcome: LakeOutcome) -> None:
    console.print(f"The lake holds {outcome.changes:,} changes.")
    for name, comparison in outcome.comparisons.items():
        if comparison.differences:
            console.print(f"[red]{name}: {comparison.differences:,} rows differ[/red]")
            for example in comparison.examples:
                console.print(f"  {example}", markup=False)
        else:
            console.print(f"{name}: {comparison.rows:,} rows, no difference")
