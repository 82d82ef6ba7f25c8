"""The comparison's workload: the same commits on each copy of the table, at a steady rate."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median

from ...changefeed.pipeline.live import LiveFeed
from ...changefeed.pipeline.stage_times import Latency, Milestone, summarize
from ...kvlayer.clock import WallClock
from ...sql import Session
from .compared_tables import Subject

RATE = 20.0
"""Commits a second on each copy. Few, so that what is seen is latency and not load."""

KEYS = 1000
"""The workload writes these keys over and over: the tables do not grow."""

OUTSTANDING_MAX = 10_000
"""Commits remembered while a feed is behind; at the rate above that is eight minutes."""

WINDOW_SAMPLES = round(30 * RATE)
"""Percentiles are of the last half minute."""

NS_PER_MS = 1e6


class Track:
    """The record of one copy's feed: the commits that it has emitted, and how long each took."""

    def __init__(self, live: LiveFeed, wall: WallClock) -> None:
        self._live = live
        self._wall = wall
        self._seen = live.stages.emit.count
        self._emitted = live.rows_emitted
        self._outstanding: deque[int] = deque(maxlen=OUTSTANDING_MAX)
        self._recent: deque[int] = deque(maxlen=WINDOW_SAMPLES)

    def note_commit(self) -> None:
        """One row is being committed now."""
        self._outstanding.append(self._wall.monotonic_ns())

    def read(self) -> float | None:
        """The latency to draw now, in milliseconds, or None when nothing is under way.

        The median of what was emitted since the last reading. A feed that emitted nothing shows
        how long its oldest commit has waited: so a line rises while its feed waits, and not only
        afterwards.
        """
        stages = self._live.stages
        fresh = stages.samples_ns(Milestone.EMIT, latest=stages.emit.count - self._seen)
        self._seen = stages.emit.count
        self._recent.extend(fresh)
        waiting = self._outstanding
        for _ in range(self._live.rows_emitted - self._emitted):
            if waiting:
                waiting.popleft()
        self._emitted = self._live.rows_emitted
        if fresh:
            return median(fresh) / NS_PER_MS
        if waiting:
            return (self._wall.monotonic_ns() - waiting[0]) / NS_PER_MS
        return None

    @property
    def latency(self) -> Latency | None:
        return summarize(list(self._recent))


class Workload:
    """Upserts one row into each copy, `RATE` times a second, until it is cancelled."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._statements = {
            subject: f"UPSERT INTO {subject.table} VALUES ($1, $2, $3)" for subject in Subject
        }
        self._count = 0

    @property
    def statements(self) -> Sequence[str]:
        """The SQL that it runs."""
        return tuple(self._statements.values())

    async def run(self, tracks: Mapping[Subject, Track]) -> None:
        """Raises what a statement raises."""
        loop = asyncio.get_running_loop()
        next_at = loop.time()
        while True:
            for subject, statement in self._statements.items():
                row = (self._count % KEYS, self._count * 0.25, "compared")
                tracks[subject].note_commit()
                await self._session.execute(statement, row)
            self._count += 1
            # Behind time it does not hurry: a stalled store is not to be flooded afterwards.
            next_at = max(next_at + 1 / RATE, loop.time())
            await asyncio.sleep(next_at - loop.time())
