"""Garbage-collection thresholds: below which time a range's versions may be gone.

A range that holds several tables has a threshold for each stretch of keys that is collected by
itself, so a table whose old versions live long is not bound to one whose versions do not:

    raise_to([t7, t8), 120)     [t7, t8)@120
    over([t7, t9))              120, since a part of the span is that far
    over([t8, t9))              0
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..clock import ZERO, Timestamp
from ..frontier import Frontier
from ..span import Span, subtract

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[tuple[bytes, bytes, Timestamp]])


class Thresholds:
    """The thresholds of one range's span. They only rise.

    A split copies to each half what lies in it, and a merge puts the two together, so no key's
    threshold changes by either.
    """

    __slots__ = ("_frontier", "_greatest", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self._frontier: Frontier | None = None  # while nothing was collected, as in most ranges
        self._greatest = ZERO

    @classmethod
    def of(cls, span: Span, known: Iterable[Thresholds]) -> Thresholds:
        """The thresholds among `known` that are of keys of `span`."""
        made = cls(span)
        for thresholds in known:
            made._take(thresholds.entries())
        return made

    @classmethod
    def decode(cls, span: Span, data: bytes) -> Thresholds:
        made = cls(span)
        made._take((Span(start, end), ts) for start, end, ts in _decoder.decode(data))
        return made

    def encode(self) -> bytes:
        return _encoder.encode([(span.start, span.end, ts) for span, ts in self.entries()])

    def entries(self) -> list[tuple[Span, Timestamp]]:
        """The stretches that were collected, in key order."""
        if self._frontier is None:
            return []
        return [(span, ts) for span, ts in self._frontier.entries() if ts]

    @property
    def greatest(self) -> Timestamp:
        """The threshold of the keys that were collected furthest."""
        return self._greatest

    def over(self, span: Span) -> Timestamp:
        """The greatest threshold of any key of the span: at or below it, a read of it may lack
        something."""
        if self._frontier is None or span.covers(self.span):
            return self._greatest
        return max((ts for part, ts in self.entries() if part.overlaps(span)), default=ZERO)

    def raise_to(self, span: Span, threshold: Timestamp) -> bool:
        """Raises the threshold of the keys of `span` that are below; says whether there are any."""
        shared = span.intersect(self.span)
        if shared is None:
            return False
        high = [part for part, ts in self.entries() if ts >= threshold]
        if not subtract(shared, high):
            return False
        self._forward(shared, threshold)
        return True

    def copy(self) -> Thresholds:
        return Thresholds.of(self.span, (self,))

    def _take(self, entries: Iterable[tuple[Span, Timestamp]]) -> None:
        for span, ts in entries:
            shared = span.intersect(self.span)
            if shared is not None:
                self._forward(shared, ts)

    def _forward(self, span: Span, threshold: Timestamp) -> None:
        if self._frontier is None:
            self._frontier = Frontier([self.span])
        self._frontier.forward(span, threshold)
        self._greatest = max(self._greatest, threshold)

    def __repr__(self) -> str:
        return f"<Thresholds of {self.span}: {self._frontier or 0!r}>"
