"""CHAR(n): blanks at the end of a constant mean nothing beside such a column."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ...catalog.column_types import ColumnType
from ...catalog.descriptor import TableDescriptor
from ...catalog.type_kinds import TypeKind
from ..parser.tree_names import folded

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)


def cut_blanks(literal: exp.Expr, other: ColumnType | None) -> None:
    """Cuts the blanks off a text that is compared with a value of type `other`."""
    inner = literal.unnest()
    if other is not None and other.kind is TypeKind.CHAR and isinstance(inner, exp.Literal):
        inner.set("this", inner.this.rstrip(" "))


def without_blanks(
    tree: exp.Expr, relations: Mapping[tuple[str, ...], TableDescriptor]
) -> exp.Expr:
    """The tree with text literals cut that are compared with a CHAR column; else the same tree.

    Columns are known by their names alone: a name that is also another table's text stays.
    """
    kinds: dict[str, set[TypeKind]] = {}
    for descriptor in relations.values():
        for column in descriptor.visible_columns:
            kinds.setdefault(column.name, set()).add(column.type.kind)
    padded = {name for name, found in kinds.items() if found == {TypeKind.CHAR}}
    if not padded:
        return tree
    copied = tree.copy()
    for node in copied.find_all(*_COMPARISONS):
        parts = list(node.iter_expressions())
        if any(isinstance(part, exp.Column) and folded(part.this) in padded for part in parts):
            for part in parts:
                if isinstance(part, exp.Literal) and part.is_string:
                    part.set("this", part.this.rstrip(" "))
    return copied
