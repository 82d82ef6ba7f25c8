"""Documents' functions as DuckDB has them: each takes whole columns, and NULL makes NULL.

Their parameters are of any type, so that each sees what it is really given: a document is taken as
it is, a text is read as one and brought to its normal form, and nothing is converted on the way.

`jsonb_at_path` runs in Python, some 1 µs for a row; the macros over it let DuckDB answer where that
cannot lose anything: of members that are texts, truths and integers it gives the very digits, of
others it gives only their type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from math import isfinite
from typing import Any

import duckdb
import pyarrow as pa

from ....catalog.values.column_types import STRING, array_of, coerce, shortest_float4
from ....catalog.values.errors import SQLError
from ....catalog.values.interval import interval_of
from ....catalog.values.json_text import normal_json, write_json
from ....catalog.values.session_zone import zone_of
from ..evaluator_functions import told
from . import operators, order

# Values of any type as documents: what to_jsonb makes of a column.
#
#     4.50                     4.50                      every digit
#     1e20::FLOAT8             100000000000000000000     NaN and infinities are texts
#     TIMESTAMPTZ              "2024-01-02T03:04:05.5+00:00", in the session's zone
#     '\x01ff'::BYTES          "\\x01ff"
#     ARRAY['a', NULL]         ["a", null]
#     anything else            the text that a cast gives, in quotes
#
# The type is the one that the column has in Arrow, so it is never a guess.


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
    (pa.types.is_decimal, "{:f}".format),
    (pa.types.is_float32, lambda value: _float(shortest_float4(value))),
    (pa.types.is_floating, _float),
    (pa.types.is_string, write_json),
    (pa.types.is_binary, lambda value: f'"\\\\x{value.hex()}"'),
    (pa.types.is_date, lambda value: f'"{value.isoformat()}"'),
    (pa.types.is_time, lambda value: f'"{_moment(value.isoformat())}"'),
    (pa.types.is_interval, lambda value: write_json(str(interval_of(value)))),
)


def _lists(array: Any) -> Documents:
    items = [operators.NULL if item is None else item for item in documents_of(array.values)]
    offsets, present = array.offsets.to_pylist(), array.is_valid().to_pylist()
    return [
        operators.array_of(items[offsets[place] : offsets[place + 1]]) if there else None
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


# Functions over columns.

_TEXTS = array_of(STRING)

Reader = Callable[[Any], list[Any]]


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    # Its stubs know no function over Arrow's columns.
    define: Any = connection.create_function
    for name, function, readers, result in _FUNCTIONS:
        call = _over_columns(function, [_READERS[letter] for letter in readers], result)
        define(name, call, None, result, type="arrow", null_handling="special")
    for name, (over_columns, result) in _OVER_COLUMNS.items():
        define(name, told(over_columns), None, result, type="arrow", null_handling="special")
    for macro in _MACROS:
        connection.execute(f"CREATE MACRO {macro}")


def _over_columns(
    function: Callable[..., Any], readers: Sequence[Reader], result: str
) -> Callable[..., Any]:
    def call(*columns: Any) -> Any:
        if not len(columns) <= len(readers):
            raise SQLError("42883", "the function does not take so many arguments")
        values = [read(column) for read, column in zip(readers, columns, strict=False)]
        found = [None if None in row else function(*row) for row in zip(*values, strict=True)]
        return _column(result, found)

    return told(call)


def _column(result: str, values: list[Any]) -> Any:
    if result == "JSON":
        return pa.ExtensionArray.from_storage(pa.json_(), pa.array(values, pa.string()))
    return pa.array(values, _RESULTS[result])


def _texts(column: Any) -> list[Any]:
    """A column of arrays of texts, which a text is one of in braces."""
    values = column.to_pylist()
    if not pa.types.is_string(column.type):
        return list(values)
    return [None if value is None else coerce(_TEXTS, value) for value in values]


_READERS: dict[str, Reader] = {
    "d": documents_in,
    "t": lambda column: list(column.to_pylist()),
    "s": _texts,
}
"""By the letters of `_FUNCTIONS`: documents, texts and numbers and truths, sets of texts."""

_RESULTS: dict[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "BIGINT": pa.int64(),
    "JSON[]": pa.list_(pa.string()),
    "VARCHAR[]": pa.list_(pa.string()),
}


_FUNCTIONS: tuple[tuple[str, Callable[..., Any], str, str], ...] = (
    ("jsonb_in", str, "d", "JSON"),
    ("jsonb_element", operators.element, "dt", "JSON"),
    ("jsonb_element_text", operators.element_text, "dt", "VARCHAR"),
    ("jsonb_at_path", operators.at_path, "ds", "JSON"),
    ("jsonb_text_at_path", operators.text_at_path, "ds", "VARCHAR"),
    ("jsonb_delete_path", operators.without_path, "ds", "JSON"),
    ("jsonb_set", operators.with_value, "dsdt", "JSON"),
    ("jsonb_concat", operators.concatenated, "dd", "JSON"),
    ("jsonb_delete", operators.without, "dt", "JSON"),
    ("jsonb_contains", operators.contains, "dd", "BOOLEAN"),
    ("jsonb_contained", operators.contained, "dd", "BOOLEAN"),
    ("jsonb_exists", operators.has_key, "dt", "BOOLEAN"),
    ("jsonb_exists_any", operators.has_any_key, "ds", "BOOLEAN"),
    ("jsonb_exists_all", operators.has_all_keys, "ds", "BOOLEAN"),
    ("jsonb_typeof", operators.type_of, "d", "VARCHAR"),
    ("jsonb_array_length", operators.array_length, "d", "BIGINT"),
    ("jsonb_elements", operators.elements, "d", "JSON[]"),
    ("jsonb_element_texts", operators.element_texts, "d", "VARCHAR[]"),
    ("jsonb_same_text", order.same, "d", "VARCHAR"),
    ("jsonb_sort_key", order.sort_key, "d", "BLOB"),
)


def _built_object(*columns: Any) -> Any:
    """jsonb_build_object: names and values by turns."""
    names = [names_of(column) for column in columns[::2]]
    for place, found in enumerate(names):
        if None in found:
            raise SQLError("22023", f"argument {2 * place + 1}: key must not be null")
    values = [_whole(column) for column in columns[1::2]]
    rows = zip(zip(*names, strict=True), zip(*values, strict=True), strict=True)
    return _column(
        "JSON",
        [operators.object_of(dict(zip(of, row, strict=True))) for of, row in rows],
    )


def _built_array(*columns: Any) -> Any:
    """jsonb_build_array."""
    return _column("JSON", list(map(operators.array_of, zip(*map(_whole, columns), strict=True))))


def _whole(column: Any) -> list[str]:
    return [operators.NULL if item is None else item for item in documents_of(column)]


_OVER_COLUMNS: dict[str, tuple[Callable[..., Any], str]] = {
    "jsonb_of": (lambda column: _column("JSON", documents_of(column)), "JSON"),
    "jsonb_built_object": (_built_object, "JSON"),
    "jsonb_built_array": (_built_array, "JSON"),
}

_EXACT = "'UBIGINT', 'BIGINT', 'BOOLEAN', 'NULL'"
"""Results of json_type for values that json_extract writes digit for digit."""

# Escapes of control characters are the one thing that DuckDB writes otherwise in a text.
_MEMBER = f"""CASE
    WHEN json_type(j, p) IN ({_EXACT}) THEN json_extract(j, p)
    WHEN json_type(j, p) = 'VARCHAR' AND NOT contains(json_extract(j, p)::VARCHAR, '\\u')
    THEN json_extract(j, p)"""
_MEMBER_TEXT = f"""CASE
    WHEN json_type(j, p) IN ('VARCHAR', {_EXACT}) THEN json_extract_string(j, p)"""

_MACROS = (
    f"jsonb_member(j, p, s) AS {_MEMBER} WHEN json_type(j, p) IS NOT NULL "
    "THEN jsonb_at_path(j, s) END",
    f"jsonb_member_text(j, p, s) AS {_MEMBER_TEXT} WHEN json_type(j, p) IS NOT NULL "
    "THEN jsonb_text_at_path(j, s) END",
    f"jsonb_same(j) AS CASE WHEN regexp_matches(j::VARCHAR, '{order.ZEROS}') "
    "THEN jsonb_same_text(j) ELSE j::VARCHAR END",
)
