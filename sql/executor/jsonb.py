"""PostgreSQL's functions on documents and arrays, for DuckDB.

What DuckDB can say in its own words is a macro. What it would say otherwise than PostgreSQL does
(containment, concatenation, removal, the normal form as text) is a function in Python: those run
row by row, and hold the interpreter while they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import wraps
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.errors import SQLError
from ...catalog.interval import interval_of
from ...catalog.json_text import normal_json, read_json, write_json
from ..errors import ERROR_MARK

_MACROS = (
    "jsonb_typeof(j) AS CASE json_type(j) WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' "
    "WHEN 'VARCHAR' THEN 'string' WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' "
    "WHEN NULL THEN NULL ELSE if(j IS NULL, NULL, 'number') END",
    "jsonb_array_length(j) AS CASE WHEN json_type(j) = 'ARRAY' THEN json_array_length(j)::BIGINT "
    "WHEN j IS NOT NULL THEN error('cannot get array length of a non-array') END",
    """jsonb_member(k) AS '$."' || k || '"'""",
    "jsonb_element(i) AS if(i < 0, '$[#' || i || ']', '$[' || i || ']')",
    "jsonb_get_text(j, p) AS if(json_type(j, p) IN ('OBJECT', 'ARRAY'), "
    "jsonb_text(json_extract(j, p)), json_extract_string(j, p))",
    "jsonb_contains_key(j, k) AS coalesce(list_contains(jsonb_top_keys(j), k), false)",
    "jsonb_contains_any(j, k) AS coalesce(list_has_any(jsonb_top_keys(j), k), false)",
    "jsonb_contains_all(j, k) AS coalesce(list_has_all(jsonb_top_keys(j), k), false)",
    "jsonb_texts(j) AS list_transform(json_extract(j, '$[*]'), lambda e: jsonb_get_text(e, '$'))",
    "array_upper(l, d) AS if(d = 1, nullif(len(l), 0), NULL)",
    "array_lower(l, d) AS if(d = 1 AND len(l) > 0, 1::BIGINT, NULL)",
    "array_ndims(l) AS if(len(l) > 0, 1::BIGINT, NULL)",
    "array_remove(l, x) AS list_filter(l, lambda e: e IS DISTINCT FROM x)",
    "array_replace(l, x, y) AS "
    "list_transform(l, lambda e: CASE WHEN e IS NOT DISTINCT FROM x THEN y ELSE e END)",
    "array_join(a, b) AS CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a "
    "ELSE list_concat(a, b) END",
    "array_slice_of(l, low, high) AS CASE WHEN low IS NULL OR high IS NULL THEN NULL "
    "ELSE list_slice(l, greatest(low, 1), greatest(high, 0)) END",
    "array_text(l) AS '{' || array_to_string(list_transform(l, lambda e: CASE "
    "WHEN e IS NULL THEN 'NULL' "
    "WHEN e = '' OR upper(e) = 'NULL' OR regexp_matches(e, '[\\s{},\"\\\\]') "
    """THEN '"' || replace(replace(e, '\\', '\\\\'), '"', '\\"') || '"' """
    "ELSE e END), ',') || '}'",
    "interval_greatest(a, b) AS CASE WHEN b IS NULL OR a >= b THEN a ELSE b END",
    "interval_least(a, b) AS CASE WHEN b IS NULL OR a <= b THEN a ELSE b END",
    "array_position_from(l, x, f) AS list_extract(list_filter(range(greatest(f, 1), len(l) + 1), "
    "lambda i: l[i] IS NOT DISTINCT FROM x), 1)",
    "array_filled(x, n) AS CASE WHEN len(n) = 1 THEN list_transform(range(n[1]), lambda i: x) "
    "WHEN n IS NOT NULL THEN error('0A000|arrays of several dimensions are not supported') END",
    "trim_array(l, n) AS CASE WHEN n < 0 OR n > len(l) "
    "THEN error('2202E|number of elements to trim must be between 0 and ' || len(l)) "
    "ELSE list_slice(l, 1, len(l) - n) END",
    "array_dims(l) AS CASE WHEN len(l) > 0 THEN '[1:' || len(l) || ']' END",
    "any_of(m) AS CASE WHEN list_contains(m, true) THEN true WHEN m IS NULL "
    "OR len(list_filter(m, lambda e: e IS NULL)) > 0 THEN NULL ELSE false END",
    "all_of(m) AS CASE WHEN list_contains(m, false) THEN false WHEN m IS NULL "
    "OR len(list_filter(m, lambda e: e IS NULL)) > 0 THEN NULL ELSE true END",
    "array_positions(l, x) AS list_filter(range(1, len(l) + 1), "
    "lambda i: l[i] IS NOT DISTINCT FROM x)",
)


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    # Its stubs know no type that is written as SQL writes it.
    define: Any = connection.create_function
    for name, function, parameters, result in _FUNCTIONS:
        define(name, _told(function), list(parameters), result, null_handling="special")
    define("interval_text", _interval_texts, ["INTERVAL"], "VARCHAR", type="arrow")
    for macro in _MACROS:
        connection.execute(f"CREATE MACRO {macro}")


def _told(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, NULL where a parameter is, and with errors that pass through DuckDB."""

    @wraps(function)  # DuckDB counts its parameters
    def call(*values: Any) -> Any:
        if None in values:
            return None
        try:
            return function(*values)
        except SQLError as error:
            detail = f" ({error.detail.rstrip('.')})" if error.detail else ""
            raise ValueError(f"{ERROR_MARK}{error.sqlstate}: {error.message}{detail}") from None

    return call


