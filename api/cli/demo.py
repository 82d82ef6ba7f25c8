"""`tailrace demo`."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..demo.crashes.run import CrashOutcome, run_crash_demo
from ..demo.raw.run import ReplicationOutcome, run_replication_demo
from ..demo.report import DemoOutcome, print_next
from ..demo.run import run_demo
from ..demo.spark_run import LakeOutcome, run_spark_demo

DEFAULT_RATE = 60.0


def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Keep the store and the mirror in this new folder.")
    ] = None,
    rate: Annotated[float, typer.Option(min=1, max=1000, help="Replayed commits a second.")] = (
        DEFAULT_RATE
    ),
    stay: Annotated[
        bool, typer.Option("--stay", help="Leave the dashboard up at the end, until Ctrl-C.")
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Feed a Parquet lake, written by Spark, instead.")
    ] = False,
    relaxed: Annotated[
        bool,
        typer.Option(
            "--relaxed", help="Mirror a store without transactions, by its relaxed log, instead."
        ),
    ] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Replicate a raw keyspace into another store, and kill both, instead."
        ),
    ] = False,
    json_line: Annotated[
        bool, typer.Option("--json", help="End with one line of JSON; draw on standard error.")
    ] = False,
) -> None:
    """Mirror 336,776 real flights into DuckDB, then replay a day of them, unlocked and locked."""
    console = Console(stderr=json_line)
    if (spark or relaxed or raw) and stay:
        raise typer.BadParameter("--stay is for the demo without --spark, --relaxed and --raw")
    if spark + relaxed + raw > 1:
        raise typer.BadParameter("choose one of --spark, --relaxed and --raw")
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise typer.BadParameter(f"{folder} is not empty: the demo starts from nothing")
    with tempfile.TemporaryDirectory(prefix="tailrace-demo-") as temporary:
        place = folder or Path(temporary) / "data"
        outcome: DemoOutcome | LakeOutcome | CrashOutcome | ReplicationOutcome
        name = "demo"
        if relaxed:
            name = "demo_relaxed"
            outcome = asyncio.run(run_crash_demo(place, console))
        elif raw:
            name = "demo_raw"
            outcome = asyncio.run(run_replication_demo(place, console))
        elif spark:
            name = "demo_spark"
            outcome = asyncio.run(run_spark_demo(place, console))
        else:
            outcome = asyncio.run(run_demo(place, console, rate=rate, stay=stay))
    print_next(console, folder)
    if json_line:
        print(json.dumps({"benchmark": name, "metrics": outcome.metrics()}), flush=True)
    if outcome.differences:
        raise typer.Exit(1)
