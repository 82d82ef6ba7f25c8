"""Reading: rows by key in Python, tables as Arrow for DuckDB, both through one transaction.

Everything is read through the transaction, so a statement sees its transaction's own writes, and
what it read is checked when the transaction commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from operator import itemgetter

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.index_codec import index_codec_for
from ....catalog.rows.row_codec import codec_for
from ....catalog.values.arrow_columns import column_array, column_datums
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....catalog.values.physical import to_physical
from ....kvlayer.access import Row as StoredRow
from ....kvlayer.span import Span
from ....kvlayer.transaction_modes import WhenLocked
from ....kvlayer.txn import Transaction
from ...access.key_access import KeyAccess, TooManyRows
from ...analyze.calls.row_calls import ValueNeeded, ask_sequence
from ...analyze.columns.output_columns import with_origins
from ...analyze.given_tables import is_virtual
from ...analyze.predicates import bind_predicates
from ...analyze.scalars import Bindings, Scalar
from ...lower.transpile import AnalyticSelect, TableScan
from ...plan.drawn_items import DrawnCall, DrawnItems
from ...plan.plans import NativeSelect, SelectPlan
from ...results.results import Answer, Result, ResultColumn, Row, arrow_schema, selected
from ...results.table_reads import Images, Source, TableRead
from .evaluator_errors import asked_of_duckdb

CHUNK_ROWS = 256
"""Rows that a native scan reads at a time: decoding them takes about a millisecond."""

CHUNK_BYTES = 256 * 1024
"""And bytes of their bodies, or the one row that has more."""

SPANS_PER_STEP = 64
"""Spans of a native scan, most of which have a row or none, between two turns of the loop."""

NATIVE_ROWS_MAX = 4096
"""A native scan that passes this many rows is left to DuckDB, which is faster from there on."""

JOINED_ROWS_MAX = 1024
"""The same for one that reads a row by its key for each entry of an index: some 20 µs each."""

POINTS_FIRST = 16
POINTS_WIDE = 4
"""Rows that are read by their keys at first, and where those were more than `CHUNK_BYTES`."""

JOINED_FOR_DUCKDB_MAX = 10_000
"""So many reads by key take a fifth of a second, as a full scan of 60,000 rows does: from there on
DuckDB is given all rows."""

OPERAND_ROWS = 1024
"""Rows whose operands of calls are Python values together."""

KeyedRow = tuple[bytes, Row]


async def run_select(plan: SelectPlan, transaction: Transaction, bindings: Bindings) -> Result:
    """The rows of a query."""
    if plan.native is not None:
        try:
            return await run_native(plan.native, transaction, bindings)
        except TooManyRows:
            pass
    analytic = await plan.analysed()
    answer = await run_analytic(analytic, transaction, bindings)
    if plan.drawn is not None:
        answer = await with_draws(answer, plan.drawn, bindings)
    return selected(with_origins(answer.columns, analytic.origins), answer.table)


async def run_native(native: NativeSelect, transaction: Transaction, bindings: Bindings) -> Result:
    """Runs a query whose rows are read by key and computed in Python."""
    limits = cut(native.limit, native.offset, bindings)
    wanted: int | None = limits.stop
    test = None
    if native.predicates and not native.access.answers(native.predicates):
        test = bind_predicates(native.predicates, bindings)
    found: list[Row] = []
    if native.access.points:
        keys = native.access.keys(bindings)
        keys = keys[::-1] if native.reverse else keys
        pairs = await read_points(native.access.descriptor, keys, transaction)
        found = [row for _, row in pairs if test is None or test(row)]
    elif wanted != 0:
        async for rows in read_rows(
            native.access,
            transaction,
            bindings,
            covered=native.covered,
            reverse=native.reverse,
            wanted=wanted,
        ):
            found += [row for _, row in rows if test is None or test(row)]
            if wanted is not None and len(found) >= wanted:
                break
    return shown(native, found[limits])


def shown(native: NativeSelect, rows: Sequence[Row]) -> Result:
    """The result of the rows that a native plan found."""
    chosen = list(map(_picker(native), rows))
    return Result(
        tag=f"SELECT {len(chosen)}", columns=native.names, rows=chosen, row_count=len(chosen)
    )


def _only(places: Sequence[int]) -> Callable[[Row], Row]:
    """As `itemgetter`, which returns no tuple for one place, and takes no fewer."""
    return lambda row: tuple([row[place] for place in places])


def _picker(native: NativeSelect) -> Callable[[Row], Row]:
    """Returns the function that makes a row of the result of a row of the table."""
    places, constants = native.columns, native.constants
    pick = itemgetter(*places) if len(places) > 1 else _only(places)
    return (lambda row: pick((*row, *constants))) if constants else pick


def cut(limit: Scalar | None, offset: Scalar | None, bindings: Bindings) -> slice:
    """LIMIT and OFFSET, as the part of the rows that they leave. Raises SQLError 2201W, 2201X."""
    if limit is None and offset is None:
        return _ALL_ROWS
    start = _count(offset, bindings, "OFFSET") or 0
    count = _count(limit, bindings, "LIMIT")
    return slice(start, None if count is None else start + count)


_ALL_ROWS = slice(0, None)


def _count(scalar: Scalar | None, bindings: Bindings, clause: str) -> int | None:
    value = scalar.value(bindings) if scalar is not None else None
    if value is None:
        return None
    assert isinstance(value, int), value
    if value < 0:
        sqlstate = "2201W" if clause == "LIMIT" else "2201X"
        raise SQLError(sqlstate, f"{clause} must not be negative")
    return value


async def read_rows(
    access: KeyAccess,
    transaction: Transaction,
    bindings: Bindings,
    *,
    covered: bool = False,
    reverse: bool = False,
    wanted: int | None = None,
    bounded: bool = True,
) -> AsyncIterator[list[KeyedRow]]:
    """The rows of an access by spans in key order, in chunks. Raises TooManyRows where it is
    `bounded`.

    Of an access by a secondary index rows are known by their own keys, and those `covered` have
    only the columns that its entries hold.
    """
    spans, when_locked = access.spans(bindings), bindings.when_locked
    decode = codec_for(access.descriptor).decode_row
    read = 0
    rows_max = JOINED_ROWS_MAX if access.secondary and not covered else NATIVE_ROWS_MAX
    for number, span in enumerate(reversed(spans) if reverse else spans, start=1):
        rest: Span | None = span
        while rest is not None:
            if read and (rest is not span or not number % SPANS_PER_STEP):
                await asyncio.sleep(0)
            chunk = CHUNK_ROWS if wanted is None else min(CHUNK_ROWS, max(wanted, 16))
            pairs = await transaction.scan(
                rest, limit=chunk, reverse=reverse, when_locked=when_locked
            )
            rows = pairs
            if access.secondary:
                rows = await rows_of_entries(
                    access.descriptor, pairs, transaction, covered=covered, when_locked=when_locked
                )
            for place, part in enumerate(_parts(rows)):
                if place:
                    await asyncio.sleep(0)
                yield [(key, decode(key, body)) for key, body in part]
            read += len(pairs)
            if bounded and read > rows_max:
                raise TooManyRows
            rest = _behind(rest, pairs[-1][0], reverse=reverse) if len(pairs) == chunk else None


async def read_points(
    table: TableDescriptor, keys: Sequence[bytes], transaction: Transaction
) -> list[KeyedRow]:
    """All rows of some keys: a generator would cost as much as a row."""
    rows: list[KeyedRow] = []
    start, count = 0, POINTS_FIRST
    while start < len(keys):
        if start:
            await asyncio.sleep(0)
        chosen = keys[start : start + count]
        bodies = await transaction.get_each(chosen)
        rows += decoded(table, chosen, bodies)
        start += count
        wide = sum(len(body) for body in bodies if body is not None) > CHUNK_BYTES
        count = POINTS_WIDE if wide else CHUNK_ROWS
    return rows


def _parts(rows: list[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """The rows, cut where their bodies are more than `CHUNK_BYTES`."""
    if sum(len(body) for _, body in rows) <= CHUNK_BYTES:
        yield rows
        return
    start = size = 0
    for place, (_, body) in enumerate(rows):
        if size and size + len(body) > CHUNK_BYTES:
            yield rows[start:place]
            start, size = place, 0
        size += len(body)
    yield rows[start:]


def decoded(
    table: TableDescriptor, keys: Sequence[bytes], bodies: Sequence[bytes | None]
) -> list[KeyedRow]:
    """The rows of the keys that have a body."""
    decode = codec_for(table).decode_row
    return [
        (key, decode(key, body)) for key, body in zip(keys, bodies, strict=True) if body is not None
    ]


def _behind(span: Span, key: bytes, *, reverse: bool) -> Span | None:
    """Returns the part of a span behind the last key read."""
    start, end = (span.start, key) if reverse else (key + b"\x00", span.end)
    return Span(start, end) if start < end else None


# A row by its key, prepared


class PointRead:
    """A run of a native query whose primary key is fixed."""

    __slots__ = ("_access", "_decode", "_pick", "_predicates", "names", "table")

    def __init__(self, plan: SelectPlan) -> None:
        native = plan.native
        assert native is not None and point_read_applies(plan), plan
        self.table = native.access.descriptor
        self.names = native.names
        self._access = native.access
        self._decode = codec_for(self.table).decode_row
        self._predicates = native.predicates
        if native.access.answers(native.predicates):
            self._predicates = ()
        self._pick = _picker(native)

    def key(self, bindings: Bindings) -> bytes | None:
        """The key, or None where no row can have it. Raises SQLError."""
        keys = self._access.keys(bindings)
        return keys[0] if keys else None

    def rows(self, key: bytes, body: bytes | None, bindings: Bindings) -> Sequence[Row]:
        """The result's rows: one, or none. Raises SQLError."""
        if body is None:
            return ()
        row = self._decode(key, body)
        if self._predicates and not bind_predicates(self._predicates, bindings)(row):
            return ()
        return (self._pick(row),)


