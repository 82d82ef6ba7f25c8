"""Crossings: what holds a table's lane at a boundary, and what has come of it.

    rows 90, 95, 120, 130      boundary at 100, which settles

    90, 95 go on               120, 130 are held
    checkpoint 99              nothing below 100 can come: crossed, and 120, 130 go on after it

Where the boundary needs a backfill, live rows go on beside it. The keys that they show are
remembered, and the backfill leaves those out: a row as of the boundary may not follow a later one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..catalog.descriptor import TableDescriptor
from ..kvlayer.clock import Timestamp
from .boundary import Boundary
from .sinks.protocol import BackfillProgress

BACKFILL_KEYS_MAX = 200_000
"""Keys remembered while a backfill runs, some 30 MB of them: beyond, the table's rows wait for the
backfill instead, and those of other tables go on."""


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
        self._emitted: set[bytes] = set()

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
        """Whether no more keys can be remembered."""
        if len(self._emitted) < BACKFILL_KEYS_MAX:
            return False
        position = self.position
        self._emitted = {key for key in self._emitted if key >= position}
        return len(self._emitted) >= BACKFILL_KEYS_MAX

    def note_emitted(self, keys: Sequence[bytes]) -> None:
        """Versions of these keys above the boundary went to the sink."""
        self._emitted.update(keys)

    def wanted(self, rows: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """The rows of which no later version was shown."""
        emitted = self._emitted
        if not emitted:
            return list(rows)
        return [row for row in rows if row[0] not in emitted]

    def advance(self, position: bytes) -> None:
        """Every row below `position` was shown, or need not be."""
        assert position >= self.position, (position, self.position)
        self.position = position
