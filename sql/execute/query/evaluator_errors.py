"""Errors of DuckDB, in SQL's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ...analyze.binder import unknown_column
from ...builtins.macros import PREFIX
from ...lower.transpile import AnalyticSelect
from ...results.errors import taken_back

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
_BEGINNINGS: tuple[tuple[str, str], ...] = (
    ("order term out of range", "42P10"),
    ("ambiguous column reference", "42702"),
    ("limit/offset cannot be negative", "2201X"),
    ("set operations can only apply", "42601"),
    ("subquery returns", "42601"),
    ("where clause cannot contain aggregates", "42803"),
    ("aggregate function calls cannot be nested", "42803"),
    ("where clause cannot contain window", "42P20"),
    ("interval cannot be 0", "22023"),
    ("unknown timezone", "22023"),
    ("like pattern must not end", "22025"),
    ("casting value", "22003"),
    ("date out of range", "22008"),
    ("time out of range", "22008"),
    ("timestamp", "22008"),
    ("max expression depth", "54001"),
)
"""The beginnings of DuckDB's messages whose class says too little, and the SQLSTATE of each."""
_BY_RE2 = (
    "missing )", "unexpected )", "no argument for repetition operator", "bad repetition operator",
    "invalid repetition size", "pattern too large",
)  # fmt: skip
_MEANT: tuple[tuple[str, str, str], ...] = (
    ("referenced table", "42P01", 'missing FROM-clause entry for table "{}"'),
    ("ambiguous reference to column", "42702", 'column reference "{}" is ambiguous'),
    (
        "column ",
        "42803",
        'column "{}" must appear in the GROUP BY clause or be used in an aggregate',
    ),
    (
        "lateral join cannot contain aggregates",
        "42803",
        "aggregate functions are not allowed in FROM clause of their own query level",
    ),
    ("division by zero", "22012", "division by zero"),
    ("could not cast value", "22003", "numeric value out of range"),
    (
        "more than one row returned by a subquery",
        "21000",
        "more than one row returned by a subquery used as an expression",
    ),
    *((beginning, "2201B", f"invalid regular expression: {beginning}") for beginning in _BY_RE2),
    # Nothing but intervals is computed in 32 bits.
    ("overflow in addition of int32", "22008", "interval out of range"),
    ("overflow in multiplication of int32", "22008", "interval out of range"),
    ("overflow in subtraction of int32", "22008", "interval out of range"),
)
"""How messages begin that are said in PostgreSQL's words, with the name that stands in quotes."""


@contextmanager
def asked_of_duckdb(
    select: AnalyticSelect, tables: Sequence[TableDescriptor] | None = None
) -> Iterator[None]:
    """Raises DuckDB's errors about a query as SQLError: those of columns suggest some of the tables
    that it reads, or of the `tables` that its author knows."""
    try:
        yield
    except duckdb.Error as error:
        known = [scan.descriptor for scan in select.scans] if tables is None else tables
        raise from_duckdb(error, known, select.positions) from error


def from_duckdb(
    error: duckdb.Error, tables: Sequence[TableDescriptor], positions: Mapping[str, int]
) -> SQLError:
    """Translates DuckDB's error about a user's query, without DuckDB's names, hints and excerpts.

    `positions` are those of the statement's names, in lower case.
    """
    message = _first_line(error)
    told = taken_back(f"{error}") or _translated(error, message, tables)
    name = _quoted(message)
    if told.position is None and name is not None:
        told.position = positions.get(name.lower())
    return told


_UNKNOWN_TYPE = re.compile(r'type with name "?(.+?)"? (?:does not exist|is not in the catalog)')
_ROW_TYPES = (
    "An expression of one row, as of CHECK, casts to a type of SQL or to the enumeration of a "
    "column that it names."
)


def _translated(error: duckdb.Error, message: str, tables: Sequence[TableDescriptor]) -> SQLError:
    own = _of_postgres(message)
    if own is not None:
        return own
    lower, quoted = message.lower(), _quoted(message)
    if lower.startswith("referenced column") and quoted is not None:
        return unknown_column(quoted, tables, None)
    unknown = _UNKNOWN_TYPE.match(lower)
    if unknown is not None:  # an extension's, or of an expression of one row
        return SQLError("42704", f'type "{unknown[1]}" does not exist', hint=_ROW_TYPES)
    if "does not have a column named" in lower:
        return unknown_column(message.rpartition("named")[2].strip(" \"'"), tables, None)
    if lower.startswith(("no function matches", "could not choose a best candidate")):
        call = quoted or message.partition("'")[2]
        name = call.partition("(")[0].removeprefix(PREFIX)
        return SQLError("42883", f"function {name} does not take these arguments")
    if " to enum(" in lower:
        text, _, labels = message.partition(" to ENUM(")
        value = text.partition("'")[2].rpartition("'")[0]
        detail = f"The labels are: {labels.partition(')')[0]}."
        return SQLError("22P02", f'invalid input value for enum: "{value}"', detail=detail)
    for beginning, sqlstate, told in _MEANT:
        if lower.startswith(beginning):
            return SQLError(sqlstate, told.format(quoted))
    for beginning, sqlstate in _BEGINNINGS:
        if lower.startswith(beginning):
            return SQLError(sqlstate, _lowered(message.rstrip(".!")))
    if "out of range for the destination type" in lower:
        return SQLError("22003", _lowered(message))
    for kind, sqlstate in _BY_CLASS:
        if isinstance(error, kind):
            return SQLError(sqlstate, _lowered(message.rstrip(".!")))
    return SQLError("XX000", _lowered(message))


def _first_line(error: duckdb.Error) -> str:
    """The message less DuckDB's own heading (`Binder Error: `)."""
    line = f"{error}".partition("\n")[0]
    heading, colon, rest = line.partition(": ")
    return rest if colon and heading.endswith("Error") else line


def _quoted(message: str) -> str | None:
    """Returns the text between the first quotes of a message."""
    _, found, rest = message.partition('"')
    inside, closed, _ = rest.partition('"')
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
