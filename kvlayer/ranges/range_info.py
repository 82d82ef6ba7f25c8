"""The description of a range for people, and the stores that give one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..clock import Timestamp
from ..span import Span
from .range import Range

LOCAL_NODE = 1
"""The node that serves every range: a store is one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeInfo:
    """A range as it stands. Sizes are estimates in bytes, load is operations on keys a second."""

    id: int
    start: bytes
    end: bytes
    bytes: int
    version_count: int
    writes_per_second: float
    reads_per_second: float
    feed_count: int
    gc_threshold: Timestamp
    max_timestamp: Timestamp
    sticky_until: Timestamp
    lease_holder: int = LOCAL_NODE

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @classmethod
    def of(cls, found: Range) -> RangeInfo:
        return cls(
            id=found.id,
            start=found.span.start,
            end=found.span.end,
            bytes=found.size.byte_count,
            version_count=found.size.version_count,
            writes_per_second=found.load.writes_per_second,
            reads_per_second=found.load.reads_per_second,
            feed_count=found.feeds.feed_count,
            gc_threshold=found.thresholds.greatest,
            max_timestamp=found.max_timestamp,
            sticky_until=found.descriptor.sticky_until,
        )


@runtime_checkable
class RangedStore(Protocol):
    """A store whose ranges are in this process: `Store`, and no `RemoteStore`."""

    def ranges(self, span: Span) -> list[RangeInfo]: ...

    async def span_bytes(self, span: Span) -> int | None:
        """About what its versions take; None where that is not known."""
        ...

    async def split(self, key: bytes) -> None: ...
    async def unsplit(self, key: bytes) -> None: ...
