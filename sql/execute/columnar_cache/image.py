"""Images: a table's rows at one timestamp as Arrow columns, and how an image becomes a later one.

An image is a row of *chunks* in key order, each with its keys beside its columns:

    at 120      chunk  a b d        chunk  f g
    changes     b = "x", c = "y", g deleted
    at 130      chunk  a b c d      chunk  f

An image never changes. The next one shares the chunks in which nothing has, so following a table
costs what changed: a chunk for a row that stands alone, less for rows that stand together.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ....cached import cached_property
from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.arrow_conform import broad_schema
from ....catalog.rows.row_codec import codec_for
from ....kvlayer.clock import Timestamp
from ....kvlayer.process.fibre import end_slice, give_way, in_slices, in_slices_where

CHUNK_ROWS = 8192
"""Rows of a new chunk: copying one takes a fraction of a millisecond, and DuckDB, which works on
2048 rows at a time, reads many of them as fast as one. A chunk that has grown to twice as many is
cut; one that shrinks is as small as that, until the image is made anew."""

_KEYS_PER_STEP = 32
_ROWS_PER_SLICE = 500

_CHUNK_ROWS_MAX = 2 * CHUNK_ROWS


@dataclass(frozen=True)
class Chunk:
    """Neighbouring rows in key order, one at least: `keys[i]` is the key of row i."""

    keys: pa.Array[pa.BinaryScalar]
    rows: pa.RecordBatch

    @property
    def first(self) -> bytes:
        return bytes(self.keys[0].as_py())

    @cached_property
    def byte_count(self) -> int:
        return self.keys.nbytes + self.rows.nbytes


@dataclass(frozen=True)
class Image:
    """Every row of a table at `at`, all its visible columns, in broad types.

    `descriptor` is the version that the rows were decoded under: a reader under another one takes
    an image of its own.
    """

    descriptor: TableDescriptor
    at: Timestamp
    chunks: tuple[Chunk, ...]

    @cached_property
    def row_count(self) -> int:
        return sum(chunk.rows.num_rows for chunk in self.chunks)

    @cached_property
    def byte_count(self) -> int:
        return sum(chunk.byte_count for chunk in self.chunks)

    @cached_property
    def _table(self) -> pa.Table:
        return pa.Table.from_batches(
            [chunk.rows for chunk in self.chunks], schema=_schema(self.descriptor)
        )

    def serves(self, other: TableDescriptor) -> bool:
        """Whether the rows are those that a reader under this version of a table sees."""
        return (self.descriptor.id, self.descriptor.version) == (other.id, other.version)

    def table(self, places: Sequence[int]) -> pa.Table:
        return self._table.select(list(places))

    async def changed(self, changes: Mapping[bytes, bytes | None], at: Timestamp) -> Image:
        """The image at `at`: keys that have a new body, or None where the row is deleted.

        Made in slices of the loop.
        """
        assert at >= self.at, (at, self.at)
        if not changes:
            return self if at == self.at else replace(self, at=at)
        chunks = await in_slices_where(len(changes) > 1, lambda: self._chunks_with(changes))
        return Image(self.descriptor, at, tuple(chunks))

    def _chunks_with(self, changes: Mapping[bytes, bytes | None]) -> list[Chunk]:
        keys = sorted(changes)
        end_slice()
        chunks: list[Chunk] = []
        for chunk, start, end in _affected(self.chunks, keys):
            if start == end:
                assert chunk is not None
                chunks.append(chunk)
                continue
            portion = keys[start:end]
            made = _merge(self.descriptor, chunk, portion, [changes[key] for key in portion])
            end_slice()
            chunks += () if made is None else _cut(made)
            end_slice()
        return chunks


def _schema(descriptor: TableDescriptor) -> pa.Schema:
    """Every visible column."""
    return broad_schema(descriptor, range(len(descriptor.visible_columns)))


class ImageBuilder:
    """Makes the first image of a table out of its rows, which come in key order."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        self._descriptor = descriptor
        self._chunks: list[Chunk] = []
        self._parts: list[Chunk] = []
        self._row_count = 0
        self.byte_count = 0

    async def add(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        keys, bodies = [key for key, _ in rows], [body for _, body in rows]
        self._parts.append(_chunk(self._descriptor, keys, bodies))
        self._row_count += len(rows)
        if self._row_count >= CHUNK_ROWS:
            await in_slices(self._cut)

    async def finish(self, at: Timestamp) -> Image:
        if self._row_count:
            await in_slices(self._cut)
        return Image(self._descriptor, at, tuple(self._chunks))

    def _cut(self) -> None:
        chunk = _joined(self._parts)
        self._chunks.append(chunk)
        self.byte_count += chunk.byte_count
        self._parts, self._row_count = [], 0


def _chunk(descriptor: TableDescriptor, keys: Sequence[bytes], bodies: Sequence[bytes]) -> Chunk:
    """The rows of keys and bodies, decoded in slices of the loop where this is a fibre."""
    codec, schema = codec_for(descriptor), _schema(descriptor)
    parts: list[Chunk] = []
    for start in range(0, len(keys) or 1, _ROWS_PER_SLICE):
        rows = codec.decode_columns(bodies[start : start + _ROWS_PER_SLICE]).cast(schema)
        parts.append(Chunk(pa.array(keys[start : start + _ROWS_PER_SLICE], pa.binary()), rows))
        end_slice()
    return _joined(parts)


def _joined(parts: Sequence[Chunk]) -> Chunk:
    if len(parts) == 1:
        return parts[0]
    keys = pa.concat_arrays([part.keys for part in parts])
    end_slice()
    rows = pa.Table.from_batches([part.rows for part in parts]).combine_chunks().to_batches()[0]
    return Chunk(keys, rows)


def _affected(
    chunks: Sequence[Chunk], keys: Sequence[bytes]
) -> Iterator[tuple[Chunk | None, int, int]]:
    """Each chunk, and which of the ascending `keys` belong to it: those from its first one on.

    Keys before all chunks belong to the first; where there is no chunk, None stands for it.
    """
    if not chunks:
        yield None, 0, len(keys)
        return
    start = 0
    for place, chunk in enumerate(chunks):
        last = place + 1 == len(chunks)
        end = len(keys) if last else bisect_left(keys, chunks[place + 1].first, start)
        yield chunk, start, end
        start = end


def _merge(
    descriptor: TableDescriptor,
    chunk: Chunk | None,
    keys: Sequence[bytes],
    bodies: Sequence[bytes | None],
) -> Chunk | None:
    """A chunk with changes of ascending keys. None where no row is left."""
    live = [(key, body) for key, body in zip(keys, bodies, strict=True) if body is not None]
    fresh = _chunk(descriptor, [key for key, _ in live], [body for _, body in live])
    end_slice()
    if chunk is None:
        return fresh if live else None
    # Rows are taken from the old ones and, behind them, the fresh ones.
    old: list[bytes] = chunk.keys.to_pylist()  # type: ignore[assignment]
    count, next_fresh, done = len(old), len(old), 0
    taken = array("q")
    for number, (key, body) in enumerate(zip(keys, bodies, strict=True)):
        if not number % _KEYS_PER_STEP:
            give_way()
        place = bisect_left(old, key, done)
        taken.extend(range(done, place))
        done = place + (place < count and old[place] == key)
        if body is not None:
            taken.append(next_fresh)
            next_fresh += 1
    taken.extend(range(done, count))
    end_slice()
    return _take((chunk, fresh), taken) if taken else None


def _take(chunks: Sequence[Chunk], places: array[int]) -> Chunk:
    """Rows of several chunks, by their places in all of them together."""
    indices = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])
    whole = _joined(chunks)
    end_slice()
    keys = whole.keys.take(indices)
    end_slice()
    return Chunk(keys, whole.rows.take(indices))


def _cut(made: Chunk) -> Iterator[Chunk]:
    """A chunk that was made anew, in several where it has grown."""
    count = made.rows.num_rows
    if count <= _CHUNK_ROWS_MAX:
        yield made
        return
    for start in range(0, count, CHUNK_ROWS):
        # Copied, so that a part does not keep the whole alive.
        yield _take((made,), array("q", range(start, min(start + CHUNK_ROWS, count))))
