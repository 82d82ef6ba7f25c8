"""A table or a keyspace at a timestamp, or its versions in an interval, as Arrow.

The hot loop of scans, snapshots, exports and verification. Rows are decoded in the slices in which
the store hands them out, a thousand or so in half a millisecond, with the loop free to do other
work in between, and put together into larger batches by Arrow, which copies buffers and no objects.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import pyarrow as pa

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.span import Span
from ..descriptors.descriptor import TableDescriptor
from .keyspace_codec import KeyspaceCodec
from .row_codec import codec_for

BATCH_ROWS = 65_536
"""Rows of a batch: large enough that what is done per batch does not count."""


async def read_table(
    store: StoreAccess,
    descriptor: TableDescriptor,
    at: Timestamp,
    *,
    columns: Sequence[str] | None = None,
    span: Span | None = None,
    batch_rows: int = BATCH_ROWS,
) -> AsyncGenerator[pa.RecordBatch, None]:
    """The rows at `at` in key order, under `descriptor`.

    `columns` names those that are wanted, one at least; None means all. `span` bounds the keys; it
    lies within the table's primary span. Batches have `batch_rows` rows but for the last; an empty
    table yields none. Raises BatchTimestampBeforeGC.
    """
    codec = codec_for(descriptor)
    places = None if columns is None else _places(descriptor, columns)
    span = descriptor.primary_span if span is None else span
    assert descriptor.primary_span.covers(span), (descriptor, span)
    decoded: list[pa.RecordBatch] = []
    row_count = 0
    async with aclosing(store.snapshot(at).scan_slices(span)) as slices:
        async for rows in slices:
            bodies = bodies_at(descriptor, rows, at)
            decoded.append(codec.decode_columns(bodies, places=places))
            row_count += len(bodies)
            while row_count >= batch_rows:
                combined = _combine(decoded)
                yield combined.slice(0, batch_rows)
                decoded = [combined.slice(batch_rows)]
                row_count -= batch_rows
    if row_count:
        yield _combine(decoded)


def rows_at(
    descriptor: TableDescriptor, rows: Sequence[tuple[bytes, bytes]], at: Timestamp
) -> Sequence[tuple[bytes, bytes]]:
    """The keys in the store of the rows that a reader at `at` sees, each with what
    `codec_for(descriptor)` decodes: of a keyspace without what is deleted there, or has ended."""
    if descriptor.keyspace is None:
        return rows
    row = KeyspaceCodec(descriptor).row
    shown = ((key, row(key, body, at)[1]) for key, body in rows)
    return [(key, body) for key, body in shown if body is not None]


def bodies_at(
    descriptor: TableDescriptor, rows: Sequence[tuple[bytes, bytes]], at: Timestamp
) -> list[bytes]:
    """The bodies of `rows_at`."""
    return [body for _, body in rows_at(descriptor, rows, at)]


def _combine(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _places(descriptor: TableDescriptor, columns: Sequence[str]) -> list[int]:
    """Raises SQLError 42703 for a column that the table lacks."""
    assert columns, "a batch without columns has no rows"
    return [descriptor.visible_columns.index(descriptor.column(name)) for name in columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSlice:
    """Versions of a table's rows, from older to newer.

    `rows` holds those whose place is not in `deleted` (places in `keys`, ascending), in order, with
    the columns that were asked for.
    """

    keys: Sequence[bytes]
    timestamps: Sequence[Timestamp]
    deleted: Sequence[int]
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.keys)


async def read_versions(
    store: StoreAccess,
    descriptor: TableDescriptor,
    after: Timestamp,
    upto: Timestamp,
    *,
    columns: Sequence[str] | None = None,
    span: Span | None = None,
) -> AsyncGenerator[VersionSlice, None]:
    """Every version committed in `(after, upto]`, decoded under `descriptor`.

    `columns` names those that are wanted, one at least; None means all. Costs what was written in
    the interval, whatever the table holds. Raises BatchTimestampBeforeGC.
    """
    codec = codec_for(descriptor)
    places = None if columns is None else _places(descriptor, columns)
    span = descriptor.primary_span if span is None else span
    assert descriptor.primary_span.covers(span), (descriptor, span)
    keyspace = None if descriptor.keyspace is None else KeyspaceCodec(descriptor)
    async with aclosing(store.versions(span, after, upto)) as slices:
        async for found in slices:
            versions: Sequence[tuple[bytes, Timestamp, bytes | None]] = found
            if keyspace is not None:
                shown = [(at, keyspace.row(key, body, at)) for key, at, body in found]
                versions = [(key, at, body) for at, (key, body) in shown]
            yield VersionSlice(
                keys=[key for key, _, _ in versions],
                timestamps=[timestamp for _, timestamp, _ in versions],
                deleted=[place for place, version in enumerate(versions) if version[2] is None],
                rows=codec.decode_columns(
                    [body for *_, body in versions if body is not None], places=places
                ),
            )
