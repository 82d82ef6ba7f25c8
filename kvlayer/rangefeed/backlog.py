"""The entries of the log that a feed still owes its consumer: positions, not entries."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..clock import Timestamp
from ..log import Retention
from ..mvcc import SLICE_BYTES
from .host import DurableEntry, RangeFeedHost
from .live_entry import LiveEntry

MARKS_MAX = 128
"""Checkpoints kept between the positions. When there are more, every second one goes: the last and
the order stay, and a consumer that is cut off still gets one close to where it came."""


class Backlog:
    """The entries behind `index` that became durable before a feed was steady.

    It costs the same however many they are: where to go on reading (`next`), the last one that
    concerns the feed (`last`), and a few *marks*, each a resolved timestamp and the entry up to
    which everything must be delivered for it to be true.

        registered at index 7, resolved 90        next 8   last 7   marks 7:90
        entries 8, 9 (elsewhere), 10; then 100    next 8   last 10  marks 7:90, 10:100
        take() reads back 8, 9, 10                next 11  last 10  marks

    The log keeps what lies behind `next`. It may take that back (`Retention.revoked`); what is
    left to deliver is then only the marks that were reached.
    """

    def __init__(self, host: RangeFeedHost, index: int, resolved: Timestamp) -> None:
        self._host = host
        self._next = index + 1
        self._last = index
        self._marks: deque[tuple[int, Timestamp]] = deque()
        self._retention: Retention | None = None
        self._entries: Iterator[DurableEntry] = iter(())
        self._reading_upto = 0  # what `_entries` ends with
        if resolved:
            self._marks.append((index, resolved))

    def __bool__(self) -> bool:
        """Whether anything is left to deliver."""
        return self._last >= self._next or bool(self._marks)

    @property
    def lost(self) -> bool:
        """Whether entries that should be delivered are gone from the log."""
        return self._retention is not None and self._retention.revoked

    def note(self, index: int) -> None:
        """The entry at `index` concerns the feed."""
        assert index > self._last, (index, self._last)
        if self._retention is None:
            self._retention = self._host.retain_log(index)
            self._next = index
        self._last = index

    def resolve(self, resolved: Timestamp) -> None:
        """Notes that all values at or below `resolved` are in the entries noted so far, or were
        before them."""
        marks = self._marks
        if marks and marks[-1][0] >= self._last:
            marks.pop()
        marks.append((self._last, resolved))
        if len(marks) > MARKS_MAX:
            kept = [mark for place, mark in enumerate(marks) if place % 2]
            self._marks = deque(kept if kept[-1] == marks[-1] else [*kept, marks[-1]])

    def take(self) -> list[LiveEntry | Timestamp]:
        """Reads back the next entries, and gives the marks that they reach."""
        found: list[LiveEntry | Timestamp] = []
        if self.lost:
            self._forget_lost()
        size = 0
        while size < SLICE_BYTES:
            self._take_marks(found)
            if self._next > self._last:
                break
            entry = self._read_next()
            found.append(LiveEntry(entry))
            size += entry.byte_count
            self._next = entry.index + 1
        self._take_marks(found)
        if self._retention is not None and not self._retention.revoked:
            self._retention.advance(self._next)
        if not self:
            self.close()
        return found

    def close(self) -> None:
        """Lets the log delete what was kept."""
        self._entries = iter(())
        self._reading_upto = 0
        if self._retention is not None:
            self._retention.release()

    def _take_marks(self, found: list[LiveEntry | Timestamp]) -> None:
        marks = self._marks
        while marks and marks[0][0] < self._next:
            found.append(marks.popleft()[1])

    def _read_next(self) -> DurableEntry:
        if self._reading_upto < self._next:
            self._reading_upto = self._last
            self._entries = self._host.read_log(self._next, self._last)
        entry = next(self._entries)
        assert entry.index >= self._next, (entry.index, self._next)
        return entry

    def _forget_lost(self) -> None:
        self._last = self._next - 1
        self._marks = deque(mark for mark in self._marks if mark[0] <= self._last)

    def __repr__(self) -> str:
        return f"<Backlog next {self._next} last {self._last} marks {len(self._marks)}>"
