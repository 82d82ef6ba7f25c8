"""The router of a store: where its ranges are, as span feeds ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..clock import Clock, Timestamp
from ..span import Span
from .registration import RangeFeed


class TickedFeed(Protocol):
    """A span feed, as its router's ticks see it."""

    def tick(self, closed: Timestamp, now_ns: int, interval_ns: int) -> None:
        """`closed` took effect in every range at the monotonic time `now_ns`."""
        ...


class RangeRouter(Protocol):
    """The ranges of a span: the interface of a store to its span feeds."""

    @property
    def clock(self) -> Clock: ...

    def divide(self, span: Span) -> Sequence[Span]:
        """`span` cut at the borders of ranges, in key order."""
        ...

    def range_feed(
        self,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RangeFeed:
        """`RangeFeeds.register` of the range that holds `span`.

        Raises RangeFeedEnded (split or merged) when no one range holds it any more.
        """
        ...

    def gather(self, feed: TickedFeed) -> None:
        """From now on the feed may be told of closings by `TickedFeed.tick`, once for all its
        pieces in ranges that have nothing unresolved. A router may do without."""
        ...

    def release(self, feed: TickedFeed) -> None:
        """The feed is closed. Releasing twice is once."""
        ...