def point_read_applies(plan: SelectPlan) -> bool:
    """Whether a query is of one row by its key."""
    native = plan.native
    return (
        native is not None
        and plan.locking is None
        and native.limit is None
        and native.offset is None
        and len(plan.relations) == 1
        and bool(native.access.lone)
    )


# By DuckDB


async def run_analytic(
    select: AnalyticSelect, transaction: Transaction, bindings: Bindings
) -> Answer:
    """Runs a query in DuckDB over what the transaction sees."""
    trace = bindings.trace
    snapshots = {
        scan.registered: await read_arrow(scan, transaction, bindings) for scan in select.scans
    }
    began = 0 if trace is None else trace.begin()
    try:
        with asked_of_duckdb(select):
            return await bindings.evaluator.run(select.over(snapshots, bindings))
    finally:
        if trace is not None:
            trace.duckdb_milliseconds = trace.since(began)


async def read_arrow(scan: TableScan, transaction: Transaction, bindings: Bindings) -> pa.Table:
    """The columns of a scan, as the transaction sees the table."""
    trace = bindings.trace
    began = 0 if trace is None else trace.begin()
    read: _Read | None = None
    if is_virtual(scan.descriptor):
        assert bindings.virtual_rows is not None, scan
        # As in PostgreSQL, what the catalogs told need not hold at the commit: Flyway looks at them
        # in a transaction that stays open while another makes tables.
        with transaction.tracking(False):
            made = await bindings.virtual_rows.read(scan.descriptor, transaction)
        read = made.select(list(scan.places)).cast(scan.arrow_schema), Source.VIRTUAL, 0
    else:
        access, images = scan.access, bindings.images
        by_index = access is not None and access.secondary
        spans = None if access is None or by_index else spans_of(access, bindings)
        held = images is not None and images.holds(scan.descriptor)
        if bindings.when_locked is WhenLocked.WAIT and (held or not by_index):
            read = await read_image(scan, transaction, spans, images)
        if read is None and access is not None and by_index:
            entries = spans_of(access, bindings)
            if entries is not None:
                read = await _scan(scan, transaction, entries, bindings, by_index=True)
        if read is None:
            read = await _scan(scan, transaction, spans, bindings)
    assert read is not None, scan
    table, source, changed = read
    if trace is not None:
        trace.reads.append(
            TableRead(
                table=scan.descriptor.name,
                source=source,
                rows=table.num_rows,
                milliseconds=trace.since(began),
                changed=changed,
            )
        )
    return table


