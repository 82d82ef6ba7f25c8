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

from ...changefeed.pipeline.stage_times import Stage
from ..bench.latency import FeedLatency, measure_latency

bench_app = typer.Typer(help="Measure this machine.", no_args_is_help=True)

_MEANING = {
    Stage.DURABLE: "the log is synced",
    Stage.GATED: "the schema is proven",
    Stage.DECODED: "bytes are columns",
    Stage.EMIT: "the sink has the row",
    Stage.SINK: "DuckDB has committed it",
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
    """How long a commit takes to reach each stage of a feed into DuckDB."""
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        measured = asyncio.run(
            measure_latency(Path(folder) / "data", rows=rows, rate=rate, locked=not unlocked)
        )
    _print(measured, rows, rate, unlocked)
    metrics = {
        f"{stage.value}_ms_{percentile}": round(getattr(found, percentile), 4)
        for stage, found in measured.stages.items()
        for percentile in ("p50", "p99")
    }
    print(json.dumps({"benchmark": "latency", "metrics": metrics}), flush=True)


def _print(measured: FeedLatency, rows: int, rate: float, unlocked: bool) -> None:
    state = "unlocked" if unlocked else "locked"
    title = f"{rows:,} commits, {rate:g} a second, table {state}: milliseconds from commit"
    table = Table(title=title)
    table.add_column("until")
    for heading in ("p50", "p95", "p99", "max"):
        table.add_column(heading, justify="right")
    for stage, found in measured.stages.items():
        figures = (found.p50, found.p95, found.p99, found.max)
        table.add_row(_MEANING[stage], *[f"{value:,.2f}" for value in figures])
    Console().print(table)
