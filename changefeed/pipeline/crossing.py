"""Crossings: what holds a table's lane at a boundary, and what has come of it.

    rows 90, 95, 120, 130      boundary at 100, which settles

    90, 95 go on               120, 130 are held
    checkpoint 99              nothing below 100 can come: crossed, and 120, 130 go on after it

Where the boundary needs a backfill, live rows go on beside it. The keys that they show are
remembered, and the backfill leaves those out: a row as of the boundary may not follow a later one.
So the sink lacks that row from the boundary until the later one, and progress passes over that time
in one step:

    backfill at 100, key 7 shown at 120      resolved 99, then 120 or more
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import Timestamp
from ..sinks.protocol import BackfillProgress
from .boundary import Boundary

BACKFILL_KEY_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of keys remembered while a backfill runs, some 200,000 keys: beyond, the table's rows wait
for the backfill instead, and those of other tables go on."""

KEY_OVERHEAD_BYTES = 120
"""The cost of a remembered key beside its bytes: its object, and its place in a set."""


class OpenBackfill:
    """A boundary that was crossed, whose rows are still being shown.

    Keys below `position` were shown. Of a key at or above it, `emitted` says whether a version
    above the boundary went to the sink already.
    """

    def __init__(self, boundary: Boundary, progress: BackfillProgress) -> None:
        self.boundary = boundary
        self.position = progress.position
        self.done = progress.done
        self.started = False
        """Whether its rows are being read: every row below the boundary was emitted before."""
        self.whole_from = self.at
        """From when on the sink lacks no row: the later versions of all that were left out have
        gone to it."""
        self._emitted: set[bytes] = set()
        """Keys at or above `position` alone."""
        self._bytes = 0
        self._full = False

    @property
    def at(self) -> Timestamp:
        return self.boundary.at

    @property
    def below(self) -> Timestamp:
        """Up to where the feed may resolve the table while the backfill runs."""
        return Timestamp(self.at - 1)

    @property
    def table(self) -> TableDescriptor:
        """The version under which the rows are shown."""
        return self.boundary.event.after

    @property
    def progress(self) -> BackfillProgress:
        return BackfillProgress(
            table_id=self.table.id,
            at=self.at,
            kind=self.boundary.kind,
            position=self.position,
            done=self.done,
        )

    @property
    def full(self) -> bool:
        """Whether no more keys can be remembered: then no more live rows go on beside it."""
        return self._full

    def note_emitted(self, keys: Sequence[bytes], upto: Timestamp) -> None:
        """Versions of these keys above the boundary, and none above `upto`, went to the sink."""
        assert not self._full, self
        position = self.position
        fresh = {key for key in keys if key >= position} - self._emitted
        if fresh:
            self.whole_from = max(self.whole_from, upto)
        self._emitted |= fresh
        self._bytes += _remembered_bytes(fresh)
        self._full = self._bytes >= BACKFILL_KEY_BYTES_MAX

    def wanted(self, rows: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """The rows of which no later version was shown. They are asked for once, in key order."""
        emitted = self._emitted
        if not emitted:
            return list(rows)
        passed = {key for key, _ in rows if key in emitted}
        emitted -= passed
        self._bytes -= _remembered_bytes(passed)
        return [row for row in rows if row[0] not in passed]

    def advance(self, position: bytes) -> None:
        """Every row below `position` was shown, or need not be."""
        assert position >= self.position, (position, self.position)
        assert not self.done, self
        self.position = position

    def __repr__(self) -> str:
        state = "done" if self.done else "started" if self.started else "opened"
        return f"<OpenBackfill of {self.table} {state} keys={len(self._emitted)}>"


def _remembered_bytes(keys: Collection[bytes]) -> int:
    return sum(map(len, keys)) + KEY_OVERHEAD_BYTES * len(keys)