def spans_of(access: KeyAccess, bindings: Bindings) -> list[Span] | None:
    """Returns the spans of an access; None where they are too many to be read one by one."""
    try:
        return access.spans(bindings)
    except TooManyRows:
        return None


_Read = tuple[pa.Table, Source, int]
"""Columns, where they come from, and how many keys of an image had changed."""


async def read_image(
    scan: TableScan, transaction: Transaction, spans: Sequence[Span] | None, images: Images | None
) -> _Read | None:
    """Returns a table's rows from the columnar cache, or None. Rows outside of the spans may be
    old; the query from which the spans were taken filters them out."""
    found = None
    if images is not None:
        found = await images.read(scan.descriptor, transaction, spans)
    if found is None:
        return None
    return found.table(scan.places), found.source, found.changed


async def _scan(
    scan: TableScan,
    transaction: Transaction,
    spans: Sequence[Span] | None,
    bindings: Bindings,
    *,
    by_index: bool = False,
) -> _Read | None:
    """The rows of some spans of a table, or of all; `by_index` those of a secondary index's entries
    in the spans, or None where a full scan is better than so many reads by key."""
    codec, places, covered = codec_for(scan.descriptor), list(scan.places), scan.covered
    when_locked, images = bindings.when_locked, bindings.images
    batches: list[pa.RecordBatch] = []
    joined = 0
    for span in [scan.descriptor.primary_span] if spans is None else spans:
        async for rows in transaction.scan_slices(span, when_locked=when_locked):
            if by_index:
                joined += 0 if covered else len(rows)
                if joined > JOINED_FOR_DUCKDB_MAX:
                    return None
                rows = await rows_of_entries(
                    scan.descriptor, rows, transaction, covered=covered, when_locked=when_locked
                )
            if rows:
                batches.append(codec.decode_columns([body for _, body in rows], places=places))
            await asyncio.sleep(0)
    table = arrow_of(scan, batches)
    if by_index:
        assert scan.access is not None, scan
        return table, scan.access.source(covered=covered), 0
    if spans is None and images is not None:
        images.note_scan(scan.descriptor, table.num_rows)
    return table, Source.SCAN if spans is None else Source.SPANS, 0


