"""Values of any type as documents: what to_jsonb makes of a column.

    4.50                     4.50                      every digit
    1e20::FLOAT8             100000000000000000000     NaN and infinities are texts
    TIMESTAMPTZ              "2024-01-02T03:04:05.5+00:00", in the session's zone
    '\\x01ff'::BYTES         "\\\\x01ff"
    ARRAY['a', NULL]         ["a", null]
    anything else            the text that a cast gives, in quotes

The type is the one that the column has in Arrow, so it is never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa

from ....catalog.values.column_types import shortest_float4
from ....catalog.values.errors import SQLError
from ....catalog.values.interval import interval_of
from ....catalog.values.json_text import normal_json, write_json
from ....catalog.values.session_zone import zone_of
from .slices import NULL, array_of

Documents = list[str | None]
_HUGE = ("hugeint", "uhugeint")


def documents_in(column: Any) -> Documents:
    """Reads a column as documents: JSON values are documents, and texts are parsed."""
    type = column.type
    if isinstance(type, pa.JsonType):
        return list(column.cast(pa.string()).to_pylist())
    if pa.types.is_null(type):
        return [None] * len(column)
    if pa.types.is_string(type):
        return [None if text is None else normal_json(text) for text in column.to_pylist()]
    raise SQLError(
        "42883", "the function takes a document", hint="to_jsonb() makes one of a value."
    )


def documents_of(column: Any) -> Documents:
    """A column of any type as documents. NULL stays NULL."""
    array: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    type = array.type
    if isinstance(type, pa.JsonType):
        return list(array.storage.to_pylist())
    if isinstance(type, pa.Bool8Type):
        return [value if value is None else write_json(bool(value))
                for value in array.storage.to_pylist()]  # fmt: skip
    if pa.types.is_list(type):
        return _lists(array)
    if pa.types.is_dictionary(type):
        array = array.dictionary_decode()
    elif pa.types.is_timestamp(type):
        moments: Any = array.cast(pa.timestamp("us")).to_pylist()
        zone = None if type.tz is None else zone_of(type.tz)
        return [moment if moment is None else _written(moment, zone) for moment in moments]
    elif isinstance(type, pa.OpaqueType) and type.type_name in _HUGE:
        signed = type.type_name == "hugeint"
        return [v if v is None else str(int.from_bytes(v, "little", signed=signed))
                for v in array.storage.to_pylist()]  # fmt: skip
    write = _writer(array.type)
    return [None if value is None else write(value) for value in array.to_pylist()]


def _writer(type: pa.DataType) -> Callable[[Any], str]:
    for known, write in _WRITERS:
        if known(type):
            return write
    if isinstance(type, pa.UuidType):
        return lambda value: f'"{value}"'
    raise SQLError("42804", f"could not determine a document for a value of type {type}")


def _number(value: Decimal) -> str:
    return format(value, "f")


def _float(value: float) -> str:
    if isfinite(value):
        return write_json(value).removesuffix(".0")  # as a float is written
    return '"NaN"' if value != value else f'"{"-" if value < 0 else ""}Infinity"'


def _written(moment: datetime, zone: tzinfo | None) -> str:
    """A moment on the clock of its zone, which is the session's, and how far that is from UTC."""
    if zone is None:
        return f'"{_moment(moment.isoformat())}"'
    try:
        local = moment.replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:
        raise SQLError("22008", f'timestamp out of range: "{moment.isoformat()}"') from None
    clock = local.replace(tzinfo=None).isoformat()
    return f'"{_moment(clock)}{local.isoformat()[len(clock) :]}"'


def _moment(text: str) -> str:
    """Without the zeros that Python writes behind a point."""
    return text.rstrip("0") if "." in text else text


_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]], ...] = (
    (pa.types.is_null, write_json),
    (pa.types.is_boolean, write_json),
    (pa.types.is_integer, str),
    (pa.types.is_decimal, _number),
    (pa.types.is_float32, lambda value: _float(shortest_float4(value))),
    (pa.types.is_floating, _float),
    (pa.types.is_string, write_json),
    (pa.types.is_binary, lambda value: f'"\\\\x{value.hex()}"'),
    (pa.types.is_date, lambda value: f'"{value.isoformat()}"'),
    (pa.types.is_time, lambda value: f'"{_moment(value.isoformat())}"'),
    (pa.types.is_interval, lambda value: write_json(str(interval_of(value)))),
)


def _lists(array: Any) -> Documents:
    items = [NULL if item is None else item for item in documents_of(array.values)]
    offsets, present = array.offsets.to_pylist(), array.is_valid().to_pylist()
    return [
        array_of(items[offsets[place] : offsets[place + 1]]) if there else None
        for place, there in enumerate(present)
    ]


def names_of(column: Any) -> list[str | None]:
    """A column as names of members: texts as they are, other scalars by their text."""
    type = column.type
    if isinstance(type, pa.JsonType) or pa.types.is_list(type) or pa.types.is_struct(type):
        raise SQLError("22023", "key value must be scalar, not array, composite, or json")
    if pa.types.is_string(type) or pa.types.is_dictionary(type):
        return list(column.to_pylist())
    return [None if text is None else text.strip('"') for text in documents_of(column)]
