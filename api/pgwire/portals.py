"""Portals: statements with their parameters, of which a client takes as many rows as it wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from struct import Struct

import pyarrow as pa

from ...catalog.values.column_types import Datum
from ...catalog.values.errors import SQLError
from ...sql import Result, ResultColumn, Row
from ...sql.results.client_types import DeclaredTypes
from ...sql.session.prepared import PreparedStatement
from . import replies
from .bind_form import BindForm
from .messages import Bind
from .wire_types import (
    BINARY,
    TEXT,
    UNKNOWN_OIDS,
    Decoder,
    Encoder,
    decode_parameter,
    encoder,
    hint_of,
    parameter_decoder,
    wire_type,
)

PORTALS_MAX = 1000
"""Portals of one connection. Each may hold a result."""

SLICE_ROWS = 250
"""Rows that become frames in about a millisecond, unless they are very wide."""

_LENGTH = Struct("!i")
_ROW_HEAD = Struct("!cIH")
_FORMATS = frozenset((TEXT, BINARY))
_NULL = b"\xff\xff\xff\xff"


class Border(Enum):
    """A transaction's begin or end, without modes."""

    BEGIN = auto()
    COMMIT = auto()


_BORDERS = {"BEGIN": Border.BEGIN, "COMMIT": Border.COMMIT, "END": Border.COMMIT}
_BORDER_LENGTH_MAX = 10


def border_of(text: str) -> Border | None:
    """The border that a text of statements is, if it is nothing else."""
    if len(text) > _BORDER_LENGTH_MAX:
        return None
    return _BORDERS.get(text.rstrip("; ").upper())


@dataclass(frozen=True, slots=True)
class Shape:
    """The messages that describe result columns in these formats, and the encoding of their
    rows."""

    columns: Sequence[ResultColumn]
    formats: tuple[int, ...]
    description: bytes
    encode: RowEncoder


@dataclass(slots=True)
class WireStatement:
    """A prepared statement, and the OIDs that its client knows its parameters by."""

    prepared: PreparedStatement
    oids: tuple[int, ...]
    border: Border | None
    form: BindForm | None = None
    """The form of the last Bind that was answered at once."""
    _shape: Shape | None = None
    _bound_shape: tuple[tuple[int, ...], Shape] | None = None
    """The result formats of the last Bind, and the shape in them."""
    _decoders: tuple[tuple[int, ...], list[Decoder]] | None = None

    def decoders(self, formats: tuple[int, ...]) -> list[Decoder]:
        """Returns a decoder for each parameter in these formats of a Bind; those of the last Bind
        are remembered. Raises SQLError where the formats do not fit."""
        known = self._decoders
        if known is None or known[0] != formats:
            spread = spread_formats(formats, len(self.oids), "parameters")
            known = formats, list(map(parameter_decoder, self.oids, spread))
            self._decoders = known
        return known[1]

    def shape_of(self, columns: Sequence[ResultColumn], formats: tuple[int, ...]) -> Shape:
        """The shape in the result formats of a Bind. Raises SQLError where they do not fit."""
        known = self._bound_shape
        if known is None or known[0] != formats or known[1].columns is not columns:
            spread = spread_formats(formats, len(columns), "result columns")
            known = self._bound_shape = formats, self.shape(columns, spread)
        return known[1]

    def shape(self, columns: Sequence[ResultColumn], formats: tuple[int, ...]) -> Shape:
        """The last one is remembered: as a rule a statement has the same columns at each run."""
        known = self._shape
        if known is None or known.formats != formats or not _same(known.columns, columns):
            description = replies.row_description(columns, formats)
            known = Shape(columns, formats, description, RowEncoder(columns, formats))
            self._shape = known
        return known


def _same(known: Sequence[ResultColumn], columns: Sequence[ResultColumn]) -> bool:
    if known is columns:
        return True
    pairs = zip(known, columns, strict=False)
    return known == columns and all(one.origin == other.origin for one, other in pairs)


def wire_statement(prepared: PreparedStatement, declared: Sequence[int]) -> WireStatement:
    """OIDs that were declared stay as they are; the others are those of the inferred types."""
    oids = [wire_type(type).oid for type in prepared.parameter_types]
    for place, oid in enumerate(declared[: len(oids)]):
        if oid not in UNKNOWN_OIDS:
            oids[place] = oid
    return WireStatement(prepared, tuple(oids), border_of(prepared.text))


def hints_of(declared: Sequence[int]) -> DeclaredTypes:
    return tuple([hint_of(oid, number) for number, oid in enumerate(declared, start=1)])


@dataclass(slots=True, eq=False)
class Portal:
    """A bound statement. It runs when rows, or only its columns, are first asked for."""

    statement: WireStatement
    bound: Bind
    parameters: Sequence[object]
    result: Result | None = None
    encode: RowEncoder | None = None
    rows: PendingRows | None = None
    shape: Shape | None = None
    """How the client was told of the columns, or is to be told of the rows."""
    suspended: bool = False
    finished: bool = False

    @property
    def unfinished(self) -> Result | None:
        """The result, where something of it may still be to come."""
        result = self.result
        if result is None or (result.batches is None and result.stream is None):
            return None
        return result

    def shaped(self, columns: Sequence[ResultColumn]) -> Shape:
        """Raises SQLError where the formats that were asked for do not fit."""
        return self.statement.shape_of(columns, self.bound.result_formats)


