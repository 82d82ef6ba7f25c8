r"""Values as JSON texts, a column at a time.

The *texts* of a column are the JSON of its values, in one of two forms: a list of bytes where the
values came as Python objects, an Arrow array of binary where they came as one. A text that is the
same for all rows is plain bytes. `joined` puts columns of texts together, row by row:

    joined([b'{"id":', [b'1', b'2'], b'}'])     [b'{"id":1}', b'{"id":2}']

Both forms give the same bytes for the same values:

    DECIMAL        a number with all its digits                          1.50
    FLOAT4, FLOAT8 a number; "NaN", "Infinity" and "-Infinity" as text   0.5
    BYTES          text, hexadecimal                                     "\\x00ff"
    DATE           text                                                  "2020-01-01"
    TIMESTAMP      text without a zone, fraction as short as it can be   "2020-01-01T00:00:00.5"
    TIMESTAMPTZ    the same in UTC                                       "2020-01-01T00:00:00Z"
    TIME           text, fraction as short as it can be                  "10:00:00.5"
    INTERVAL       text, in PostgreSQL's style                           "1 mon 2 days 03:00:00"
    UUID           text                                                  "6f0d1c5e-…"
    JSONB          the document itself                                   {"a": [1, 2]}
    ARRAY          an array of what its elements are                     [1, null]

Python objects are encoded by `msgspec.json`, a line for each value of the column. Arrow columns of
the common types are cast to text by Arrow, which makes no Python object of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, time
from math import isfinite, isnan
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ...catalog.values.arrow_columns import AnyArray, column_datums
from ...catalog.values.column_types import ColumnType, Datum, shortest_float4
from ...catalog.values.interval import Interval
from ...catalog.values.type_kinds import INTEGERS, TEXTS, TypeKind

Texts: TypeAlias = "bytes | list[bytes] | AnyArray"
"""The texts of a column: one for all rows, or one for each."""

Lines: TypeAlias = "bytes | pa.Buffer"
"""Texts with a line break behind each."""

Parts: TypeAlias = "tuple[Texts, ...]"
"""Parts whose concatenation, row by row, are the texts."""

NULL = b"null"

_encode_lines = msgspec.json.Encoder(decimal_format="number").encode_lines
_EMPTY = pa.scalar(b"", pa.binary())
_CLEAN = bytes(set(range(0x20, 0x100)) - set(b'"\\'))
"""Bytes that stand for themselves in a JSON string."""


def joined(parts: Sequence[Texts], count: int) -> list[bytes] | AnyArray:
    """The texts of `count` rows, each the concatenation of its parts: an Arrow array where a part
    is one, with NULLs joined as `null`."""
    if any(isinstance(part, pa.Array) for part in parts):
        return _arrow_join(
            [
                pa.array(part, pa.binary()) if isinstance(part, list) else part
                for part in _merged_constants(parts)
            ],
            null_handling="replace",
        )
    columns = [part for part in parts if isinstance(part, list)]
    if not columns:
        return [b"".join(part for part in parts if isinstance(part, bytes))] * count
    template = b"".join(
        part.replace(b"%", b"%%") if isinstance(part, bytes) else b"%b" for part in parts
    )
    return list(map(template.__mod__, zip(*columns, strict=True)))


def _merged_constants(parts: Sequence[Texts]) -> list[Texts]:
    """The same parts, neighbouring constants as one."""
    merged: list[Texts] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, bytes) and isinstance(last, bytes):
            merged[-1] = last + part
        else:
            merged.append(part)
    return merged


def as_list(texts: list[bytes] | AnyArray) -> list[bytes]:
    """The texts as Python bytes."""
    if isinstance(texts, list):
        return texts
    values: list[Any] = texts.to_pylist()
    return values


def as_lines(parts: Sequence[Texts], count: int) -> Lines:
    """The texts of `count` rows as `joined` makes them, one a line, as one piece of memory: no row
    of an Arrow array becomes a Python object."""
    texts = joined((*parts, b"\n"), count)
    if isinstance(texts, list):
        return b"".join(texts)
    _, bounds, data = texts.buffers()
    assert bounds is not None and data is not None, texts.type
    ends = memoryview(bounds).cast("i")
    first, last = ends[texts.offset], ends[texts.offset + len(texts)]
    return data.slice(first, last - first)


class ColumnTexts:
    """Writes the values of columns of one type as JSON."""

    def __init__(
        self, type: ColumnType, *, key: bool = False, null_as_object: bool = False
    ) -> None:
        """A `key` shows an INTERVAL by its length, as the store's keys hold it. With
        `null_as_object` the JSON document null is told apart from NULL."""
        self._type = type
        self._printer = _printer(type)
        self._arrow = _arrow_writer(type)
        if key and type.kind is TypeKind.INTERVAL:
            self._printer, self._arrow = _interval_length, None
        if null_as_object and type.kind is TypeKind.JSONB:
            self._printer, self._arrow = _document_or_object, None

    def of_values(self, values: Sequence[Datum]) -> list[bytes]:
        """The texts of datums."""
        if self._printer is not None:
            printer = self._printer
            return _lines([None if value is None else printer(value) for value in values])
        return _lines(values)

    def of_array(self, array: AnyArray) -> Parts:
        """The texts of an Arrow column, in parts that are to be joined. NULLs may be NULL in a
        part that is alone."""
        texts = None if self._arrow is None else self._arrow(array)
        if texts is not None:
            return texts
        if self._type.kind is TypeKind.FLOAT8 and pc.all(pc.is_finite(array)).as_py():
            lines = pa.array([_encode_lines(array.to_pylist())[:-1]], pa.binary())
            return (pc.split_pattern(lines, "\n").flatten(),)
        return (self.of_values(column_datums(self._type, array)),)


def _lines(values: Sequence[object]) -> list[bytes]:
    """The texts of what msgspec prints as we want it."""
    lines = _encode_lines(values).split(b"\n")
    lines.pop()  # what follows the last line's end
    return lines


# Python objects

Printer = Callable[[Datum], object]


def _printer(type: ColumnType) -> Printer | None:
    """Makes what msgspec prints as we want it of a value; None where the value is that already."""
    if type.element is None:
        return _PRINTERS.get(type.kind)
    element = _printer(type.element)
    return None if element is None else _array_printer(element)


def _array_printer(element: Printer) -> Printer:
    def write(items: Datum) -> object:
        assert isinstance(items, list), items
        return [None if item is None else element(item) for item in items]

    return write


def _float(value: Datum) -> object:
    assert isinstance(value, float), value
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float4(value: Datum) -> object:
    assert isinstance(value, float), value
    return shortest_float4(value) if isfinite(value) else _float(value)


def _bytes(value: Datum) -> str:
    assert isinstance(value, bytes), value
    return "\\x" + value.hex()


def _timestamp(value: Datum) -> str:
    assert isinstance(value, datetime), value
    text = value.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if value.microsecond else text


def _timestamptz(value: Datum) -> str:
    return _timestamp(value) + "Z"


def _time(value: Datum) -> str:
    assert isinstance(value, time), value
    text = value.isoformat()
    return text.rstrip("0") if value.microsecond else text


def _interval_length(value: Datum) -> str:
    assert isinstance(value, Interval), value
    return str(Interval.of_length(value.length))


def _document(value: Datum) -> msgspec.Raw:
    assert isinstance(value, str), value
    return msgspec.Raw(value.encode())


def _document_or_object(value: Datum) -> msgspec.Raw:
    assert isinstance(value, str), value
    return msgspec.Raw(b'{"__crdb_json_null__": true}' if value == "null" else value.encode())


_PRINTERS: dict[TypeKind, Printer] = {
    TypeKind.FLOAT4: _float4,
    TypeKind.FLOAT8: _float,
    TypeKind.BYTES: _bytes,
    TypeKind.TIMESTAMP: _timestamp,
    TypeKind.TIMESTAMPTZ: _timestamptz,
    TypeKind.TIME: _time,
    TypeKind.INTERVAL: str,
    TypeKind.JSONB: _document,
}

# Arrow columns

ArrowWriter: TypeAlias = "Callable[[AnyArray], Parts | None]"
"""Writes a column, or returns None where the column holds what Arrow would not write right."""


def _arrow_writer(type: ColumnType) -> ArrowWriter | None:
    if type.kind is TypeKind.BOOL or type.kind in INTEGERS:
        return _arrow_plain
    if type.kind in TEXTS or type.kind is TypeKind.ENUM:
        return _arrow_strings
    return _ARROW_WRITERS.get(type.kind)


def _arrow_plain(array: AnyArray) -> Parts:
    return (pc.cast(pc.cast(array, pa.string()), pa.binary()),)


def _arrow_join(parts: Sequence[AnyArray | bytes], *, null_handling: str = "emit_null") -> AnyArray:
    """Arrow's concatenation, row by row. The stubs know it for arrays alone, or for scalars."""
    join: Any = pc.binary_join_element_wise
    given = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    found: AnyArray = join(*given, _EMPTY, null_handling=null_handling, null_replacement="null")
    return found


