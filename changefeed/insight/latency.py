"""The times of a feed's stages: what each took of late, and what waits in it now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...kvlayer.clock import Timestamp
from ..pipeline.holdup import Holdup
from ..pipeline.live import LiveFeed
from ..pipeline.stage_times import NS_PER_MS, Latency, Milestone, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReport:
    """A stage, or the time from commit to a milestone.

    `measured` is None where no commit came by since the feed began here. `holdup` is the oldest
    that waits in the stage, of all its tables, since `waited_ms`.
    """

    name: str
    measured: Latency | None
    holdup: Holdup | None = None
    waited_ms: float | None = None


def stage_reports(live: LiveFeed, now: Timestamp, now_ns: int) -> list[StageReport]:
    """Every stage in order, then commit to emit and commit to sink."""
    oldest = _oldest(live, now)
    reports = []
    for stage in Stage:
        holdup = oldest.get(stage)
        reports.append(
            StageReport(
                name=stage.value,
                measured=live.stages.latency(stage),
                holdup=holdup,
                waited_ms=None if holdup is None else (now_ns - holdup.since_ns) / NS_PER_MS,
            )
        )
    reports += [
        StageReport(name=f"commit to {milestone.value}", measured=live.stages.latency(milestone))
        for milestone in (Milestone.EMIT, Milestone.SINK)
    ]
    return reports


def _oldest(live: LiveFeed, now: Timestamp) -> Mapping[Stage, Holdup]:
    oldest: dict[Stage, Holdup] = {}
    for holdup in live.holdups(now):
        known = oldest.get(holdup.stage)
        if known is None or holdup.since_ns < known.since_ns:
            oldest[holdup.stage] = holdup
    return oldest
