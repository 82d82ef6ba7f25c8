"""The overview: every changefeed, and how it fares now."""

from __future__ import annotations

import asyncio
import re

import msgspec

from ...catalog.jobs import JobState
from ...changefeed import JOB_KIND, JobSummary
from ...changefeed.pipeline.live import FeedState, LiveFeed
from ...changefeed.pipeline.stage_times import Milestone
from ...kvlayer.clock import seconds_between
from ..node import Node

FRESH_SECONDS = 0.5
"""A snapshot serves all pages that ask within this time: it reads the job table."""

RECENT_SAMPLES = 500
"""Percentiles on the page are of the latest commits; sorting more of them would hold the loop."""

FINISHED_MAX = 20
"""How many failed feeds are shown, and how many that ended otherwise, the latest first."""


class FeedRow(msgspec.Struct, kw_only=True):
    """One changefeed. `behind_ms` is now less resolved, None before anything is resolved.

    `state` is the job's, or `retrying` while a feed that failed waits before it tries again.
    `rows` counts what this process emitted; a page makes a rate of two of them. Latencies run from
    the call of commit to the sink's receipt (emit) and to the sink's commit (sink).
    """

    job_id: str
    state: str
    status: str | None
    tables: str
    sink: str
    final: bool
    behind_ms: float | None
    rows: int
    emit_ms_p50: float | None = None
    emit_ms_p99: float | None = None
    sink_ms_p50: float | None = None
    sink_ms_p99: float | None = None
    error: str | None = None


class OverviewReply(msgspec.Struct, kw_only=True):
    """`monotonic_ms` is when the counts were read, on the server's own clock; `warning` is why the
    store is not well, None where it is."""

    store_id: str
    monotonic_ms: float
    warning: str | None
    feeds: list[FeedRow]


class Overview:
    """Looks at a node's changefeeds, at most once in `FRESH_SECONDS`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lock = asyncio.Lock()
        self._latest = b""
        self._expires_ns = 0

    async def render(self) -> bytes:
        """An `OverviewReply` as JSON."""
        wall = self._node.store.clock.wall
        async with self._lock:
            if wall.monotonic_ns() >= self._expires_ns:
                self._latest = msgspec.json.encode(await self._look())
                self._expires_ns = wall.monotonic_ns() + round(FRESH_SECONDS * 1e9)
        return self._latest

    async def _look(self) -> OverviewReply:
        node = self._node
        jobs = [job for job in await node.jobs.list() if job.kind == JOB_KIND]
        running = [job.id for job in jobs if not job.state.final]
        ended = [job for job in jobs if job.state.final]
        failed = [job.id for job in ended if job.state is JobState.FAILED][-FINISHED_MAX:]
        others = [job.id for job in ended if job.state is not JobState.FAILED][-FINISHED_MAX:]
        shown = (*reversed(failed), *reversed(running), *reversed(others))
        await node.store.now()  # the clock is where rows are behind of
        feeds = []
        for job in await node.services.jobs.find(shown):
            feeds.append(self._row(job))
            await asyncio.sleep(0)  # to sort the latencies of hundreds is no one step
        return OverviewReply(
            store_id=node.store.id,
            monotonic_ms=node.store.clock.wall.monotonic_ns() / 1e6,
            warning=None if node.degraded is None else node.degraded[1],
            feeds=feeds,
        )

    def _row(self, job: JobSummary) -> FeedRow:
        node = self._node
        final = job.finished is not None
        behind = None
        if job.resolved is not None and not final:
            behind = 1e3 * max(0.0, seconds_between(job.resolved, node.store.clock.last))
        live = node.feeds.feed(job.id)
        retries = live is not None and live.state is FeedState.BACKOFF
        row = FeedRow(
            job_id=str(job.id),
            state=FeedState.BACKOFF.value if retries else job.state,
            status=None if job.running_status is None else _BEHIND.sub("", job.running_status),
            tables=job.tables or "",
            sink=job.sink or "",
            final=final,
            behind_ms=behind,
            rows=0 if live is None else live.rows_emitted,
            error=job.error,
        )
        if live is not None:
            _add_latencies(row, live)
        return row


_BEHIND = re.compile(r"(?<=:) [\d.]+ s behind[,:](?= )|[:,] [\d.]+ s behind$")
"""What the page has a column of its own for."""


def _add_latencies(row: FeedRow, live: LiveFeed) -> None:
    emit = live.stages.latency(Milestone.EMIT, latest=RECENT_SAMPLES)
    if emit is not None:
        row.emit_ms_p50, row.emit_ms_p99 = emit.p50, emit.p99
    sink = live.stages.latency(Milestone.SINK, latest=RECENT_SAMPLES)
    if sink is not None:
        row.sink_ms_p50, row.sink_ms_p99 = sink.p50, sink.p99
