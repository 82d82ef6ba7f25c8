"""The two exports: a snapshot's rows, and an interval's versions, as batches with marks."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import RowCodec, codec_for
from ...catalog.rows.table_reader import VersionSlice, read_versions, rows_at
from ...kvlayer.access import Snapshot, StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.process.background import give_way
from ...kvlayer.span import Span
from .row_filter import RowFilter

BATCH_SLICES = 4
"""Slices of the scan that make a batch: a message's own cost is spread over some thousand rows."""

OPERATION = "_op"
COMMIT_TIMESTAMP = "_commit_timestamp"
UPSERT = "upsert"
DELETE = "delete"

STAMPS_A_STEP = 100
"""Looks at the store between two pauses: some hundred microseconds."""

_STAMP = pa.field(COMMIT_TIMESTAMP, pa.int64(), nullable=False)
_MARK = struct.Struct(">qq")


class MarkUnreadable(ValueError):
    """A mark that no export of versions has given."""

    def __init__(self, mark: bytes) -> None:
        super().__init__(f"{mark.hex()!r} is no mark of an export of versions")


@dataclass(frozen=True, slots=True)
class ExportBatch:
    """Rows, and the mark behind the last of them: an export from it goes on with the next."""

    rows: pa.RecordBatch
    mark: bytes


async def export_snapshot(
    store: StoreAccess,
    descriptor: TableDescriptor,
    at: Timestamp,
    *,
    span: Span,
    columns: Sequence[str],
    row_filter: RowFilter,
    mark: bytes | None = None,
    stamped: bool = False,
) -> AsyncGenerator[ExportBatch, None]:
    """The rows of the span at `at`, in key order. A mark is the key of the last row.

    If they are to be `stamped`, `_commit_timestamp` follows the columns: when each was written.
    That is a look at the store for each row.

    Raises BatchTimestampBeforeGC, before the first batch or after the last.
    """
    start = span.start if mark is None else mark + b"\x00"
    if start >= span.end:
        return
    codec = codec_for(descriptor)
    places = _places(descriptor, [*columns, *row_filter.columns])
    names = [*columns, COMMIT_TIMESTAMP] if stamped else list(columns)
    parts: list[pa.RecordBatch] = []
    snapshot = store.snapshot(at)
    async with aclosing(snapshot.scan_slices(Span(start, span.end))) as slices:
        last = start
        async for rows in slices:
            await give_way()  # reading a slice takes a millisecond, decoding it another
            shown = rows_at(descriptor, rows, at)
            found = codec.decode_columns([body for _, body in shown], places=places)
            if stamped:
                stamps = await _written(snapshot, [key for key, _ in shown])
                found = found.append_column(_STAMP, stamps)
            parts.append(row_filter.apply(found).select(names))
            last = rows[-1][0]
            await give_way()
            if len(parts) == BATCH_SLICES:
                yield ExportBatch(_joined(parts), last)
                parts = []
    if parts:
        yield ExportBatch(_joined(parts), last)


