"""Functions of text that PostgreSQL has for BYTEA too, and DuckDB has not."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.types import Types
from ..builtins.known_functions import called
from ..builtins.templates import call, duckdb, text

_SIDES = {"btrim": "b", "ltrim": "l", "rtrim": "r"}


def of_bytes(node: exp.Expr, types: Types) -> exp.Expr | None:
    """Returns the replacement of a call with bytes; None for every other node."""
    found = called(node)
    if found is None or not found[1] or types.kind(found[1][0]) is not TypeKind.BYTES:
        return None
    name, given = found
    match name:
        case "substr" | "substring":
            return call("bytes_part", *given)
        case "position":
            return call("bytes_position", *given)
        case "overlay":
            return call("bytes_overlaid", *given)
        case "btrim" | "ltrim" | "rtrim":
            return call("bytes_trimmed", *given, text(_SIDES[name]))
        case "string_agg":
            over_list(node, [given[0], given[1]], "bytes_joined")
        case "bit_length":
            return duckdb("octet_length(:x) * 8", x=given[0])
    return None


def over_list(node: exp.Expr, operands: Sequence[exp.Expr], name: str) -> None:
    """Puts `name`(list of rows) in the place of an aggregate, with its FILTER, its OVER and the
    order of what it is over. A row has the operands as `a` and `b`."""
    row: exp.Expr = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(field), expression=operand.copy())
            for field, operand in zip("ab", operands, strict=False)
        ]
    )
    inner = node.this
    if isinstance(inner, exp.Order):
        row = exp.Order(this=row, expressions=[key.copy() for key in inner.expressions])
    listed: exp.Expr = exp.ArrayAgg(this=row)
    whole = node
    while isinstance(whole.parent, exp.Filter | exp.Window) and whole.arg_key == "this":
        whole = whole.parent
    if whole is not node:
        node.replace(listed)
        listed = whole.copy()
    whole.replace(call(name, listed))