def bind(message: Bind, statement: WireStatement) -> Portal:
    """The portal of a Bind. Raises SQLError where it does not fit its statement."""
    return Portal(statement, message, parameters_of(message, statement))


def parameters_of(message: Bind, statement: WireStatement) -> list[Datum]:
    """The values of a Bind. Raises SQLError where it does not fit its statement."""
    given = message.parameters
    if len(given) != len(statement.oids):
        shown = f'"{message.statement}"'
        raise SQLError(
            "08P01",
            f"bind message supplies {len(given)} parameters, but prepared statement {shown} "
            f"requires {len(statement.oids)}",
        )
    decoders = statement.decoders(message.parameter_formats)
    try:
        values = [
            None if raw is None else decode(raw)
            for decode, raw in zip(decoders, given, strict=True)
        ]
    except Exception:
        values = _decoded(message, statement)
    _check_formats(message.result_formats)
    return values


def _decoded(message: Bind, statement: WireStatement) -> list[Datum]:
    """The values, with an error that says which is wrong."""
    oids = statement.oids
    formats = spread_formats(message.parameter_formats, len(oids), "parameters")
    return [
        None if raw is None else decode_parameter(raw, oid, form, number)
        for number, (raw, oid, form) in enumerate(
            zip(message.parameters, oids, formats, strict=True), start=1
        )
    ]


def spread_formats(formats: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """One format for each of `count`: none means text, a single one is for all."""
    _check_formats(formats)
    if not formats:
        return (TEXT,) * count
    if len(formats) == 1:
        return (formats[0],) * count
    if len(formats) != count:
        raise SQLError(
            "08P01", f"bind message has {len(formats)} format codes, but there are {count} {what}"
        )
    return tuple(formats)


def _check_formats(formats: Sequence[int]) -> None:
    if formats and not _FORMATS.issuperset(formats):
        unknown = next(form for form in formats if form not in _FORMATS)
        raise SQLError("22023", f"unsupported format code: {unknown}")


class PendingRows:
    """The rows of a result that were not sent yet. Of one that comes in batches `more` takes the
    next one, when those that are `ready` have been sent."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.ready = _rows_of(result)

    async def more(self) -> bool:
        """Says whether there is another batch. Within `session.sending`, where there may be."""
        batches = self.result.batches
        table = None if batches is None else await batches.next()
        if table is None:
            return False
        self.ready = _rows_of(self.result.batch(table))
        return True


def _rows_of(result: Result) -> Iterator[Row]:
    """The rows that have come."""
    return iter(result.rows or ()) if result.table is None else _rows_in(result, result.table)


def _rows_in(result: Result, table: pa.Table) -> Iterator[Row]:
    """The rows of a table, taken out of Arrow a slice at a time."""
    for start in range(0, table.num_rows, SLICE_ROWS):
        yield from replace(result, table=table.slice(start, SLICE_ROWS)).fetch_rows()


class RowEncoder:
    """DataRows of rows whose columns have these types and formats, written column by column."""

    def __init__(self, columns: Sequence[ResultColumn], formats: Sequence[int]) -> None:
        self._encoders: list[Encoder] = [
            encoder(column.type, form) for column, form in zip(columns, formats, strict=True)
        ]

    def one(self, row: Row) -> bytes:
        pack = _LENGTH.pack
        cells: list[bytes] = []
        for encode, value in zip(self._encoders, row, strict=True):
            if value is None:
                cells.append(_NULL)
            else:
                raw = encode(value)
                cells += pack(len(raw)), raw
        body = b"".join(cells)
        return _ROW_HEAD.pack(b"D", len(body) + 6, len(row)) + body

    def many(self, rows: Sequence[Row]) -> list[bytes]:
        if len(rows) == 1:
            return [self.one(rows[0])]
        count, head = len(self._encoders), _ROW_HEAD.pack
        if not count:
            return [head(b"D", 6, 0)] * len(rows)
        columns = map(_cells, self._encoders, zip(*rows, strict=True))
        bodies = map(b"".join, zip(*columns, strict=True))
        return [head(b"D", len(body) + 6, count) + body for body in bodies]


class _Skipped(RowEncoder):
    """No DataRow for any row: a client moves over them."""

    def one(self, row: Row) -> bytes:
        return b""

    def many(self, rows: Sequence[Row]) -> list[bytes]:
        return []


SKIPPED = _Skipped((), ())


def _cells(encode: Encoder, values: Sequence[object]) -> list[bytes]:
    """Values of a column, each behind its length."""
    pack = _LENGTH.pack
    if None in values:
        given = (None if value is None else encode(value) for value in values)
        return [_NULL if raw is None else pack(len(raw)) + raw for raw in given]
    return [pack(len(raw)) + raw for raw in map(encode, values)]
