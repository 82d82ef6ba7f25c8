"""Names of a result's columns, as clients are told them, and the tables' columns that they are.

Names without an alias are as PostgreSQL gives them:

SELECT count(*), v::INT8, upper(v), CASE WHEN true THEN 1 END, a + 1 FROM t
count | v | upper | case | ?column?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ....catalog.descriptors.descriptor import TableDescriptor
from ...builtins.known_functions import called
from ...builtins.macros import PREFIX
from ...results.results import Origin, ResultColumn
from ...syntax.trees import CALLED, folded
from ..binder import Relations, descriptor_of
from ..calls.oids import relation_oid

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
        case exp.Column(this=exp.Identifier()):
            return folded(item.this)
        case exp.Paren() | exp.Filter() | exp.Window() | exp.Collate() | exp.Bracket():
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


# The table columns that a result's columns are, for tools that let their users edit what they see.
#
# SELECT o.id, total + 1, c.* FROM orders o JOIN customers c ON …
# orders.id, nothing, customers.id, customers.name


Origins = tuple[Origin | None, ...]
Sources = dict[str, TableDescriptor | None]
"""The tables and views of FROM by their names in small letters; None for what is neither, and for
a table whose columns have other names."""


def column_origins(query: exp.Query, relations: Relations, scopes: Sequence[QueryScope]) -> Origins:
    """An origin, or None, for each column of a query; nothing from where a star hides them."""
    if not isinstance(query, exp.Select):
        return ()
    scope = next(scope for scope in scopes if scope.expression is query)
    sources = sources_in(scope, relations)
    items = takewhile(lambda item: not item.is_star, query.expressions)
    return tuple(_of_item(item.unalias(), sources) for item in items)


def sources_in(scope: QueryScope, relations: Relations) -> Sources:
    found: Sources = {}
    for alias, (_, source) in scope.selected_sources.items():
        renamed = isinstance(source, exp.Table) and bool(source.alias_column_names)
        found[alias.lower()] = None if renamed else descriptor_of(source, relations)
    return found


def owner_of(column: exp.Expr, sources: Sources) -> tuple[str, str] | None:
    """The source of a column, and its name; None where that is not plain, or for no column."""
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        return None
    name, qualifier = folded(column.this), column.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier).lower()
        return (wanted, name) if wanted in sources else None
    holding = [alias for alias, table in sources.items() if table and table.find_column(name)]
    plain = None not in sources.values() and len(holding) == 1
    return (holding[0], name) if plain else None


def with_origins(columns: Sequence[ResultColumn], origins: Origins) -> tuple[ResultColumn, ...]:
    """The columns of a result, as far as their origins are known with them."""
    if not any(origins):
        return tuple(columns)
    known = [*origins, *[None] * (len(columns) - len(origins))]
    return tuple(
        column if origin is None else replace(column, origin=origin)
        for column, origin in zip(columns, known, strict=False)
    )


def origin_of(table: TableDescriptor, name: str) -> Origin | None:
    column = table.find_column(name)
    return None if column is None else Origin(relation_oid(table.id, table.name), column.id)


def _of_item(item: exp.Expr, sources: Sources) -> Origin | None:
    owner = owner_of(item, sources)
    table = None if owner is None else sources[owner[0]]
    return None if owner is None or table is None else origin_of(table, owner[1])