def _quoted(texts: AnyArray, *, end: bytes = b'"') -> Parts:
    """Text in quotes; NULL stays NULL."""
    texts = pc.cast(texts, pa.binary())
    if not texts.null_count:
        return (b'"', texts, end)
    return (_arrow_join([b'"', texts, end]),)


def _arrow_strings(array: AnyArray) -> Parts | None:
    _, _, data = array.buffers()
    if data is not None and bytes(data).translate(None, _CLEAN):
        return None  # something may have to be escaped
    return _quoted(array)


def _short_fraction(texts: AnyArray) -> AnyArray:
    """Six digits behind the point as few as they can be."""
    found: AnyArray = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    return found


def _arrow_timestamps(array: AnyArray, end: bytes = b'"') -> Parts:
    texts = pc.cast(pc.cast(array, pa.timestamp("us")), pa.string())
    return _quoted(pc.binary_replace_slice(_short_fraction(texts), 10, 11, "T"), end=end)


def _arrow_timestamptz(array: AnyArray) -> Parts:
    return _arrow_timestamps(array, b'Z"')


def _arrow_times(array: AnyArray) -> Parts:
    return _quoted(_short_fraction(pc.cast(array, pa.string())))


def _arrow_dates(array: AnyArray) -> Parts:
    return _quoted(pc.cast(array, pa.string()))


def _arrow_documents(array: AnyArray) -> Parts:
    assert isinstance(array, pa.ExtensionArray), array.type
    return (pc.cast(array.storage, pa.binary()),)


_ARROW_WRITERS: dict[TypeKind, ArrowWriter] = {
    TypeKind.DECIMAL: _arrow_plain,
    TypeKind.DATE: _arrow_dates,
    TypeKind.TIMESTAMP: _arrow_timestamps,
    TypeKind.TIMESTAMPTZ: _arrow_timestamptz,
    TypeKind.TIME: _arrow_times,
    TypeKind.JSONB: _arrow_documents,
}
