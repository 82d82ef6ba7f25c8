"""Arrays: functions that DuckDB lacks or has with another meaning, and patterns of a whole array.

Arrays have one dimension. What would make one of several is refused (0A000) at every way in:
`ARRAY[ARRAY[1]]`, `array_agg(a)`, `'{{1}}'::INT8[]`.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.dimensions import several_dimensions
from ..analyze.types.types import Types
from ..builtins.templates import duckdb, plain
from ..parse import position_of

_WRITTEN = {
    TypeKind.FLOAT4: "postgres_single_text(e)",
    TypeKind.FLOAT8: "postgres_float_text(e)",
    TypeKind.BYTES: "'\\x' || lower(hex(e))",
    TypeKind.INTERVAL: "interval_text(e)",
    TypeKind.TIMESTAMPTZ: "CAST(e AS VARCHAR)",
}
_TRUTH = "if(e, 't', 'f')"


def element_texts(array: exp.Expr, element: ColumnType, *, truths: str = _TRUTH) -> exp.Expr:
    """The elements as PostgreSQL writes them."""
    written = truths if element.kind is TypeKind.BOOL else _WRITTEN.get(element.broad.kind)
    if element.kind is TypeKind.CHAR:
        written = f"rpad(e, {element.width}, ' ')"
    if written is None:
        return exp.Cast(this=array, to=exp.DataType.build("VARCHAR[]", dialect="duckdb"))
    text = sqlglot.parse_one(f"CASE WHEN e IS NOT NULL THEN {written} END", dialect="duckdb")
    return plain(
        "list_transform", array, exp.Lambda(this=text, expressions=[exp.to_identifier("e")])
    )


def joined(tree: exp.ArrayToString, types: Types) -> exp.Expr | None:
    """array_to_string(): NULL is left out, unless there is a text for it."""
    found = types.declared(tree.this)
    if found is None or found.element is None:
        return None
    texts = element_texts(tree.this.copy(), found.element)
    null = tree.args.get("null")
    if null is not None:
        each = "list_transform(:a, lambda e: coalesce(e, :n))"
        texts = duckdb(each, a=texts, n=exp.cast(null.copy(), "VARCHAR"))
    constant = isinstance(tree.expression.unnest(), exp.Literal)
    return duckdb(_JOINED if constant else _JOINED_BY_EACH, a=texts, d=tree.expression)


_JOINED = "CASE WHEN :d IS NOT NULL THEN array_to_string(:a, CAST(:d AS VARCHAR)) END"
_JOINED_BY_EACH = """
CASE WHEN :d IS NULL OR :a IS NULL THEN NULL
WHEN len(list_filter(:a, lambda e: e IS NOT NULL)) = 0 THEN ''
ELSE list_reduce(list_filter(:a, lambda e: e IS NOT NULL),
    lambda p, q: p || CAST(:d AS VARCHAR) || q) END
"""
"""DuckDB's own takes one separator for all rows."""


def position(tree: exp.ArrayPosition) -> exp.Expr:
    begin = tree.args.get("zero_based") or exp.Literal.number(1)
    return plain("array_position_from", tree.this, tree.expression, begin)


def filled(arguments: Sequence[exp.Expr], types: Types, *, tree: exp.Expr) -> exp.Expr:
    """array_fill() of one dimension that begins at 1."""
    lengths = arguments[1].unnest()
    several = isinstance(lengths, exp.Array) and len(lengths.expressions) != 1
    if several or len(arguments) > 2:
        raise several_dimensions(tree)
    if types.of(arguments[0]) is None:
        raise SQLError(
            "42804",
            "could not determine polymorphic type because input has type unknown",
            position=position_of(tree),
        )
    return plain("array_filled", *arguments)


def any_like(tree: exp.Expr, made: exp.Expr, some: exp.Any | exp.All) -> exp.Expr:
    """`x LIKE ANY (a)`: `made` is the comparison with the element `e`."""
    array = some.this.unnest()
    if isinstance(array, exp.Query):
        array = exp.Array(expressions=[array.copy()])
    truths = plain(
        "list_transform", array, exp.Lambda(this=made, expressions=[exp.to_identifier("e")])
    )
    return plain("any_of" if isinstance(some, exp.Any) else "all_of", truths)


ELEMENT = exp.column("e")
"""The variable for an element in `any_like`."""
