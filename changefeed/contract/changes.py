"""Decoded changes on their way from the gate to a sink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate, chain
from typing import TypedDict, TypeVar

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.arrow_columns import column_datums
from ...catalog.values.column_types import Datum
from ...kvlayer.clock import Timestamp

T = TypeVar("T")

COLUMNAR_ROWS_MIN = 64
"""From this many rows on, Arrow is cheaper than a list of tuples; below, DuckDB takes twice as long
to read one Arrow row as one set of parameters."""


class Form(Enum):
    """The form of a batch's rows that a sink prefers."""

    ROWS = "rows"  # decoded, one by one
    COLUMNS = "columns"  # decoded, Arrow where there are many
    BODIES = "bodies"  # as the store has them, where the rows before are not told: it decodes them
    STORED = "stored"  # as the store has them, and their target does not present them

    @property
    def undecoded(self) -> bool:
        return self in (Form.BODIES, Form.STORED)


class ChangeKind(Enum):
    LIVE = "live"  # committed while the feed watched, or caught up with
    INITIAL_SCAN = "initial scan"  # a row as of the feed's start
    BACKFILL = "backfill"  # a row as of a schema event


@dataclass(slots=True)
class StageTimes:
    """When a batch passed each stage, in monotonic nanoseconds; zero where it did not.

    `gated` is when its schema was proven, `received` when the sink had it, `flushing` when a flush
    took it, `sunk` when that had made it durable: the writer stamps these three.
    """

    gated: int = 0
    decoded: int = 0
    received: int = 0
    flushing: int = 0
    sunk: int = 0


CommitTimes = tuple[int, int, int, int]
"""A commit on its way to a feed, in monotonic nanoseconds: when it was called, stood in the log's
buffer, was durable, and had arrived in the feed's pipeline. The first is zero where nobody measured
it: for what is caught up with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBatch:
    """Changes of one table, decoded under one canonical descriptor, in order per key.

    Exactly one of `rows`, `columns` and `bodies` is there. `rows[i]` is the row behind `keys[i]` in
    the descriptor's column order, or None for a deletion. `columns` holds the rows of the keys that
    are not in `deleted` (indexes into `keys`, ascending), in order. `bodies[i]` is what `rows[i]`
    is decoded of: such a batch is for a sink that asks for it (`Form.BODIES`, `Form.STORED`).
    `timestamps[i]` is the version's commit timestamp; for a scan it is the scan's, and `versions`,
    where it is there, has the rows' own. A key may occur more than once; the later one is newer.

    Where the feed asks for previous values, `previous[i]` is the row that the change replaced, None
    where there was none, in the column order of `before` (of `descriptor` where that is None).

    Where a query shows something of deletions, `shown` is what it shows of every change.

    What is sent `for_log` alone is below what the feed has resolved: a mirror has it, or something
    later.
    """

    descriptor: TableDescriptor
    kind: ChangeKind
    keys: Sequence[bytes]
    timestamps: Sequence[Timestamp]
    rows: Sequence[tuple[Datum, ...] | None] | None = None
    columns: pa.RecordBatch | None = None
    deleted: Sequence[int] = ()
    bodies: Sequence[bytes | None] | None = None
    versions: Sequence[Timestamp] | None = None
    previous: Sequence[tuple[Datum, ...] | None] | None = None
    before: TableDescriptor | None = None
    shown: pa.RecordBatch | None = None
    for_log: bool = False
    stages: StageTimes = field(default_factory=StageTimes)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def gone(self) -> Sequence[int]:
        """The places of deletions, whichever form the batch has."""
        if self.rows is None:
            return self.deleted
        return [place for place, row in enumerate(self.rows) if row is None]

    @property
    def written_at(self) -> Sequence[Timestamp]:
        """The timestamp of each row's write, also where a scan has shown it as of another time."""
        return self.timestamps if self.versions is None else self.versions

    def decoded(self) -> ChangeBatch:
        """The same batch with its bodies decoded, into Arrow where there are many. Raises
        RowUnreadable."""
        if self.bodies is None:
            return self
        form = decode_bodies(self.descriptor, self.keys, self.bodies, columnar=True)
        return replace(self, bodies=None, **form)

    def iterate_rows(self) -> Iterator[tuple[Datum, ...] | None]:
        """The row behind each key, or None for a deletion, whichever form the batch has."""
        if self.rows is not None:
            return iter(self.rows)
        assert self.columns is not None, self
        columns = [
            column_datums(column.type, array)
            for column, array in zip(
                self.descriptor.visible_columns, self.columns.columns, strict=True
            )
        ]
        rows = zip(*columns, strict=True)
        if not self.deleted:
            return rows
        gone = frozenset(self.deleted)
        return (None if index in gone else next(rows) for index in range(len(self.keys)))

    def whole_rows(self) -> Iterator[Sequence[Datum]]:
        """The row of each change; of a deletion the key's columns, and NULLs."""
        columns = self.descriptor.visible_columns
        places = {id: place for place, id in enumerate(self.descriptor.primary_key)}
        decode_key = codec_for(self.descriptor).decode_key
        for key, row in zip(self.keys, self.iterate_rows(), strict=True):
            if row is None:
                values = decode_key(key)
                row = tuple(
                    values[places[each.id]] if each.id in places else None for each in columns
                )
            yield row


