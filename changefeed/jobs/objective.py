"""The objective of a feed's latency: `slo_p99`, watched while the feed runs.

Each `changefeed.slo.window` the commits that came to the sink since the last look are judged, and
what waits on its way there. A breach is a row of `system.feed_breaches`, which names the stage that
took longest, and counts in the metric `tailrace_changefeed_slo_breaches`. Rows go with the feed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...catalog.descriptors.system_tables import FEED_BREACHES
from ...catalog.jobs.record import time_of
from ...catalog.rows.row_codec import codec_for
from ...kvlayer.access import StoreAccess
from ...kvlayer.errors import KVError, StoreClosed
from ...kvlayer.keys import encode_int
from ...kvlayer.settings import declare_duration
from ...kvlayer.span import Span
from ...kvlayer.txn import Evaluation
from ..pipeline.live import LiveFeed
from ..pipeline.stage_times import NS_PER_MS, Milestone, Stage

WINDOW = declare_duration(
    "changefeed.slo.window", 10.0, "how often a changefeed's latency is held against its slo_p99"
)

BREACHES_MAX = 100
"""Breaches of a feed that are kept, the latest: a quarter of an hour in which every window is
one."""

_codec = codec_for(FEED_BREACHES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """`commits` is how many were measured: 0 where rows are late that have not come to the sink."""

    milliseconds: float
    stage: Stage
    commits: int


class LatencyObjective:
    """The latency objective of one feed, in one attempt."""

    def __init__(self, store: StoreAccess, live: LiveFeed, p99_seconds: float) -> None:
        self._store = store
        self._live = live
        self._p99_ms = p99_seconds * 1e3
        self._judged = live.stages.sink.count

    async def watch(self) -> None:
        """Looks again and again, until it is cancelled or the store is closed."""
        while True:
            await asyncio.sleep(self._store.settings.get(WINDOW))
            breach = self.look()
            if breach is None:
                continue
            self._live.slo_breaches += 1
            try:
                await self._write(breach)
            except StoreClosed:
                return
            except KVError:
                self._store.metrics.add("changefeed_breaches_lost_total")

    def look(self) -> Breach | None:
        """The breach in the time since the last look, if there was one."""
        stages = self._live.stages
        commits = stages.sink.count - self._judged
        self._judged = stages.sink.count
        measured = stages.latency(Milestone.SINK, latest=commits)
        if measured is not None and measured.p99 > self._p99_ms:
            took = {each: stages.latency(each, latest=commits) for each in Stage}
            worst = max(Stage, key=lambda each: 0.0 if (of := took[each]) is None else of.p99)
            return Breach(milliseconds=measured.p99, stage=worst, commits=commits)
        now_ns = self._store.clock.wall.monotonic_ns()
        waiting = [each for each in self._live.holdups(self._store.clock.last) if each.batches]
        oldest = min(waiting, key=lambda each: each.since_ns, default=None)
        if oldest is None or (now_ns - oldest.since_ns) / NS_PER_MS <= self._p99_ms:
            return None
        waited = (now_ns - oldest.since_ns) / NS_PER_MS
        return Breach(milliseconds=waited, stage=oldest.stage, commits=0)

    async def _write(self, breach: Breach) -> None:
        job_id = self._live.job_id

        def evaluate(evaluation: Evaluation) -> None:
            at = time_of(evaluation.timestamp)
            row = (job_id, at, breach.milliseconds, self._p99_ms, breach.stage.value)
            key, body = _codec.encode_row((*row, breach.commits))
            known = [key for key, _ in evaluation.scan(_of_feed(job_id))]
            evaluation.delete(known[: max(0, len(known) + 1 - BREACHES_MAX)])
            evaluation.put([key], [body])

        await self._store.one_phase(evaluate)


async def forget_breaches(store: StoreAccess, job_id: int) -> None:
    """The feed is over, and so are its breaches."""

    def evaluate(evaluation: Evaluation) -> None:
        evaluation.delete([key for key, _ in evaluation.scan(_of_feed(job_id))])

    await store.one_phase(evaluate)


def _of_feed(job_id: int) -> Span:
    return Span.prefix(FEED_BREACHES.primary_span.start + encode_int(job_id))
