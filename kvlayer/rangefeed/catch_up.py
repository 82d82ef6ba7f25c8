"""The catch-up scan: what was committed between a feed's start and its registration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..clock import MAX_TIMESTAMP, Timestamp
from ..engine import Engine, Snapshot
from ..events import DeleteRange, Event, ValueBatch
from ..mvcc import Changes, changes_between, time_entries
from ..span import Span
from .feed_options import FeedOptions
from .live_entry import chosen, previous_of, shown

SLICE_ROWS = 500
"""Rows read in one step of the loop: about half a millisecond of seeks in the durable engine."""


class CatchUpScan:
    """Every version above `after` of a span's keys, as a snapshot of the engine holds them.

    Deletions of ranges come first, in order of time. Then it walks the time index, so it costs what
    was written and not what is stored, and each keyspace comes in order of time: per key from
    oldest to newest. Intents are not versions; they arrive live when they become some. What is
    marked to be left out of feeds is left out. The interval has no upper end: whatever is in the
    snapshot is not in the entries that follow it.
    """

    def __init__(
        self, snapshot: Snapshot, span: Span, after: Timestamp, options: FeedOptions
    ) -> None:
        self._snapshot = snapshot
        self._options = options
        self._deletions: list[Event] = [
            DeleteRange(found.span, found.timestamp)
            for found in snapshot.range_tombstones.within(span, after, MAX_TIMESTAMP)
            if not found.omitted
        ]
        self._slices: Iterator[Changes] = changes_between(
            snapshot, span, after, MAX_TIMESTAMP, rows=SLICE_ROWS, range_deletions=False
        )

    def next_slice(self) -> list[Event] | None:
        """The events of the next slice, which may hold none that is shown; None at the end."""
        if self._deletions:
            deletions, self._deletions = self._deletions, []
            return deletions
        changes = next(self._slices, None)
        if changes is None:
            return None
        batch = self._batch(changes)
        return [] if batch is None else [batch]

    def close(self) -> None:
        """Frees the snapshot."""
        self._slices = iter(())
        self._snapshot.close()

    def _batch(self, changes: Changes) -> ValueBatch | None:
        written, timestamps = changes.keys, changes.timestamps
        found = shown(changes.values)
        if found.kept is not None:
            written = [written[i] for i in found.kept]
            timestamps = [timestamps[i] for i in found.kept]
        if not written:
            return None
        made = ValueBatch(keys=written, values=found.bodies, timestamps=timestamps)
        batch: ValueBatch | None = made
        omitted = self._options.omitted_origins
        if found.origins is not None and omitted:
            places = [i for i, origin in enumerate(found.origins) if origin not in omitted]
            batch = chosen(made, places)
        if batch is not None and self._options.with_previous:
            previous = previous_of(self._snapshot, batch.keys, batch.timestamps)
            batch = replace(batch, previous=previous)
        return batch


def changed_since(engine: Engine, span: Span, after: Timestamp) -> bool:
    """Whether a catch-up scan may find anything: if not, no snapshot need be taken.

    One seek for each keyspace. Where the span is only a part of one, the answer is for all of it.
    """
    if engine.range_tombstones and engine.range_tombstones.within(span, after, MAX_TIMESTAMP):
        return True
    entries = time_entries(engine, span, after, MAX_TIMESTAMP, range_deletions=False)
    return next(entries, None) is not None
