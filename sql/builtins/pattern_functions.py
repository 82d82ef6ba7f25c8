"""PostgreSQL's functions on regular expressions, for DuckDB: whatever a pattern is, row by row.

What a constant pattern lets DuckDB's own functions do is theirs (`sql.lower.patterns`), and the
rest is for these. An argument that is NULL makes the result NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from ...catalog.values.errors import SQLError
from ..results.passed_errors import passed_on
from .patterns import searches
from .patterns.options import options_of
from .patterns.pattern import pattern_of

PREFIX = "pattern_"
_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
_ARROW: dict[str, pa.DataType] = {
    "VARCHAR": _TEXT, "VARCHAR[]": _TEXTS, "VARCHAR[][]": pa.list_(_TEXTS)
}  # fmt: skip


def _native(patterns: Any, flags: Any) -> str | None:
    """Returns the RE2 pattern of a batch where all rows have the same pattern and flags; else
    None."""
    if patterns.null_count or flags.null_count or not len(patterns):
        return None
    pattern, options = patterns[0], flags[0]
    for column, one in ((patterns, pattern), (flags, options)):
        if not pc.all(pc.equal(column, one)).as_py():
            return None
    try:
        how, everywhere = options_of(options.as_py())
        return None if everywhere else pattern_of(pattern.as_py(), how).native
    except SQLError:
        return None


def _found(texts: Any, patterns: Any, flags: Any) -> Any:
    """`~`. A pattern that is a parameter of the statement is one of all rows."""
    native = _native(patterns, flags)
    if native is not None:
        return pc.match_substring_regex(texts, native)
    return _found_by_rows(texts, patterns, flags)


_FUNCTIONS: dict[str, tuple[Callable[..., object], str, str]] = {
    "first": (searches.first, "ttt", "VARCHAR[]"),
    "every": (searches.every, "ttt", "VARCHAR[][]"),
    "split": (searches.split, "tttt", "VARCHAR[]"),
    "substring": (searches.substring, "tt", "VARCHAR"),
    "replaced": (searches.replaced, "tttt", "VARCHAR"),
}
"""By name: the Python function, a letter for each argument (all are texts), and DuckDB's result
type."""


def install_pattern_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines `pattern_found` and its kin in an evaluator's database."""
    define: Any = connection.create_function  # its stubs know no type that is written as SQL's
    for name, (function, arguments, result) in _FUNCTIONS.items():
        types = ["VARCHAR"] * len(arguments)
        define(f"{PREFIX}{name}", _by_rows(function, len(types), _ARROW[result]), types, result,
               type="arrow", null_handling="special")  # fmt: skip
    define(f"{PREFIX}found", _found, ["VARCHAR"] * 3, "BOOLEAN", type="arrow",
           null_handling="special")  # fmt: skip


def _by_rows(
    function: Callable[..., object], count: int, result: pa.DataType
) -> Callable[..., Any]:
    """The function for columns of `count` arguments, with errors that pass through DuckDB."""

    def computed(*columns: Any) -> Any:
        assert len(columns) == count, (function, columns)
        given = [column.to_pylist() for column in columns]
        rows = zip(*given, strict=True)
        try:
            found = [None if None in row else function(*row) for row in rows]
        except SQLError as error:
            raise passed_on(error) from None
        return pa.array(found, result)

    names = (Parameter(f"argument_{place}", Parameter.POSITIONAL_ONLY) for place in range(count))
    computed.__signature__ = Signature(list(names))  # type: ignore[attr-defined]  # DuckDB reads it
    return computed


_found_by_rows = _by_rows(searches.found, 3, pa.bool_())
