"""PostgreSQL's functions on regular expressions, for DuckDB: whatever a pattern is, row by row.

What a constant pattern lets DuckDB's own functions do is theirs (`sql.lower.patterns`), and the
rest is for these. An argument that is NULL makes the result NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from ...catalog.values.errors import SQLError
from .patterns import searches
from .patterns.options import options_of
from .patterns.pattern import pattern_of
from .row_functions import define, over_columns, told

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
    for name, (function, arguments, result) in _FUNCTIONS.items():
        types = ["VARCHAR"] * len(arguments)
        define(connection, f"{PREFIX}{name}", function, (result, _ARROW[result]), types)
    create: Any = connection.create_function  # its stubs know no function over Arrow's columns
    create(f"{PREFIX}found", told(_found, 3), ["VARCHAR"] * 3, "BOOLEAN", type="arrow",
           null_handling="special")  # fmt: skip


_found_by_rows = over_columns(searches.found, pa.bool_())
