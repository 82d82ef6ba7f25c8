"""Documents' functions as DuckDB has them: each takes whole columns, and NULL makes NULL.

Their parameters are of any type, so that each sees what it is really given: a document is taken as
it is, a text is read as one and brought to its normal form, and nothing is converted on the way.

`jsonb_at_path` runs in Python, some 1 µs for a row; the macros over it let DuckDB answer where that
cannot lose anything: of members that are texts, truths and integers it gives the very digits, of
others it gives only their type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from ....catalog.values.column_types import STRING, array_of, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.json_text import normal_json
from ..evaluator_functions import Reader, define, values_of
from . import operators, order

_TEXTS = array_of(STRING)


def documents_in(column: Any) -> list[str | None]:
    """Reads a column as documents: JSON values are documents, and texts are parsed."""
    type = column.type
    if isinstance(type, pa.JsonType):
        return list(column.cast(pa.string()).to_pylist())
    if pa.types.is_null(type) or pa.types.is_string(type):
        return [None if text is None else normal_json(text) for text in column.to_pylist()]
    raise SQLError(
        "42883", "the function takes a document", hint="to_jsonb() makes one of a value."
    )


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    for name, function, letters, result in _FUNCTIONS:
        readers = [_READERS[letter] for letter in letters]
        define(connection, name, function, (result, _RESULTS[result]), readers=readers)
    for macro in _MACROS:
        connection.execute(f"CREATE MACRO {macro}")


def _texts(column: Any) -> list[Any]:
    """A column of arrays of texts, which a text is one of in braces."""
    values = column.to_pylist()
    if not pa.types.is_string(column.type):
        return list(values)
    return [None if value is None else coerce(_TEXTS, value) for value in values]


_READERS: dict[str, Reader] = {"d": documents_in, "t": values_of, "s": _texts}
"""By the letters of `_FUNCTIONS`: documents, texts and numbers and truths, sets of texts."""

_RESULTS: dict[str, pa.DataType] = {
    "JSON": pa.json_(),
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
    ("jsonb_sort_key", order.sort_key, "d", "BLOB"),
)


_EXACT = "'UBIGINT', 'BIGINT', 'BOOLEAN', 'NULL'"
"""Results of json_type for values that json_extract writes digit for digit."""

# Escapes of control characters are the one thing that DuckDB writes otherwise in a text.
_MEMBER = f"""CASE
    WHEN json_type(j, p) IN ({_EXACT}) THEN json_extract(j, p)
    WHEN json_type(j, p) = 'VARCHAR' AND NOT contains(json_extract(j, p)::VARCHAR, '\\u')
    THEN json_extract(j, p)"""
_MEMBER_TEXT = f"""CASE
    WHEN json_type(j, p) IN ('VARCHAR', {_EXACT}) THEN json_extract_string(j, p)"""

_FRACTION = r'("(?:[^"\\]|\\.)*")|(\.[0-9]*[1-9])0+([^0-9]|$)|\.0+([^0-9]|$)'
"""A text, which stays, or a fraction with zeros at its end, which two equal documents may have."""
_MACROS = (
    "document_text(t) AS CAST(to_json(t) AS VARCHAR)",
    "document_moment(t) AS document_text("
    r"regexp_replace(replace(t, ' ', 'T'), '([+-]\d\d)$', '\1:00'))",
    # The text of DuckDB has no seconds of an offset, as zones had before 1900.
    "document_instant(x) AS list_transform([x], lambda m: document_moment(m::VARCHAR || if("
    "date_part('timezone', m) % 60 = 0, '', "
    "printf(':%02d', abs(date_part('timezone', m)) % 60))))[1]",
    r"""document_digits(t) AS regexp_replace(document_text(t), '^"([-+.e0-9]+)"$', '\1')""",
    r"""document_name(t) AS coalesce(regexp_replace(t, '^([^"].*)$', '"\1"'),
        error('22023|key must not be null'))""",
    "document_object(l) AS '{' || array_to_string(l, ', ') || '}'",
    "document_array(l) AS '[' || array_to_string(l, ', ') || ']'",
    "document_unknown(x) AS if(starts_with(typeof(x), 'DECIMAL'), x::VARCHAR, to_json(x)::VARCHAR)",
    f"jsonb_member(j, p, s) AS {_MEMBER} WHEN json_type(j, p) IS NOT NULL "
    "THEN jsonb_at_path(j, s) END",
    f"jsonb_member_text(j, p, s) AS {_MEMBER_TEXT} WHEN json_type(j, p) IS NOT NULL "
    "THEN jsonb_text_at_path(j, s) END",
    f"document_trimmed(j) AS regexp_replace(j::VARCHAR, '{_FRACTION}', '\\1\\2\\3\\4', 'g')",
    r"document_same(j) AS CASE WHEN regexp_matches(j::VARCHAR, '\.[0-9]*0([^0-9]|$)') "
    "THEN document_trimmed(j) ELSE j::VARCHAR END",
)
