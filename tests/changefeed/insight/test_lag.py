"""Lag tells the truth in every state of a feed and of its targets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tailrace.changefeed.contract.boundary_kind import BoundaryKind
from tailrace.changefeed.insight import FeedPosition, SpanLag, feed_lag
from tailrace.changefeed.jobs.details import ChangefeedDetails, TargetDetails
from tailrace.changefeed.pipeline.live import FeedState, LiveFeed
from tailrace.changefeed.pipeline.rate import Rate
from tailrace.changefeed.sinks.protocol import BackfillProgress, SinkProgress
from tailrace.changefeed.targets import FeedTarget, TargetState
from tailrace.kvlayer.clock import ZERO, Timestamp, duration
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.ranges import RangeInfo
from tailrace.kvlayer.span import Span

ORDERS, LINES = 104, 105


def at(seconds: float) -> Timestamp:
    return Timestamp(duration(seconds=1_000_000 + seconds))


class KnownSize:
    """A store of one range, whose spans are all of one size."""

    async def split(self, key: bytes) -> None: ...
    async def unsplit(self, key: bytes) -> None: ...

    def ranges(self, span: Span) -> list[RangeInfo]:
        return []

    async def span_bytes(self, span: Span) -> int | None:
        return 6_000


class Target:
    def __init__(self, table_id: int) -> None:
        self.span = table_span(table_id)


def details(**states: TargetState) -> ChangefeedDetails:
    ids = {"orders": ORDERS, "lines": LINES}
    return ChangefeedDetails(
        store_id="s",
        targets=tuple(
            TargetDetails(table_id=ids[name], name=name, start_at=at(0), state=state)
            for name, state in states.items()
        ),
        sink_uri="null://",
        options={},
        user_name="root",
        start_at=at(0),
        protection_id=b"",
    )


def progress(resolved: Timestamp, **backfilling: Timestamp) -> SinkProgress:
    return SinkProgress(
        frontier=((table_span(ORDERS), resolved), (table_span(LINES), resolved)),
        resolved=resolved,
        scan_complete=resolved > ZERO,
        backfills=tuple(
            BackfillProgress(table_id=ORDERS, at=when, kind=BoundaryKind.BACKFILL)
            for when in backfilling.values()
        ),
    )


def live_in(state: FeedState) -> LiveFeed:
    live = LiveFeed(1)
    live.state = state
    return live


def lag_of(position: FeedPosition, now: float = 20.0) -> Sequence[SpanLag]:
    targets: list[FeedTarget] = [
        Target(each.table_id)  # type: ignore[misc]
        for each in position.details.targets
    ]
    return asyncio.run(feed_lag(position, targets, KnownSize(), at(now), now))


@pytest.mark.parametrize(
    ("state", "halted", "expected"),
    [
        (FeedState.STEADY, None, "running"),
        (FeedState.CATCH_UP, None, "catching up"),
        (FeedState.BACKOFF, None, "retrying"),
        (FeedState.WAITING, "paused", "paused"),
    ],
)
def test_lag_counts_from_what_the_sink_holds(
    state: FeedState, halted: str | None, expected: str
) -> None:
    both = details(orders=TargetState.RUNNING, lines=TargetState.PAUSED)
    position = FeedPosition(
        details=both, progress=progress(at(15)), live=live_in(state), halted=halted
    )
    orders, lines = lag_of(position)
    assert (orders.state, round(orders.seconds, 3)) == (expected, 5.0)
    assert (lines.state, round(lines.seconds, 3)) == ("paused", 5.0)
    assert lines.catch_up_seconds is None


def test_an_unscanned_span_lacks_everything_since_the_start() -> None:
    live = live_in(FeedState.INITIAL_SCAN)
    live.scan_rate.note(10.0, 0)
    live.scan_rate.note(20.0, 2_000)
    position = FeedPosition(
        details=details(orders=TargetState.RUNNING), progress=progress(ZERO), live=live
    )
    (orders,) = lag_of(position)
    assert (orders.state, orders.resolved, orders.seconds) == ("scanning", ZERO, 20.0)
    assert orders.catch_up_seconds == pytest.approx(30.0)  # 6,000 bytes at 200 a second


def test_a_feed_without_progress_is_behind_since_its_start() -> None:
    (orders,) = lag_of(
        FeedPosition(details=details(orders=TargetState.RUNNING), progress=None, live=None)
    )
    assert (orders.state, orders.seconds, orders.catch_up_seconds) == ("scanning", 20.0, None)


def test_a_backfill_holds_its_table() -> None:
    live = live_in(FeedState.STEADY)
    position = FeedPosition(
        details=details(orders=TargetState.RUNNING, lines=TargetState.RUNNING),
        progress=progress(at(15), opened=at(16)),
        live=live,
    )
    assert [each.state for each in lag_of(position)] == ["backfilling", "running"]


def test_catching_up_takes_what_the_clock_adds_meanwhile() -> None:
    live = live_in(FeedState.CATCH_UP)
    live.advance.note(10.0, 100.0)
    live.advance.note(20.0, 130.0)  # three seconds of the past each second
    position = FeedPosition(
        details=details(orders=TargetState.RUNNING), progress=progress(at(12)), live=live
    )
    assert lag_of(position)[0].catch_up_seconds == pytest.approx(4.0)
    live.advance.clear()
    live.advance.note(10.0, 100.0)
    live.advance.note(20.0, 109.0)  # it falls further behind
    assert lag_of(position)[0].catch_up_seconds is None


def test_a_dropped_table_has_no_lag() -> None:
    position = FeedPosition(
        details=details(orders=TargetState.DROPPED, lines=TargetState.FAILED),
        progress=progress(at(15)),
        live=live_in(FeedState.STEADY),
    )
    assert [each.state for each in lag_of(position)] == ["failed"]


def test_a_rate_is_that_of_the_latest_seconds() -> None:
    rate = Rate()
    assert rate.per_second(0.0) is None
    for second in range(100):
        rate.note(float(second), 5.0 * second if second < 50 else 250.0 + 2 * (second - 50))
    assert rate.per_second(99.0) == pytest.approx(2.0)