def _interval_texts(column: Any) -> Any:
    values = [interval_of(value) for value in column.to_pylist()]
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def contains(whole: str, part: str) -> bool:
    return _contains(read_json(whole), read_json(part), top=True)


def _contains(whole: Any, part: Any, *, top: bool = False) -> bool:
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and _contains(whole[name], part[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        return all(any(_contains(item, wanted) for item in whole) for wanted in part)
    if top and isinstance(whole, list) and not isinstance(part, dict):
        return any(_equal(item, part) for item in whole)
    return _equal(whole, part)


def _equal(first: Any, second: Any) -> bool:
    """Truths are no numbers, as they are in Python."""
    if isinstance(first, bool) != isinstance(second, bool):
        return False
    return bool(first == second)


def concatenated(first: str, second: str) -> str:
    head, tail = read_json(first), read_json(second)
    if isinstance(head, dict) and isinstance(tail, dict):
        return write_json({**head, **tail})
    lists = isinstance(head, list) or isinstance(tail, list)
    if not lists and isinstance(head, dict) != isinstance(tail, dict):
        raise SQLError("22023", "invalid concatenation of jsonb objects")
    return write_json(_as_list(head) + _as_list(tail))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def without_key(document: str, key: str) -> str:
    return without_keys(document, [key])


def without_keys(document: str, keys: Sequence[str | None]) -> str:
    value = read_json(document)
    match value:
        case dict():
            return write_json({name: item for name, item in value.items() if name not in keys})
        case list():
            return write_json([item for item in value if not _is_text_in(item, keys)])
    raise SQLError("22023", "cannot delete from scalar")


def _is_text_in(item: Any, keys: Sequence[str | None]) -> bool:
    return isinstance(item, str) and item in keys


def without_index(document: str, index: int) -> str:
    value = read_json(document)
    if isinstance(value, dict):
        raise SQLError("22023", "cannot delete from object using integer index")
    if not isinstance(value, list):
        raise SQLError("22023", "cannot delete from scalar")
    if -len(value) <= index < len(value):
        del value[index]
    return write_json(value)


def at_path(document: str, path: Sequence[str | None]) -> str | None:
    found, value = _walk(read_json(document), path)
    return write_json(value) if found else None


def text_at_path(document: str, path: Sequence[str | None]) -> str | None:
    found, value = _walk(read_json(document), path)
    if not found or value is None:
        return None
    return value if isinstance(value, str) else write_json(value)


def _walk(value: Any, path: Sequence[str | None]) -> tuple[bool, Any]:
    for step in path:
        place = _place(value, step)
        if place is None:
            return False, None
        value = value[place]
    return True, value


def _place(value: Any, step: str | None) -> Any:
    """The key or the index that a step of a path leads to; None where there is nothing."""
    if isinstance(value, dict):
        return step if step in value else None
    index = _index(step) if isinstance(value, list) else None
    return None if index is None or not -len(value) <= index < len(value) else index


def _index(step: str | None) -> int | None:
    try:
        return None if step is None else int(step)
    except ValueError:
        return None


def without_path(document: str, path: Sequence[str | None]) -> str:
    value = read_json(document)
    if not isinstance(value, dict | list):
        raise SQLError("22023", "cannot delete path in scalar")
    found, inner = _walk(value, path[:-1])
    if path and found and (place := _place(inner, path[-1])) is not None:
        del inner[place]
    return write_json(value)


def with_value(document: str, path: Sequence[str | None], new: str, missing: bool = True) -> str:
    """jsonb_set: what stands at the path is replaced, or made if its parent is there."""
    value = read_json(document)
    if not isinstance(value, dict | list):
        raise SQLError("22023", "cannot set path in scalar")
    found, inner = _walk(value, path[:-1])
    if path and found and isinstance(inner, dict | list):
        _set(inner, path[-1], read_json(new), missing)
    return write_json(value)


def _set(inner: Any, step: str | None, new: Any, missing: bool) -> None:
    place = _place(inner, step)
    if place is not None:
        inner[place] = new
    elif missing and isinstance(inner, dict) and step is not None:
        inner[step] = new
    elif missing and isinstance(inner, list) and (index := _index(step)) is not None:
        inner.insert(0 if index < 0 else len(inner), new)


def without_nulls(document: str) -> str:
    return write_json(_stripped(read_json(document)))


def _stripped(value: Any) -> Any:
    match value:
        case dict():
            return {name: _stripped(item) for name, item in value.items() if item is not None}
        case list():
            return [_stripped(item) for item in value]
    return value


def pretty(document: str) -> str:
    return _indented(read_json(document), "\n")


def _indented(value: Any, line: str) -> str:
    inner = line + "    "
    match value:
        case dict() if value:
            parts = [f"{write_json(name)}: {_indented(value[name], inner)}" for name in value]
            return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
        case list() if value:
            return f"[{inner}{f',{inner}'.join(_indented(item, inner) for item in value)}{line}]"
        case dict() | list():
            opened, closed = "{}" if isinstance(value, dict) else "[]"
            return f"{opened}{line}{closed}"
    return write_json(value)


def integer_of(document: str) -> int:
    """A number cast to an integer: halves are rounded away from zero."""
    number = _scalar(document, "bigint", Decimal)
    whole = int(number.to_integral_value(ROUND_HALF_UP))
    if not -(1 << 63) <= whole < 1 << 63:
        raise SQLError("22003", "bigint out of range")
    return whole


def number_of(document: str) -> str:
    """A number's digits, for a cast."""
    return f"{_scalar(document, 'numeric', Decimal):f}"


def truth_of(document: str) -> bool:
    return bool(_scalar(document, "boolean", bool))


def _scalar(document: str, target: str, kind: type) -> Any:
    value = read_json(document)
    if kind is Decimal and isinstance(value, int | float) and not isinstance(value, bool):
        value = Decimal(str(value))
    if not isinstance(value, kind):
        raise SQLError("22023", f"cannot cast jsonb {_kind_of(value)} to type {target}")
    return value


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "numeric"


def top_keys(document: str) -> list[str]:
    """What `?` looks among: names of members, texts of an array, a text itself."""
    value = read_json(document)
    match value:
        case dict():
            return list(value)
        case list():
            return [item for item in value if isinstance(item, str)]
    return [value] if isinstance(value, str) else []


_FUNCTIONS: tuple[tuple[str, Callable[..., Any], Sequence[str], str], ...] = (
    ("jsonb_in", normal_json, ["VARCHAR"], "JSON"),
    ("jsonb_text", normal_json, ["JSON"], "VARCHAR"),
    ("jsonb_contains", contains, ["JSON", "JSON"], "BOOLEAN"),
    ("jsonb_concat", concatenated, ["JSON", "JSON"], "JSON"),
    ("jsonb_delete_key", without_key, ["JSON", "VARCHAR"], "JSON"),
    ("jsonb_delete_keys", without_keys, ["JSON", "VARCHAR[]"], "JSON"),
    ("jsonb_delete_index", without_index, ["JSON", "BIGINT"], "JSON"),
    ("jsonb_delete_path", without_path, ["JSON", "VARCHAR[]"], "JSON"),
    ("jsonb_at_path", at_path, ["JSON", "VARCHAR[]"], "JSON"),
    ("jsonb_text_at_path", text_at_path, ["JSON", "VARCHAR[]"], "VARCHAR"),
    ("jsonb_set", with_value, ["JSON", "VARCHAR[]", "JSON", "BOOLEAN"], "JSON"),
    ("jsonb_strip_nulls", without_nulls, ["JSON"], "JSON"),
    ("jsonb_pretty", pretty, ["JSON"], "VARCHAR"),
    ("jsonb_integer", integer_of, ["JSON"], "BIGINT"),
    ("jsonb_number", number_of, ["JSON"], "VARCHAR"),
    ("jsonb_truth", truth_of, ["JSON"], "BOOLEAN"),
    ("jsonb_top_keys", top_keys, ["JSON"], "VARCHAR[]"),
)
