"""Backfills: the rows of before into an index that writers already maintain.

Every writer writes the new index since before the backfill began (it waited until nobody used an
older version). So a row that changed since it was read is in the index already, as its writer put
it there, and is skipped; a row that is unchanged is written under its entry's key. Read and write
are compared in one evaluating step, and so a backfill neither loses a write nor brings a row back.

Rows are read a slice at a time as of now, never as of the beginning: nothing has to be kept from
garbage collection, and resuming is to go on behind the last key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from itertools import pairwise

import msgspec

from ...kvlayer.access import Evaluation, Pending, StoreAccess
from ...kvlayer.process.background import give_way
from ...kvlayer.span import Span
from ..descriptors.descriptor import Column, TableDescriptor
from ..descriptors.elements import Index, IndexKind
from ..rights.key_errors import duplicate_values
from ..rows.index_codec import IndexCodec
from ..rows.row_codec import codec_for
from ..values.column_types import Datum
from ..values.errors import SQLError, Violated
from ..values.physical import physical_writer
from .evaluator import RowEvaluator

STEP_ROWS = 50
"""Rows that one step compares and writes: about half a millisecond."""

PENDING_MAX = 32
"""Steps that are applied and not yet durable: the log syncs some while the next are evaluated."""

Row = tuple[bytes, bytes]
Fence = Callable[[Evaluation], None]
"""Raises JobFenced where the job is no longer this node's: then the step writes nothing."""

Checkpoint = Callable[[bytes, int], Awaitable[None]]
"""Told the last key of each slice that is done, and how many rows it had."""

_decode = msgspec.msgpack.Decoder(list).decode
_encode = msgspec.msgpack.Encoder().encode


async def slices_behind(
    store: StoreAccess, span: Span, after: bytes
) -> AsyncGenerator[list[Row], None]:
    """The rows of the span behind a key (or all, for no key), each slice as of its own reading."""
    start = max(span.start, after + b"\x00") if after else span.start
    while start < span.end:
        reader = store.snapshot(await store.now())
        async with aclosing(reader.scan_slices(Span(start, span.end))) as slices:
            rows = await anext(slices, None)
        if not rows:
            return
        yield rows
        start = rows[-1][0] + b"\x00"


async def backfill_index(
    store: StoreAccess,
    table: TableDescriptor,
    index: Index,
    fill: Sequence[Column],
    evaluator: RowEvaluator,
    *,
    source: Span,
    after: bytes,
    fence: Fence,
    checkpoint: Checkpoint,
) -> None:
    """Writes the entries of all rows of a primary index, `source`, behind the key `after`.

    Rows that lack a column of `fill` get a value for it, in the new index alone. Raises SQLError:
    23505 for two rows with one key of a unique index, 23502 for NULL where there may be none, and
    what the expressions raise; JobFenced.
    """
    codec = IndexCodec(table, index)
    filler = _Filler(table, fill, evaluator)
    pending: deque[tuple[Pending[None], list[Row]]] = deque()

    async def complete_oldest() -> None:
        step, done = pending.popleft()
        await step.wait()
        await checkpoint(done[-1][0], len(done))

    async with aclosing(slices_behind(store, source, after)) as slices:
        async for rows in slices:
            values = await filler.values([body for _, body in rows])
            for start in range(0, len(rows), STEP_ROWS):
                await give_way()
                chunk = rows[start : start + STEP_ROWS]
                entries = _entries(codec, source, chunk, filler.bodies(chunk, values, start))
                step = _step(table, codec, chunk, entries, fence)
                pending.append((await store.submit_one_phase(step), chunk))
                if len(pending) >= PENDING_MAX:
                    await complete_oldest()
    while pending:
        await complete_oldest()


def _entries(
    codec: IndexCodec, source: Span, rows: Sequence[Row], bodies: Sequence[bytes]
) -> list[Row]:
    """The entries of rows of `source`, in the rows' order, their bodies being completed."""
    index = codec.index
    if index.kind is not IndexKind.PRIMARY or index.columns != codec.descriptor.primary_key:
        return codec.entries(bodies)
    # The same key, in another index: only how it begins is another.
    prefix, cut = codec.span.start, len(source.start)
    return [(prefix + key[cut:], body) for (key, _), body in zip(rows, bodies, strict=True)]


