"""A durable entry as events: decoded once, and shared by all feeds of the range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import keys
from ..clock import Timestamp
from ..command import CommitIntent, DeleteRangeOp, LogicalOp, WriteValue, WriteVersions
from ..engine import Reader
from ..events import DeleteRange, ValueBatch
from ..mvcc import OMIT_FROM_FEEDS, body_at, body_of, header_of, read_at
from ..span import Span
from .host import DurableEntry

_PLAIN = frozenset((0,))
_PLAIN_OR_DELETED = frozenset((0, 1))
_BACKFILLED = frozenset((OMIT_FROM_FEEDS,))


@dataclass(frozen=True, slots=True)
class LiveBatch:
    """The versions of one operation in one keyspace, between `lowest` and `highest` (inclusive).

    `timestamp` is that of them all; or, where they are `mixed`, the greatest.

    `origins` are the stores on which the values were first written, or None when all were written
    here: which is nearly always, and then nobody has to look.
    """

    timestamp: Timestamp
    lowest: bytes
    highest: bytes
    values: ValueBatch
    origins: Sequence[int | None] | None = None
    mixed: bool = False

    def within(self, span: Span, after: Timestamp, omitted: frozenset[int]) -> ValueBatch | None:
        """The part of the batch in the span and above `after`: the very batch when all of it is, so
        that feeds share it."""
        start, end = span.start, span.end
        if self.highest < start or self.lowest >= end:
            return None
        whole = start <= self.lowest and self.highest < end
        if self.mixed:
            if whole and self.origins is None and min(self.values.timestamps) > after:
                return self.values
            stamped = zip(self.values.keys, self.values.timestamps, self._origins(), strict=True)
            return chosen(
                self.values,
                [
                    i
                    for i, (key, at, origin) in enumerate(stamped)
                    if start <= key < end and at > after and origin not in omitted
                ],
            )
        if self.origins is None or not omitted:
            if whole:
                return self.values
            return chosen(
                self.values, [i for i, key in enumerate(self.values.keys) if start <= key < end]
            )
        rows = enumerate(zip(self.values.keys, self.origins, strict=True))
        return chosen(
            self.values,
            [i for i, (key, origin) in rows if start <= key < end and origin not in omitted],
        )

    def _origins(self) -> Sequence[int | None]:
        return self.origins if self.origins is not None else [None] * len(self.values)


Bounds = list[tuple[bytes, bytes]]

_VERSIONS = (WriteValue, WriteVersions, CommitIntent)


class LiveEntry:
    """An entry on its way to the feeds. `byte_count` is what it counts for in a buffer."""

    __slots__ = ("_batches", "_bounds", "_entry", "byte_count", "index")

    def __init__(self, entry: DurableEntry, bounds: Bounds | None = None) -> None:
        self._entry: DurableEntry | None = entry
        self._batches: list[LiveBatch | DeleteRange] | None = None
        self._bounds = bounds
        self.index = entry.index
        self.byte_count = entry.byte_count

    @property
    def bounds(self) -> Bounds:
        """The bounds of the entry's operations: see `bounds_of`."""
        if self._bounds is None:
            assert self._entry is not None, "decoded before anybody asked where it lies"
            self._bounds = bounds_of(self._entry.command.ops)
        return self._bounds

    def concerns(self, span: Span, after: Timestamp) -> bool:
        """Whether the entry holds anything for a feed of `span` from `after` (exclusive)."""
        start, end = span.start, span.end
        if not any(low < end and high >= start for low, high in self.bounds):
            return False  # as for most feeds of a range that holds several tables
        for batch in self._decoded():
            if batch.timestamp <= after:
                continue
            if isinstance(batch, DeleteRange):
                if batch.span.overlaps(span):
                    return True
            elif batch.highest >= start and batch.lowest < end:
                return True
        return False

    def events(
        self, span: Span, after: Timestamp, omitted: frozenset[int]
    ) -> Iterator[ValueBatch | DeleteRange]:
        """The events of the entry that lie in `span` and above `after`, and come from no `omitted`
        store."""
        for batch in self._decoded():
            if batch.timestamp <= after:
                continue
            if isinstance(batch, DeleteRange):
                shared = batch.span.intersect(span)
                if shared is not None:
                    yield DeleteRange(shared, batch.timestamp)
            else:
                values = batch.within(span, after, omitted)
                if values is not None:
                    yield values

    def _decoded(self) -> list[LiveBatch | DeleteRange]:
        if self._batches is None:
            assert self._entry is not None, "let go of, and not decoded"
            self._batches = _decode(self._entry)
            self._entry = None  # or a buffered entry would hold its values twice
        return self._batches


