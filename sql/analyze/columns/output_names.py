"""Names of select-list columns without an alias, as PostgreSQL gives them.

SELECT count(*), v::INT8, upper(v), CASE WHEN true THEN 1 END, a + 1 FROM t
count | v | upper | case | ?column?
"""

from __future__ import annotations

from sqlglot import exp

from ...builtins.known_functions import called
from ...builtins.macros import PREFIX
from ...parse import folded
from ...syntax.tree_names import CALLED

UNNAMED = "?column?"

TYPED_PARAMETER = "typed_parameter"
"""Marks a cast that nobody wrote: it says the type of a parameter, and names no column."""

_TYPES = {
    "int": "int4", "integer": "int4", "mediumint": "int4", "smallint": "int2", "bigint": "int8",
    "real": "float4", "double precision": "float8", "decimal": "numeric", "boolean": "bool",
    "char": "bpchar", "interval": "interval",
}  # fmt: skip
_NAMED: dict[type[exp.Expr], str | None] = {
    exp.CurrentTimestamp: "now",
    exp.Localtimestamp: "localtimestamp",
    exp.AtTimeZone: "timezone",
    exp.Array: "array",
    exp.ArrayPosition: "array_position",
    exp.Corr: "corr",
    exp.StrPosition: "position",
    exp.Extract: "extract",
    **dict.fromkeys((exp.StartsWith, exp.RegexpLike, exp.JSONExtract), None),
    exp.JSONArrayAgg: "json_agg",
    exp.ParseJSON: "json",
    exp.Tuple: "row",
}


def output_name(item: exp.Expr) -> str:
    """The name of an item of a select list."""
    return _given(item) or _of_result(item) or UNNAMED


def _given(item: exp.Expr) -> str | None:
    """A name that the item has by itself, which a cast or CASE around it takes over."""
    match item:
        case exp.Alias():
            return folded(item.args["alias"])
        case exp.Expr() if CALLED in item.meta:
            return str(item.meta[CALLED])
        case exp.Column():
            return folded(item.this)
        case exp.Paren() | exp.Filter() | exp.Window() | exp.WithinGroup() | exp.Collate():
            return _given(item.this)
        case exp.IgnoreNulls() | exp.Bracket():
            return _given(item.this)
        case exp.Dot():
            return _given(item.expression)
        case exp.Cast():
            return _given(item.this)
        case exp.Identifier():
            return folded(item)
        case exp.Case():
            default = item.args.get("default")
            return _given(default) if default is not None else None
        case exp.Exists():
            return "exists"
        case exp.Coalesce():
            return "coalesce"
        case exp.Subquery():
            return _of_subquery(item)
        case exp.Anonymous():
            return item.name.lower().removeprefix(PREFIX)
        case exp.Trim() if (call := called(item)) is not None:
            return call[0]
    return _NAMED[type(item)] if type(item) in _NAMED else _function(item)


def _of_subquery(item: exp.Subquery) -> str | None:
    select = item.this
    if isinstance(select, exp.Select) and len(select.expressions) == 1:
        return output_name(select.expressions[0])
    return None


def _function(item: exp.Expr) -> str | None:
    if not isinstance(item, exp.Func) or isinstance(item, exp.Connector | exp.Binary | exp.Cast):
        return None
    name = item.sql("postgres").partition("(")[0].partition("[")[0].lower()
    return name if name.isidentifier() else None


def _of_result(item: exp.Expr) -> str | None:
    """Names that give way to others: a cast's type, if its operand has no name, and `case`."""
    match item:
        case exp.Paren() | exp.Collate() | exp.Bracket():
            return _of_result(item.this)
        case exp.Interval():
            return "interval"
        case exp.Cast():
            return None if item.meta.get(TYPED_PARAMETER) else _type_name(item)
        case exp.Case():
            return "case"
    return None


def _type_name(cast: exp.Cast) -> str:
    target = cast.to
    while target.this == exp.DType.ARRAY and target.expressions:
        target = target.expressions[0]
    name = target.sql("postgres").lower().partition("(")[0].strip()
    return _TYPES.get(name, name)