def _step(
    table: TableDescriptor,
    codec: IndexCodec,
    rows: Sequence[Row],
    entries: Sequence[Row],
    fence: Fence,
) -> Callable[[Evaluation], None]:
    primary = codec.index.kind is IndexKind.PRIMARY
    in_order = primary and all(first[0] < second[0] for first, second in pairwise(entries))

    def evaluate(evaluation: Evaluation) -> None:
        fence(evaluation)
        now = dict(evaluation.scan(Span(rows[0][0], rows[-1][0] + b"\x00")))
        get: Callable[[bytes], bytes | None] = evaluation.get
        if in_order:  # one look finds what rows alone would find in fifty
            get = dict(evaluation.scan(Span(entries[0][0], entries[-1][0] + b"\x00"))).get
        elif not primary and not codec.index.unique:
            get = dict[bytes, bytes]().get  # an unchanged row has one entry, whoever puts it
        put: dict[bytes, bytes] = {}
        for (key, body), (entry_key, entry) in zip(rows, entries, strict=True):
            if now.get(key) != body:
                continue
            found = put.get(entry_key) or get(entry_key)
            if found is None:
                put[entry_key] = entry
            elif codec.index.unique and not _same_row(table, found, body):
                raise duplicate_values(table, codec, body)
        evaluation.put(list(put), list(put.values()), omit_from_feeds=True)

    return evaluate


def _same_row(table: TableDescriptor, entry: bytes, body: bytes) -> bool:
    """Whether an entry is of the row with this body: both hold the primary key."""
    first, second = _decode(entry), _decode(body)
    found = dict(zip(first[::2], first[1::2], strict=True))
    wanted = dict(zip(second[::2], second[1::2], strict=True))
    return all(found.get(id) == wanted.get(id) for id in table.primary_key)


class _Filler:
    """Gives rows their values of the columns that they lack. Without columns it does nothing."""

    def __init__(
        self, table: TableDescriptor, columns: Sequence[Column], evaluator: RowEvaluator
    ) -> None:
        self._table = table
        self._columns = sorted(columns, key=lambda column: column.id)
        self._writers = [physical_writer(column.type, column.name) for column in self._columns]
        self._computed = [column for column in self._columns if column.computed is not None]
        self._drawn = [column for column in self._columns if column.computed is None]
        self._evaluator = evaluator

    async def values(self, bodies: Sequence[bytes]) -> Sequence[Sequence[Datum]]:
        """The values of each column in rows with these bodies."""
        found: dict[int, Sequence[Datum]] = {}
        if self._drawn:
            drawn = await self._evaluator.draw(self._table, self._drawn, len(bodies))
            found.update(zip((column.id for column in self._drawn), drawn, strict=True))
        if self._computed:
            rows = codec_for(self._table).decode_columns(bodies)
            computed = await self._evaluator.compute(self._table, rows, self._computed)
            found.update(zip((column.id for column in self._computed), computed, strict=True))
        return [found[column.id] for column in self._columns]

    def bodies(
        self, rows: Sequence[Row], values: Sequence[Sequence[Datum]], start: int
    ) -> list[bytes]:
        """The completed bodies of rows, of which the first has its values at `start`."""
        if not self._columns:
            return [body for _, body in rows]
        return [
            self._filled(body, [of_column[place] for of_column in values])
            for place, (_, body) in enumerate(rows, start=start)
        ]

    def _filled(self, body: bytes, values: Sequence[Datum]) -> bytes:
        row = _decode(body)
        last_id = row[-2]
        known = set(row[::2]) if last_id >= self._columns[0].id else ()
        for column, write, datum in zip(self._columns, self._writers, values, strict=True):
            if column.id in known:
                continue
            value = write(datum)
            if value is None and not column.nullable:
                raise null_found(self._table, column)
            row += (column.id, value)
        if known:
            pairs = sorted(zip(row[::2], row[1::2], strict=True))
            row = [part for pair in pairs for part in pair]
        return _encode(row)


def null_found(table: TableDescriptor, column: Column) -> SQLError:
    name = column.name.partition("~")[0]
    return SQLError(
        "23502",
        f'column "{name}" of relation "{table.name}" contains null values',
        violated=Violated(table.name, column=name),
    )


async def remove_data(store: StoreAccess, span: Span, *, fence: Fence) -> None:
    """Deletes every row of a span that nobody reads, by one record, whatever their number.

    Readers of the past still find them; garbage collection removes them when their time is over.
    """

    def evaluate(evaluation: Evaluation) -> None:
        fence(evaluation)
        evaluation.delete_range(span, omit_from_feeds=True)

    await store.one_phase(evaluate)
