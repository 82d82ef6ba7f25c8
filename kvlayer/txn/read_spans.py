"""The spans that a transaction has read, for the day its timestamp moves."""

from __future__ import annotations

from collections.abc import Iterable

from ..keys import KEYSPACE_LENGTH
from ..span import Span

READ_SPANS_MAX = 512
"""Above this many points and spans, those of a keyspace collapse into one that covers them all. A
transaction that read so much is likelier to fail its refresh for a row it never saw, no more."""


class ReadSpans:
    """A bounded set of keys and spans. May come to hold more than was added, never less."""

    __slots__ = ("points", "spans")

    def __init__(self) -> None:
        self.points: set[bytes] = set()
        self.spans: set[Span] = set()

    def add_point(self, key: bytes) -> None:
        self.points.add(key)
        if len(self.points) + len(self.spans) > READ_SPANS_MAX:
            self._collapse()

    def add_span(self, span: Span) -> None:
        self.spans.add(span)
        if len(self.points) + len(self.spans) > READ_SPANS_MAX:
            self._collapse()

    def _collapse(self) -> None:
        everything = [*self.spans, *(Span.point(key) for key in self.points)]
        self.points.clear()
        self.spans = set(_covering(everything))
        if len(self.spans) > READ_SPANS_MAX:  # that many keyspaces
            low = min(span.start for span in self.spans)
            self.spans = {Span(low, max(span.end for span in self.spans))}

    def __bool__(self) -> bool:
        return bool(self.points or self.spans)


def _covering(spans: Iterable[Span]) -> list[Span]:
    """One span a keyspace, by where each span starts."""
    covers: dict[bytes, Span] = {}
    for span in spans:
        keyspace = span.start[:KEYSPACE_LENGTH]
        known = covers.get(keyspace, span)
        covers[keyspace] = Span(min(known.start, span.start), max(known.end, span.end))
    return list(covers.values())