@dataclass(frozen=True, slots=True)
class Shown:
    """The values that feeds show: bodies without headers, None for a deletion.

    `kept` are the indexes of those shown, or None when that is all of them. What a backfill wrote
    is left out: it changes no row's meaning. `origins` are those of `LiveBatch`.
    """

    bodies: list[bytes | None]
    kept: list[int] | None = None
    origins: list[int | None] | None = None


def shown(values: Sequence[bytes]) -> Shown:
    """The values without their headers, as feeds show them."""
    kinds = {value[0] for value in values}
    if kinds <= _PLAIN:
        return Shown([value[1:] for value in values])
    if kinds <= _PLAIN_OR_DELETED:
        return Shown([None if value[0] else value[1:] for value in values])
    if kinds == _BACKFILLED:
        return Shown([], [])
    headers = [header_of(value) for value in values]
    kept = [i for i, header in enumerate(headers) if not header.omitted]
    origins = [headers[i].origin for i in kept]
    return Shown(
        [body_of(values[i]) for i in kept],
        None if len(kept) == len(values) else kept,
        origins if any(origin is not None for origin in origins) else None,
    )


def previous_of(
    reader: Reader, written: Sequence[bytes], timestamps: Sequence[Timestamp]
) -> list[bytes | None]:
    """The bodies that these versions replaced, each as a reader just below it saw it."""
    previous: list[bytes | None] = []
    for key, ts in zip(written, timestamps, strict=True):
        before = Timestamp(ts - 1)
        found = read_at(reader, key, before)
        previous.append(None if found is None else body_at(found[1], before))
    return previous


def bounds_of(ops: Sequence[LogicalOp]) -> Bounds:
    """Returns a least and a greatest key for each operation that feeds may show."""
    found: Bounds = []
    for op in ops:
        if isinstance(op, _VERSIONS):
            if op.keys:
                found.append((min(op.keys), max(op.keys)))
        elif isinstance(op, DeleteRangeOp):
            found.append((op.start, op.end))
    return found


def _decode(entry: DurableEntry) -> list[LiveBatch | DeleteRange]:
    batches: list[LiveBatch | DeleteRange] = []
    for op in entry.command.ops:
        if isinstance(op, _VERSIONS):
            batches.extend(_decode_versions(entry, op))
        elif isinstance(op, DeleteRangeOp) and not op.omitted:
            batches.append(DeleteRange(Span(op.start, op.end), op.timestamp))
    return batches


def _decode_versions(
    entry: DurableEntry, op: WriteValue | WriteVersions | CommitIntent
) -> Iterator[LiveBatch]:
    written = op.keys
    found = shown(op.values)
    mixed = isinstance(op, WriteVersions)
    if isinstance(op, WriteVersions):
        timestamps, newest = op.timestamps, max(op.timestamps)
    else:
        timestamps, newest = [op.timestamp] * len(written), op.timestamp
    if found.kept is not None:
        written = [written[i] for i in found.kept]
        timestamps = [timestamps[i] for i in found.kept]
    if not written:
        return
    batch = ValueBatch(
        keys=written,
        values=found.bodies,
        timestamps=timestamps,
        commit_called_ns=entry.commit_called_ns,
        appended_ns=entry.appended_ns,
        durable_ns=entry.durable_ns,
    )
    lowest, highest = min(written), max(written)
    cut = keys.KEYSPACE_LENGTH
    if lowest[:cut] == highest[:cut]:
        yield LiveBatch(newest, lowest, highest, batch, found.origins, mixed)
        return
    for keyspace in sorted({key[:cut] for key in written}):
        places = [i for i, key in enumerate(written) if key[:cut] == keyspace]
        part = chosen(batch, places)
        assert part is not None
        origins = None if found.origins is None else [found.origins[i] for i in places]
        yield LiveBatch(newest, min(part.keys), max(part.keys), part, origins, mixed)


def chosen(batch: ValueBatch, places: Sequence[int]) -> ValueBatch | None:
    """The rows of the batch at those places, or None for no places."""
    if not places:
        return None
    written, values, timestamps = batch.keys, batch.values, batch.timestamps
    return ValueBatch(
        keys=[written[i] for i in places],
        values=[values[i] for i in places],
        timestamps=[timestamps[i] for i in places],
        commit_called_ns=batch.commit_called_ns,
        appended_ns=batch.appended_ns,
        durable_ns=batch.durable_ns,
    )
