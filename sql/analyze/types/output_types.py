"""The types that tables give a query's columns.

Expressions are computed in broad types (`catalog.values.column_types`), but a column that a query
only passes on keeps its own, and so does an explicit cast:

    SELECT id, n + 1, s::VARCHAR(3) FROM t        INT4, unknown, VARCHAR(3)

What is unknown has the type that its computation has.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.column_types import ColumnType, array_of
from ...syntax.tree_names import DECLARED
from .types import Types


def declared_types(query: exp.Query, types: Types) -> tuple[ColumnType | None, ...]:
    """A type, or None, for each column of a query; nothing from where a star hides them."""
    if not isinstance(query, exp.Select):
        # As inner parts of a query they are looked into; as the whole of it nobody looks for them.
        return ()
    return tuple(_of_item(item.unalias(), types) for item in types.output(query))


def _of_item(item: exp.Expr, types: Types) -> ColumnType | None:
    """Columns and casts have their own types; an expression has the enumeration that it is of, and
    a type of the catalog that all of its parts have, as CASE of object ids does."""
    if isinstance(item, exp.Paren):
        return _of_item(item.this, types)
    if isinstance(item, exp.Column | exp.Cast) or DECLARED in item.meta:
        return types.declared(item)
    found = types.of(item)
    if found is not None and enum_in(found) is not None:
        return found
    kept = _of_parts(item, types)
    return kept if kept is not None and kept.in_catalog_only else None


def _of_parts(item: exp.Expr, types: Types) -> ColumnType | None:
    match item:
        case exp.Case() | exp.Coalesce():
            parts = [branch.args["true"] for branch in item.args.get("ifs") or ()]
            parts += [item.args.get("default"), *item.expressions]
            parts += [item.this] if isinstance(item, exp.Coalesce) else []
            given = [part for part in parts if part and not isinstance(part, exp.Null)]
            found = {_of_item(part, types) for part in given}
            return found.pop() if len(found) == 1 else None
        case exp.ArrayAgg():
            what = item.this.this if isinstance(item.this, exp.Order) else item.this
            element = _of_item(what, types)
            return None if element is None or element.element is not None else array_of(element)
        case exp.Subquery():
            _, columns = types.declared_of(item)
            return columns[0] if columns else None
    return None
