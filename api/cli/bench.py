"""`tailrace bench`."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ...changefeed.pipeline.stage_times import Milestone, Stage
from ..bench.latency import FeedLatency, measure_latency

bench_app = typer.Typer(help="Measure this machine.", no_args_is_help=True, add_completion=False)

_MEANING = {
    Stage.COMMIT: "evaluated and appended",
    Stage.LOG: "the log is synced",
    Stage.RANGE_FEED: "the pipeline has the row",
    Stage.GATE: "its schema is proven",
    Stage.DECODE: "bytes are columns",
    Stage.ENCODE: "the sink takes it",
    Stage.FLUSH: "the flush before has ended",
    Stage.SINK: "DuckDB has committed it",
    Milestone.DURABLE: "commit to durable",
    Milestone.EMIT: "commit to emit",
    Milestone.SINK: "commit to DuckDB",
}


@bench_app.callback()
def _bench() -> None:
    """Measure this machine."""


@bench_app.command()
def latency(
    rows: Annotated[int, typer.Option(min=1, help="Single-row commits.")] = 1000,
    rate: Annotated[float, typer.Option(min=1, help="Commits a second.")] = 100.0,
    unlocked: Annotated[
        bool, typer.Option("--unlocked", help="Leave the table unlocked: the schema is polled.")
    ] = False,
) -> None:
    """How long a commit spends in each stage of a feed into DuckDB."""
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        measured = asyncio.run(
            measure_latency(Path(folder) / "data", rows=rows, rate=rate, locked=not unlocked)
        )
    _print(measured, rows, rate, unlocked)
    metrics = {
        f"{milestone.value}_ms_{percentile}": round(getattr(found, percentile), 4)
        for milestone, found in measured.milestones.items()
        for percentile in ("p50", "p99")
    }
    print(json.dumps({"benchmark": "latency", "metrics": metrics}), flush=True)


def _print(measured: FeedLatency, rows: int, rate: float, unlocked: bool) -> None:
    state = "unlocked" if unlocked else "locked"
    title = f"{rows:,} commits, {rate:g} a second, table {state}: milliseconds"
    table = Table(title=title)
    table.add_column("stage")
    for heading in ("p50", "p95", "p99", "max"):
        table.add_column(heading, justify="right")
    for passed, found in (*measured.stages.items(), *measured.milestones.items()):
        figures = (found.p50, found.p95, found.p99, found.max)
        table.add_row(_MEANING[passed], *[f"{value:,.2f}" for value in figures])
    Console().print(table)