class DecodedForm(TypedDict, total=False):
    """The part of a batch that is its rows."""

    rows: Sequence[tuple[Datum, ...] | None]
    columns: pa.RecordBatch
    deleted: Sequence[int]


def decode_bodies(
    descriptor: TableDescriptor,
    keys: Sequence[bytes],
    bodies: Sequence[bytes | None],
    *,
    columnar: bool,
) -> DecodedForm:
    """The rows of `bodies`: Arrow from `COLUMNAR_ROWS_MIN` on where that is asked for. Raises
    RowUnreadable."""
    codec = codec_for(descriptor)
    if not columnar or len(keys) < COLUMNAR_ROWS_MIN:
        decode_row = codec.decode_row
        return {
            "rows": [
                None if body is None else decode_row(key, body)
                for key, body in zip(keys, bodies, strict=True)
            ]
        }
    there = [body for body in bodies if body is not None]
    deleted: Sequence[int] = ()
    if len(there) != len(bodies):
        deleted = [index for index, body in enumerate(bodies) if body is None]
    return {"columns": codec.decode_columns(there), "deleted": deleted}


def merged(batches: Sequence[ChangeBatch], *, bytes_max: int) -> Iterator[ChangeBatch]:
    """The same changes in the same order, in fewer batches: neighbours in columns that are of one
    form become one, of at most `bytes_max` Arrow bytes. What is written by columns costs a flat sum
    for each batch, and a feed that catches up decodes a commit at a time."""
    together: list[ChangeBatch] = []
    size = 0
    for batch in batches:
        # Not `nbytes`, which waits for the interpreter's lock again when it has counted.
        own = 0 if batch.columns is None else batch.columns.get_total_buffer_size()
        if together and (size + own > bytes_max or not _joins(batch, together[0])):
            yield _one(together)
            together, size = [], 0
        together.append(batch)
        size += own
    if together:
        yield _one(together)


def _joins(batch: ChangeBatch, other: ChangeBatch) -> bool:
    return batch.columns is not None and _form(batch) == _form(other)


def _form(batch: ChangeBatch) -> tuple[object, ...]:
    """The properties that batches must have in common to be one."""
    before = batch.before and (batch.before.id, batch.before.version)
    there = [
        each is not None for each in (batch.columns, batch.versions, batch.previous, batch.shown)
    ]
    return (batch.descriptor.id, batch.descriptor.version, batch.kind, before, *there)


def _one(batches: Sequence[ChangeBatch]) -> ChangeBatch:
    """One batch of several in columns that are of one form."""
    if len(batches) == 1:
        return batches[0]
    starts = accumulate(map(len, batches), initial=0)
    return replace(
        batches[0],
        keys=list(chain.from_iterable(batch.keys for batch in batches)),
        timestamps=list(chain.from_iterable(batch.timestamps for batch in batches)),
        columns=_concatenated(batch.columns for batch in batches),
        deleted=[
            start + index
            for start, batch in zip(starts, batches, strict=False)
            for index in batch.deleted
        ],
        versions=_chained(batch.versions for batch in batches),
        previous=_chained(batch.previous for batch in batches),
        shown=_concatenated(batch.shown for batch in batches),
        stages=StageTimes(),
    )


def _concatenated(parts: Iterable[pa.RecordBatch | None]) -> pa.RecordBatch | None:
    there = [part for part in parts if part is not None]
    return pa.concat_batches(there) if there else None  # type: ignore[attr-defined]


def _chained(parts: Iterable[Sequence[T] | None]) -> list[T] | None:
    there = [part for part in parts if part is not None]
    return list(chain.from_iterable(there)) if there else None
