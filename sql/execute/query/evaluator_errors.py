"""Errors of DuckDB, in SQL's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ...analyze.binder import unknown_column
from ...builtins.macros import PREFIX
from ...results.passed_errors import taken_back
from .evaluator_messages import of_types

_BY_CLASS: tuple[tuple[type[duckdb.Error], str], ...] = (
    (duckdb.ConversionException, "22P02"),
    (duckdb.OutOfRangeException, "22003"),
    (duckdb.ParserException, "42601"),
    (duckdb.CatalogException, "42883"),
    (duckdb.BinderException, "42804"),
    (duckdb.PermissionException, "42501"),
    (duckdb.OutOfMemoryException, "53200"),
    (duckdb.NotImplementedException, "0A000"),
    (duckdb.InterruptException, "57014"),
    (duckdb.InvalidInputException, "22023"),
)


_UNKNOWN_TYPE = "type with name "


_BEGINNINGS: tuple[tuple[str, str], ...] = (
    ("order term out of range", "42P10"),
    ("limit/offset cannot be negative", "2201X"),
    ("set operations can only apply", "42601"),
    ("subquery returns", "42601"),
    ("where clause cannot contain aggregates", "42803"),
    ("aggregate function calls cannot be nested", "42803"),
    ("where clause cannot contain window", "42P20"),
    ("interval cannot be 0", "22023"),
    ("unknown timezone", "22023"),
    ("like pattern must not end", "22025"),
    ("could not parse string", "22007"),
    ("invalid date field format", "22007"),
    ("missing )", "2201B"),
    ("missing ]", "2201B"),
    ("no argument for repetition operator", "2201B"),
    ("bad repetition operator", "2201B"),
    ("invalid escape sequence", "2201B"),
    ("casting value", "22003"),
    ("could not cast value", "22003"),
    ("epoch seconds out of range", "22008"),
    ("date out of range", "22008"),
    ("time out of range", "22008"),
    ("timestamp out of range", "22008"),
    ("timestamptz out of range", "22008"),
    ("cannot compare values of type", "42883"),
)
"""How some of DuckDB's messages begin, and PostgreSQL's SQLSTATE for what they say."""


def from_duckdb(
    error: duckdb.Error, tables: Sequence[TableDescriptor], positions: Mapping[str, int]
) -> SQLError:
    """What DuckDB said of a user's query, without its names, hints and excerpts.

    `positions` are those of the statement's names, in lower case.
    """
    message = _first_line(error)
    told = taken_back(f"{error}") or _translated(error, message, tables)
    for name in (_between(message, '"', '"'), _function_name(message)):
        if told.position is None and name is not None:
            told.position = positions.get(name.lower())
    return told


def _function_name(message: str) -> str | None:
    if "unction with name" not in message:
        return None
    return message.partition("with name")[2].split()[0]


def _translated(error: duckdb.Error, message: str, tables: Sequence[TableDescriptor]) -> SQLError:
    own = _of_postgres(message)
    if own is not None:
        return own
    lower = message.lower()
    quoted = _between(message, '"', '"')
    if lower.startswith("referenced column") and quoted is not None:
        return unknown_column(quoted, tables, None)
    if lower.startswith("referenced table") and quoted is not None:
        return SQLError("42P01", f'missing FROM-clause entry for table "{quoted}"')
    if lower.startswith("ambiguous reference to column") and quoted is not None:
        return SQLError("42702", f'column reference "{quoted}" is ambiguous')
    if "does not have a column named" in lower:
        name = message.rpartition("named")[2].strip(" \"'")
        return unknown_column(name, tables, None)
    if "must appear in the group by" in lower and quoted is not None:
        return SQLError(
            "42803",
            f'column "{quoted}" must appear in the GROUP BY clause or be used in an aggregate',
        )
    if lower.startswith("could not convert string") and " to enum(" in lower:
        text, _, labels = message.partition(" to ENUM(")
        value = text.partition("'")[2].rpartition("'")[0]
        detail = f"The labels are: {labels.rstrip(').')}."
        return SQLError("22P02", f'invalid input value for enum: "{value}"', detail=detail)
    if lower.startswith(_UNKNOWN_TYPE):
        name = lower.removeprefix(_UNKNOWN_TYPE).split()[0].strip('"')
        return SQLError("42704", f'type "{name}" does not exist')
    if lower.startswith("lateral join cannot contain aggregates"):
        text = "aggregate functions are not allowed in FROM clause of their own query level"
        return SQLError("42803", text)
    if lower.startswith("overflow in") and "of int32" in lower:
        # Nothing else is computed in 32 bits.
        return SQLError("22008", "interval out of range")
    of_operands = of_types(message)
    if of_operands is not None:
        return of_operands
    for beginning, sqlstate in _BEGINNINGS:
        if lower.startswith(beginning):
            return SQLError(sqlstate, _lowered(message.rstrip(".!")))
    if lower.startswith("macro "):
        name = message.split()[1].partition("(")[0].removeprefix(PREFIX)
        return SQLError("42883", f"function {name} does not take these arguments")
    if lower.startswith("unrecognized configuration parameter"):
        return SQLError("42704", _lowered(message))
    if "max expression depth" in lower:
        return SQLError("54001", "statement is nested too deeply")
    if "out of range for the destination type" in lower:
        return SQLError("22003", _lowered(message))
    if "division by zero" in lower:
        return SQLError("22012", "division by zero")
    if "more than one row returned by a subquery" in lower:
        return SQLError("21000", "more than one row returned by a subquery used as an expression")
    function = _function_name(message)
    if function is not None:
        return SQLError("42883", f"function {function} does not exist")
    if lower.startswith(("date field value", "timestamp field value", "invalid timestamp")):
        return SQLError("22007", _lowered(message))
    for kind, sqlstate in _BY_CLASS:
        if isinstance(error, kind):
            return SQLError(sqlstate, _lowered(message.rstrip(".!")))
    return SQLError("XX000", _lowered(message))


def _first_line(error: duckdb.Error) -> str:
    """The message less DuckDB's own heading (`Binder Error: `)."""
    line = f"{error}".partition("\n")[0]
    heading, colon, rest = line.partition(": ")
    return rest if colon and heading.endswith("Error") else line


def _between(text: str, start: str, end: str) -> str | None:
    _, found, rest = text.partition(start)
    inside, closed, _ = rest.partition(end)
    return inside if found and closed else None


def _lowered(text: str) -> str:
    """Without the capital of a sentence; words in capitals stay."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _of_postgres(message: str) -> SQLError | None:
    """An error that one of our macros raised: its SQLSTATE, a bar, and its message."""
    sqlstate, bar, rest = message.partition("|")
    if not bar or len(sqlstate) != 5 or not sqlstate.isalnum():
        return None
    return SQLError(sqlstate, rest)
