"""Lag: how far each span of a feed is behind, and when it will have caught up.

It is counted from what is durable in the sink, whatever the feed does: one that is paused, retries
or has still to scan falls behind as one that runs does. A span that was not scanned yet lacks
everything since the feed began there.

The estimate goes by what the feed did of late: what of a scan is left by the bytes that it read a
second, the rest by how much of the past it made good a second.

    12 s behind, and 4 s of the past each second     4 s: meanwhile the clock goes on
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...kvlayer.clock import ZERO, Timestamp, seconds_between
from ...kvlayer.frontier import part_of
from ...kvlayer.ranges import RangedStore
from ...kvlayer.span import Span
from ..jobs.details import ChangefeedDetails, TargetDetails
from ..pipeline.live import FeedState, LiveFeed
from ..sinks.protocol import SinkProgress
from ..targets import FeedTarget, TargetState

CAUGHT_UP_SECONDS = 1.0
"""A feed that runs and is no further behind has nothing to catch up with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLag:
    """A span of one target. `resolved` is zero while it is not scanned.

    `catch_up_seconds` is None where nobody can tell: the feed does not run here, or falls further
    behind.
    """

    table_id: int
    table_name: str
    state: str
    span: Span
    resolved: Timestamp
    seconds: float
    catch_up_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPosition:
    """A feed as it stands: `halted` is the job's state where it is not to run, as "paused"."""

    details: ChangefeedDetails
    progress: SinkProgress | None
    live: LiveFeed | None
    halted: str | None = None


async def feed_lag(
    position: FeedPosition, targets: Sequence[FeedTarget], store: object, now: Timestamp, at: float
) -> list[SpanLag]:
    """Every span of every target, `at` being the loop's time. Dropped tables have no lag."""
    found = []
    for known, target in zip(position.details.targets, targets, strict=True):
        if known.state.final:
            continue
        began = ZERO if known.scans else known.start_at
        entries = [] if position.progress is None else position.progress.frontier
        for span, resolved in part_of(entries, target.span) or [(target.span, began)]:
            behind = max(0.0, seconds_between(resolved or known.start_at, now))
            state = _state(position, known, resolved)
            found.append(
                SpanLag(
                    table_id=known.table_id,
                    table_name=known.name,
                    state=state,
                    span=span,
                    resolved=resolved,
                    seconds=behind,
                    catch_up_seconds=await _catch_up(position, store, state, span, behind, at),
                )
            )
    return found


def lagging_ranges(spans: Sequence[SpanLag], store: object, threshold_seconds: float) -> int:
    """The number of ranges with spans that are further behind; of spans, where the store is
    elsewhere."""
    late = [each.span for each in spans if each.seconds > threshold_seconds]
    if not isinstance(store, RangedStore):
        return len(late)
    return len({found.id for span in late for found in store.ranges(span)})


def _state(position: FeedPosition, target: TargetDetails, resolved: Timestamp) -> str:
    if not target.state.followed:
        return str(target.state.value)
    if position.halted is not None:
        return position.halted
    live = position.live
    if live is not None and live.state is FeedState.BACKOFF:
        return FeedState.BACKOFF.value
    if resolved == ZERO:
        return TargetState.SCANNING.value
    progress = position.progress
    if progress is not None:
        if any(each.table_id == target.table_id and not each.done for each in progress.backfills):
            return TargetState.BACKFILLING.value
        if resolved < progress.resolved:
            return TargetState.CATCHING_UP.value
    if live is not None and live.state is FeedState.CATCH_UP:
        return TargetState.CATCHING_UP.value
    return TargetState.RUNNING.value


async def _catch_up(
    position: FeedPosition, store: object, state: str, span: Span, behind: float, at: float
) -> float | None:
    live = position.live
    if live is None or not live.here or state not in _MOVING:
        return None
    if state == TargetState.SCANNING.value:
        left = await store.span_bytes(span) if isinstance(store, RangedStore) else None
        speed = live.scan_rate.per_second(at)
        return left / speed if left is not None and speed else None
    if behind <= CAUGHT_UP_SECONDS:
        return 0.0
    speed = live.advance.per_second(at)
    return behind / (speed - 1) if speed is not None and speed > 1 else None


_MOVING = frozenset(
    state.value
    for state in (
        TargetState.SCANNING,
        TargetState.BACKFILLING,
        TargetState.CATCHING_UP,
        TargetState.RUNNING,
    )
)