async def export_versions(
    store: StoreAccess,
    descriptor: TableDescriptor,
    after: Timestamp,
    upto: Timestamp,
    *,
    span: Span,
    columns: Sequence[str],
    row_filter: RowFilter,
    mark: bytes | None = None,
) -> AsyncGenerator[ExportBatch, None]:
    """Every version of the span committed in `(after, upto]`, per key from older to newer.

    The columns asked for, then `_op` (`upsert` or `delete`; of a deleted row the key alone is
    there, so a filter on another column lets none pass) and `_commit_timestamp`. A mark says how
    many versions of its timestamp came before it. Raises BatchTimestampBeforeGC.
    """
    passed = None if mark is None else _Mark.read(mark)
    if passed is not None:
        after = max(after, Timestamp(passed.timestamp - 1))
    if after >= upto:
        return
    codec = codec_for(descriptor)
    wanted = list(dict.fromkeys([*columns, *row_filter.columns]))
    to_skip = 0 if passed is None else passed.count
    place = _Mark(after, 0)
    async with aclosing(
        read_versions(store, descriptor, after, upto, columns=wanted, span=span)
    ) as slices:
        async for versions in slices:
            place = place.behind(versions.timestamps)
            skipped = min(to_skip, len(versions))
            to_skip -= skipped
            await give_way()
            rows = row_filter.apply(_versions(codec, versions).slice(skipped))
            if rows.num_rows:
                names = [*columns, OPERATION, COMMIT_TIMESTAMP]
                yield ExportBatch(rows.select(names), place.written())


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place in an interval's versions: behind the first `count` of those at `timestamp`.

    The order of an interval's versions is by time, and where one transaction wrote many, always
    the same; a key would not do, for what it deleted by range comes before what it wrote.

        versions   110 a   110 b   130 a            places   (110, 1)   (110, 2)   (130, 1)
    """

    timestamp: Timestamp
    count: int

    @classmethod
    def read(cls, mark: bytes) -> _Mark:
        """Raises MarkUnreadable."""
        try:
            timestamp, count = _MARK.unpack(mark)
        except struct.error:
            raise MarkUnreadable(mark) from None
        return cls(Timestamp(timestamp), count)

    def written(self) -> bytes:
        return _MARK.pack(self.timestamp, self.count)

    def behind(self, timestamps: Sequence[Timestamp]) -> _Mark:
        """The place behind the versions that follow this one, given by their timestamps."""
        last = timestamps[-1]
        first = bisect_left(timestamps, last)
        before = self.count if first == 0 and last == self.timestamp else 0
        return _Mark(last, before + len(timestamps) - first)


def stamped_schema(schema: pa.Schema) -> pa.Schema:
    """A table's schema, with when each row was written."""
    return schema.append(_STAMP)


def version_schema(schema: pa.Schema) -> pa.Schema:
    """A table's schema with what versions add. Of a deleted row all but the key is NULL."""
    fields = [field.with_nullable(True) for field in schema]
    return pa.schema(
        [
            *fields,
            pa.field(OPERATION, pa.string(), nullable=False),
            pa.field(COMMIT_TIMESTAMP, pa.int64(), nullable=False),
        ]
    )


async def _written(snapshot: Snapshot, keys: Sequence[bytes]) -> pa.Array[Any]:
    """The timestamps of the last writes of the keys that are there."""
    stamps = []
    for place, key in enumerate(keys):
        found = await snapshot.get_with_timestamp(key)
        assert found is not None, key.hex()
        stamps.append(found[1])
        if place % STAMPS_A_STEP == 0:
            await give_way()
    return pa.array(stamps, pa.int64())


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    joined: pa.RecordBatch = pa.concat_batches(parts)  # type: ignore[attr-defined]  # the stubs'
    return joined


def _versions(codec: RowCodec, versions: VersionSlice) -> pa.RecordBatch:
    """All versions of a slice as rows; deletions with their keys and NULLs."""
    count = len(versions)
    if not versions.deleted:
        operations = pa.array([UPSERT] * count, pa.string())
        arrays = versions.rows.columns
    else:
        deleted = set(versions.deleted)
        operations = pa.array([DELETE if n in deleted else UPSERT for n in range(count)])
        keys = codec.decode_keys([versions.keys[place] for place in versions.deleted])
        order = _places_in_turn(count, deleted, versions.rows.num_rows)
        arrays = [
            pa.concat_arrays(
                [
                    rows,
                    keys.column(field.name)
                    if field.name in keys.schema.names
                    else pa.nulls(len(deleted), field.type),
                ]
            ).take(order)
            for field, rows in zip(versions.rows.schema, versions.rows.columns, strict=True)
        ]
    stamps = pa.array(versions.timestamps, pa.int64())
    return pa.RecordBatch.from_arrays(
        [*arrays, operations, stamps], schema=version_schema(versions.rows.schema)
    )


def _places_in_turn(count: int, deleted: set[int], row_count: int) -> pa.Int64Array:
    """The place of each version in its turn, when rows come first and deletions after them."""
    row, gone = iter(range(row_count)), iter(range(row_count, count))
    return pa.array([next(gone) if n in deleted else next(row) for n in range(count)], pa.int64())


def _places(descriptor: TableDescriptor, columns: Sequence[str]) -> list[int]:
    """The places of columns, each once. Raises SQLError 42703."""
    names = dict.fromkeys(columns)
    return [descriptor.visible_columns.index(descriptor.column(name)) for name in names]