def arrow_of(scan: TableScan, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """The columns of a scan, of stored rows that were decoded in batches."""
    return pa.Table.from_batches(batches, schema=scan.stored_schema).cast(scan.arrow_schema)


READ_AT_ONCE = 256
"""Rows that are read by their keys in one step of the loop."""


async def rows_of_entries(
    table: TableDescriptor,
    entries: Sequence[StoredRow],
    transaction: Transaction,
    *,
    covered: bool,
    when_locked: WhenLocked = WhenLocked.WAIT,
) -> list[StoredRow]:
    """Keys and bodies of the rows of entries, in the entries' order.

    An entry's body is a row's, of the columns that the index holds: where those are all that is
    asked for (`covered`) no row is read. Raises SQLError XX002 for an entry without its row.
    """
    key_of = index_codec_for(table, table.primary_index).entry
    if covered:
        return [key_of(body) for _, body in entries]
    rows: list[StoredRow] = []
    for start in range(0, len(entries), READ_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        keys = [key_of(body)[0] for _, body in entries[start : start + READ_AT_ONCE]]
        bodies = await _read(transaction, keys, when_locked)
        for key, found in zip(keys, bodies, strict=True):
            if found is not None:
                rows.append((key, found))
            elif when_locked is not WhenLocked.SKIP:
                raise SQLError(
                    "XX002",
                    f'an index of table "{table.name}" has an entry without its row',
                    detail=f"The row's key is {key.hex()}.",
                    hint="Drop the index and create it again.",
                )
    return rows


async def _read(
    transaction: Transaction, keys: Sequence[bytes], when_locked: WhenLocked
) -> list[bytes | None]:
    """The rows' bodies; None where another transaction has locked one, and such are skipped."""
    if when_locked is WhenLocked.WAIT:
        return await transaction.get_each(keys)
    bodies: list[bytes | None] = []
    for key in keys:
        found = await transaction.scan(Span.point(key), limit=1, when_locked=when_locked)
        bodies.append(found[0][1] if found else None)
    return bodies


async def with_draws(found: Answer, drawn: DrawnItems, bindings: Bindings) -> Answer:
    """Returns the rows of a query's items, computed from the rows of the query without draws.
    Raises ValueNeeded where a statement has not drawn enough yet."""
    width = len(found.columns) - drawn.operand_count
    values = await _drawn(drawn, found, bindings)
    columns, arrays = list(found.columns[:width]), list(found.table.columns[:width])
    for number, (place, draw) in enumerate(zip(drawn.places, drawn.draws, strict=True)):
        column = [to_physical(draw.type, row[number]) for row in values]
        arrays[place] = pa.chunked_array([column_array(draw.type, column)])
        columns[place] = ResultColumn(columns[place].name, draw.type)
    return Answer(tuple(columns), pa.Table.from_arrays(arrays, schema=arrow_schema(columns)))


async def _drawn(drawn: DrawnItems, found: Answer, bindings: Bindings) -> list[Row]:
    """The drawn values of each row of operands, and the results of its session calls."""
    rows: list[Row] = []
    try:
        for row in _operands(drawn, found):
            rows.append(tuple([await _call(draw, row, bindings) for draw in drawn.draws]))
    except ValueNeeded as needed:
        needed.wanted = found.table.num_rows - len(rows)
        raise
    return rows


def _operands(drawn: DrawnItems, found: Answer) -> Iterator[Row]:
    """Yields the operands of each row, read in pieces: most values are lacking at the first row."""
    places = range(len(found.columns) - drawn.operand_count, len(found.columns))
    for batch in found.table.to_batches(max_chunksize=OPERAND_ROWS):
        given = [column_datums(found.columns[place].type, batch.column(place)) for place in places]
        yield from zip(*given, strict=True) if given else [()] * batch.num_rows


async def _call(call: DrawnCall, row: Row, bindings: Bindings) -> Datum:
    arguments = call.texts or [row[place] for place in call.places]
    if call.function is None:
        assert bindings.generators is not None, "a sequence is asked without generators"
        answer = ask_sequence(call.name, bindings.generators, arguments)
        assert answer is None or isinstance(answer, int), call
        return answer
    if bindings.calls is None:
        raise SQLError(
            "0A000",
            f"{call.name} cannot be called by a statement that writes",
            hint="Call it in a SELECT.",
        )
    if None in (arguments[:1] if call.function.lenient else arguments):
        return None
    return await bindings.calls.call(call.name, arguments)
