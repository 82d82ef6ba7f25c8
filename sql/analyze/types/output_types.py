"""The types that tables give a query's columns.

Expressions are computed in broad types (`catalog.values.column_types`), but a column that a query
only passes on keeps its own, and so does an explicit cast:

    SELECT id, n + 1, s::VARCHAR(3) FROM t        INT4, unknown, VARCHAR(3)

What is unknown has the type that its computation has.
"""

from __future__ import annotations

from itertools import zip_longest

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.column_types import ColumnType, array_of
from ...syntax.tree_names import folded
from ..binder import Relations, declared_type, descriptor_of, scopes_in
from ..columns.merged_columns import merges_columns
from ..scalars import type_of_cast
from .types import Types as TypesOfQuery

Types = tuple[ColumnType | None, ...]


def declared_types(query: exp.Query, relations: Relations) -> Types:
    """A type, or None, for each column of a query; nothing from where a star hides them."""
    if isinstance(query, exp.SetOperation):
        # As inner parts of a query they are looked into; as the whole of it nobody looks for them.
        return ()
    if not isinstance(query, exp.Select):
        return ()
    scope = next(scope for scope in scopes_in(query) if scope.expression is query)
    return tuple(type for _, type in _columns(scope, relations))


def declared_enums(query: exp.Query, declared: Types, types: TypesOfQuery) -> Types:
    """The same, with the enumerations that expressions are of: `coalesce(m, 'ok')`."""
    _, found = types.columns_of(query)
    if any(item.is_star for item in query.selects) or not any(
        type is not None and enum_in(type) is not None for type in found
    ):
        return declared
    pairs = zip_longest(declared, found)
    return tuple(
        known if known is not None or type is None or enum_in(type) is None else type
        for known, type in pairs
    )


Named = tuple[str, ColumnType | None]
"""A column's name, as far as it has a plain one, and its type, as far as it is known."""


def _columns(scope: QueryScope, relations: Relations) -> list[Named]:
    """The columns of a query, up to the first star that hides what it stands for."""
    if scope.set_operation_scopes:
        return _of_both(*(_columns(side, relations) for side in scope.set_operation_scopes))
    if not isinstance(scope.expression, exp.Select):
        return []
    found: list[Named] = []
    for item in scope.expression.expressions:
        inner = item.unalias()
        if isinstance(inner, exp.Star) or isinstance(inner.this, exp.Star):
            behind = _of_star(inner, scope, relations)
            if behind is None:
                break
            found += behind
        else:
            found.append((item.output_name.lower(), _of_item(inner, scope, relations)))
    return found


def _of_both(left: list[Named], right: list[Named]) -> list[Named]:
    """The columns of a set operation: the names of its left side, and the types of both."""
    pairs = zip(left, right, strict=False)
    return [(name, one if one == other else None) for (name, one), (_, other) in pairs]


def _of_item(item: exp.Expr, scope: QueryScope, relations: Relations) -> ColumnType | None:
    if isinstance(item, exp.Paren):
        return _of_item(item.this, scope, relations)
    if isinstance(item, exp.Cast):
        return type_of_cast(item)
    if not isinstance(item, exp.Column):
        type = _of_expression(item, scope, relations)
        return type if type is not None and type.in_catalog_only else None
    known = declared_type(item, scope, relations)
    return known if known is not None else _passed_on(item, scope, relations)


def _of_expression(item: exp.Expr, scope: QueryScope, relations: Relations) -> ColumnType | None:
    """Returns the type of an expression that keeps its parts' type, as CASE of object ids does."""
    match item:
        case exp.Case() | exp.Coalesce():
            parts = [branch.args["true"] for branch in item.args.get("ifs") or ()]
            parts += [item.args.get("default"), *item.expressions]
            parts += [item.this] if isinstance(item, exp.Coalesce) else []
            given = [part for part in parts if part and not isinstance(part, exp.Null)]
            types = {_of_item(part, scope, relations) for part in given}
            return types.pop() if len(types) == 1 else None
        case exp.ArrayAgg():
            what = item.this.this if isinstance(item.this, exp.Order) else item.this
            element = _of_item(what, scope, relations)
            return None if element is None or element.element is not None else array_of(element)
        case exp.Subquery():
            for inner in scope.subquery_scopes:
                if inner.expression is item.this:
                    columns = _columns(inner, relations)
                    return columns[0][1] if columns else None
    return None


def _passed_on(column: exp.Column, scope: QueryScope, relations: Relations) -> ColumnType | None:
    """The type of a column of a subquery or of a CTE, by its qualifier or as the only source."""
    qualifier = column.args.get("table")
    sources = scope.selected_sources
    if qualifier is not None:
        wanted = folded(qualifier)
        found = [pair for alias, pair in sources.items() if alias.lower() == wanted.lower()]
    else:
        found = list(sources.values())
    if len(found) != 1 or not isinstance(column.this, exp.Identifier):
        return None
    named = _of_source(*found[0], relations)
    types = [type for name, type in named or () if name == folded(column.this).lower()]
    return types[0] if len(types) == 1 else None


def _of_star(star: exp.Expr, scope: QueryScope, relations: Relations) -> list[Named] | None:
    """The columns of all sources, or of the one that the star names; None where that is not
    plain."""
    assert isinstance(scope.expression, exp.Select), scope
    sources = scope.selected_sources
    qualifier = star.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier).lower()
        sources = {alias: pair for alias, pair in sources.items() if alias.lower() == wanted}
    elif any(map(merges_columns, scope.expression.args.get("joins") or ())):
        return None
    found: list[Named] = []
    for pair in sources.values():
        columns = _of_source(*pair, relations)
        if columns is None:
            return None
        found += columns
    return found or None


def _of_source(
    node: exp.Expr, source: exp.Expr | QueryScope, relations: Relations
) -> list[Named] | None:
    """The columns of a table, view, subquery or CTE, by the names that its alias gives them."""
    found: list[Named]
    descriptor = descriptor_of(source, relations)
    if descriptor is not None:
        found = [(column.name.lower(), column.type) for column in descriptor.shown_columns]
    elif isinstance(source, QueryScope):
        found = _columns(source, relations)
    else:
        return None
    definition = source.expression.parent if isinstance(source, QueryScope) else None
    for named in (definition, node):
        alias = named.args.get("alias") if named is not None else None
        if isinstance(alias, exp.TableAlias) and alias.columns:
            names = [identifier.name.lower() for identifier in alias.columns]
            given = zip(names, found, strict=False)
            found = [(name, type) for name, (_, type) in given] + found[len(names) :]
    return found
