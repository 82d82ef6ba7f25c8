"""CHAR(n): a constant that is compared with a column of the type loses the blanks at its end.

A CHAR is kept without its blanks, so that `c = 'ab  '` is `c = 'ab'`. Beside a VARCHAR or a TEXT
that is no constant, blanks mean something.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.array_text import read_array, write_array
from ....catalog.values.type_kinds import TypeKind
from ...builtins.signatures import COMPARISONS
from ...syntax.trees import CUT_BLANKS, copied, find_all, folded
from ..scalars import type_of_cast


def without_blanks(
    tree: exp.Expr, relations: Mapping[tuple[str, ...], TableDescriptor]
) -> exp.Expr:
    """The tree with constants cut that are compared with a CHAR column; else the same tree.

    Columns are known by their names alone: a name that is also another table's text stays.
    """
    columns = [column for table in relations.values() for column in table.visible_columns]
    padded = {column.name for column in columns if column.type.kind is TypeKind.CHAR}
    padded -= {column.name for column in columns if column.type.kind is not TypeKind.CHAR}
    if not padded:
        return tree
    made = copied(tree)
    for node in find_all(made, *COMPARISONS, exp.In, exp.Between):
        parts = list(node.iter_expressions())
        if any(isinstance(part, exp.Column) and folded(part.this) in padded for part in parts):
            for part in parts:
                type = type_of_cast(part) if isinstance(part, exp.Cast) else None
                varchar = type is not None and type.kind is TypeKind.VARCHAR
                _cut_constant(part.this if varchar else part)
    return made


def _cut_constant(tree: exp.Expr) -> None:
    """Cuts the blanks off a text or a parameter, or off the elements of an array's text."""
    inner = tree.unnest()
    several = isinstance(inner, exp.Any | exp.All)
    inner = inner.this.unnest() if several else inner
    if isinstance(inner, exp.Parameter):
        inner.meta[CUT_BLANKS] = True
    elif isinstance(inner, exp.Literal) and inner.is_string:
        items = read_array(inner.this) if several else ()
        cut = [item if item is None else item.rstrip(" ") for item in items]
        inner.set("this", write_array(cut) if several else inner.this.rstrip(" "))
