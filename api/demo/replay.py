"""The replay: a day of flights as single-row commits, the table unlocked and locked in turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ...changefeed.pipeline.live import LiveFeed
from ...changefeed.pipeline.stage_times import Latency, Milestone, summarize
from ..embedded import AsyncDatabase
from ..result import Result
from .report import PhaseLatency
from .schedule import FlightEvent

PHASES = 6
"""Unlocked, locked, unlocked, …: enough turns that a busy moment of the machine meets both."""

LOCK = "ALTER TABLE flights SET (changefeed_optimized = true)"
UNLOCK = "ALTER TABLE flights RESET (changefeed_optimized)"


@dataclass(slots=True)
class _Samples:
    """Latencies of one state of the table, over all its phases."""

    commits: int = 0
    emit: list[int] = field(default_factory=list)
    sink: list[int] = field(default_factory=list)

    def take(self, live: LiveFeed) -> None:
        self.emit += live.stages.samples_ns(Milestone.EMIT)
        self.sink += live.stages.samples_ns(Milestone.SINK)
        live.stages.clear()

    def latency(self) -> PhaseLatency:
        return PhaseLatency(
            commits=self.commits, emit=_summary(self.emit), sink=_summary(self.sink)
        )


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    unlocked: PhaseLatency
    locked: PhaseLatency


async def replay(
    database: AsyncDatabase,
    live: LiveFeed,
    events: Sequence[FlightEvent],
    *,
    rate: float,
    advanced: Callable[[], None],
) -> ReplayOutcome:
    """Commits `events` in order, about `rate` a second, and measures each until it is mirrored."""
    samples = {False: _Samples(), True: _Samples()}
    cuts = [len(events) * turn // PHASES for turn in range(PHASES + 1)]
    for turn, (start, end) in enumerate(pairwise(cuts)):
        locked = turn % 2 == 1
        await database.sql(LOCK if locked else UNLOCK)
        # From here on the schema feed has proven the statement itself, and answers for the state
        # that is measured, not for the change to it.
        await live.wait_until(await database.node.store.now())
        live.stages.clear()
        phase = samples[locked]
        await _commit_all(database, events[start:end], rate, advanced)
        phase.commits += end - start
        await live.wait_until(await database.node.store.now())
        phase.take(live)
    return ReplayOutcome(samples[False].latency(), samples[True].latency())


async def _commit_all(
    database: AsyncDatabase,
    events: Sequence[FlightEvent],
    rate: float,
    advanced: Callable[[], None],
) -> None:
    began = time.monotonic()
    for place, event in enumerate(events):
        await asyncio.sleep(max(0.0, began + place / rate - time.monotonic()))
        result = await database.sql(update_statement(event.columns), (*event.values, *event.key))
        _check_one_row(result, event)
        advanced()


def update_statement(columns: Sequence[str]) -> str:
    """The transaction of an event: its values are $1 …, its key the last three parameters."""
    assignments = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, start=1))
    first = len(columns) + 1
    return (
        f"UPDATE flights SET {assignments} "
        f"WHERE time_hour = ${first} AND carrier = ${first + 1} AND flight = ${first + 2}"
    )


def _check_one_row(result: Result, event: FlightEvent) -> None:
    assert result.row_count == 1, (result, event)


def _summary(samples_ns: Sequence[int]) -> Latency:
    latency = summarize(samples_ns)
    assert latency is not None, "every phase commits"
    return latency
