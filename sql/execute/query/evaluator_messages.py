"""DuckDB's messages about types, in PostgreSQL's words: its types are no names of ours.

    No function matches … 'f(BIGINT, NULL)'       function f(bigint, unknown) does not exist
Unimplemented type for cast (DATE -> INTEGER)           cannot cast type date to integer
    Could not convert string 'x' to INT64 …      invalid input syntax for type bigint: "x"
"""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...builtins.macros import PREFIX

_NAMES = {
    "BIGINT": "bigint", "INT64": "bigint", "INTEGER": "integer", "INT32": "integer",
    "INTEGER_LITERAL": "integer", "SMALLINT": "smallint", "INT16": "smallint",
    "HUGEINT": "numeric", "INT128": "uuid", "DOUBLE": "double precision", "FLOAT": "real",
    "VARCHAR": "text", "STRING_LITERAL": "unknown", "NULL": "unknown", '"NULL"': "unknown",
    "BOOLEAN": "boolean", "BOOL": "boolean", "BLOB": "bytea", "DATE": "date", "JSON": "jsonb",
    "TIME": "time without time zone", "TIMESTAMP": "timestamp without time zone",
    "TIMESTAMP WITH TIME ZONE": "timestamp with time zone", "INTERVAL": "interval", "UUID": "uuid",
}  # fmt: skip
_HINT = "You might need to add explicit type casts."


def of_types(message: str) -> SQLError | None:
    """What the message says of types; None for all others."""
    lower = message.lower()
    if lower.startswith("no function matches"):
        return _of_call(message.partition("'")[2].partition("'")[0], "does not exist")
    if lower.startswith("could not choose a best candidate"):
        return _of_call(message.partition('"')[2].partition('"')[0], "is not unique")
    if lower.startswith("unimplemented type for cast"):
        source, arrow, target = _within(message).partition(" -> ")
        named = f"cannot cast type {_named(source)} to {_named(target)}"
        return SQLError("42846", named) if arrow else None
    if lower.startswith("could not convert string"):
        value, quote, rest = message.partition("'")[2].rpartition("' to ")
        name = _named(rest.partition(" when casting")[0])
        told = f'invalid input syntax for type {name}: "{value}"'
        return SQLError("22P02", told) if quote else None
    return None


def _of_call(call: str, what: str) -> SQLError | None:
    called = _called(call)
    return None if called is None else SQLError("42883", f"function {called} {what}", hint=_HINT)


def _within(message: str) -> str:
    """What stands between the first parenthesis and the last."""
    return message.partition("(")[2].rpartition(")")[0]


def _called(call: str) -> str | None:
    """`postgres_upper(BIGINT)` as `upper(bigint)`."""
    name, opened, rest = call.partition("(")
    if not opened:
        return None
    types = [_named(each) for each in _split(rest.removesuffix(")"))]
    return f"{name.removeprefix(PREFIX)}({', '.join(types)})"


def _split(types: str) -> list[str]:
    """Between the commas that stand outside of parentheses."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(types):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(types[start:place].strip())
            start = place + 1
    return [*found, types[start:].strip()] if types.strip() else []


def _named(type: str) -> str:
    """What PostgreSQL calls a type of DuckDB's."""
    type = type.strip()
    if type.endswith("[]"):
        return f"{_named(type[:-2])}[]"
    if type.startswith("DECIMAL"):
        return "numeric"
    return "an enumeration" if type.startswith("ENUM(") else _NAMES.get(type, type.lower())
