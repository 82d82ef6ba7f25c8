"""CHAR(n): blanks at the end mean nothing beside such a value, where the other one is no TEXT.

    c = 'ab  '              a literal is a CHAR: its blanks are cut
    c = v                   a VARCHAR is compared as a CHAR: its blanks are cut
    c = 'ab  '::TEXT        a TEXT is not: the CHAR is a text without blanks, and the other has some

A CHAR is kept without its blanks, so that only the other side is cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.array_text import read_array, write_array
from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import TEXTS, TypeKind
from ...builtins.templates import duckdb, plain, text
from ...syntax.refusals import unsupported
from ...syntax.tree_copies import copied
from ...syntax.tree_names import CUT_BLANKS, folded
from ...syntax.walks import find_all
from ..scalars import type_of_cast
from .types import Types

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
_PASSED_ON = (exp.Filter, exp.Window, exp.Max, exp.Min, exp.FirstValue, exp.LastValue, exp.NthValue)
_ALTERNATIVES = (exp.Case, exp.Coalesce, exp.Greatest, exp.Least)


def compare_as_char(left: exp.Expr, right: exp.Expr, types: Types) -> None:
    """Cuts the trailing blanks of operands compared with a CHAR. Raises SQLError 0A000 where
    they cannot be cut."""
    for side, other in ((left, right), (right, left)):
        if _kind(other, types) is TypeKind.CHAR:
            if _kind(side, types) is TypeKind.VARCHAR:
                _cut_value(side, types)
            else:
                _cut_constant(side, several=types.kind(other) is TypeKind.ARRAY)


def listed_as_varchar(node: exp.In, types: Types) -> bool:
    """`v IN (c1, c2)`: constants are an array of what comes first, a VARCHAR, beside which blanks
    mean something."""
    if _kind(node.this, types) is not TypeKind.VARCHAR:
        return False
    constants = (item for item in node.expressions if item.find(exp.Column) is None)
    return next(constants, None) is not None and next(constants, None) is not None


def agree_as_char(parts: Sequence[exp.Expr], types: Types) -> None:
    """Types texts and literals as CHAR among alternatives of which the first is a CHAR."""
    if _common(parts, types) is TypeKind.CHAR:
        for part in parts:
            if _kind(part, types) in (TypeKind.VARCHAR, TypeKind.STRING) and not part.is_star:
                _cut_value(part, types)
            else:
                _cut_constant(part)


def _kind(tree: exp.Expr, types: Types) -> TypeKind | None:
    """CHAR, VARCHAR or STRING for a text that has a type; of an array what its elements are."""
    inner = tree.unnest()
    if isinstance(inner, exp.Any | exp.All):
        return _kind(inner.this, types)
    if isinstance(inner, exp.Query):
        _, columns = types.parts_of(inner)
        return _common(columns[0], types) if len(columns) == 1 else None
    if isinstance(inner, _PASSED_ON):
        return _kind(inner.this, types)
    if isinstance(inner, _ALTERNATIVES):
        return _common(_parts(inner), types)
    if isinstance(inner, exp.Array):
        return _common(inner.expressions, types)
    declared = types.declared(inner.this if isinstance(inner, exp.Bracket) else inner)
    if declared is not None and declared.element is not None:
        declared = declared.element
    return declared.kind if declared is not None and declared.kind in TEXTS else None


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    if not isinstance(tree, exp.Case):
        return list(tree.iter_expressions())
    default = tree.args.get("default")  # which decides before all others
    return ([default] if default else []) + [branch.args["true"] for branch in tree.args["ifs"]]


def _common(parts: Sequence[exp.Expr], types: Types) -> TypeKind | None:
    """Returns the kind of the first alternative that has a type."""
    return next((kind for part in parts if (kind := _kind(part, types)) is not None), None)


def _cut_value(side: exp.Expr, types: Types) -> None:
    """Cuts the trailing blanks of a VARCHAR, of an array's elements, or of a query's column."""
    inner = side.unnest()
    if isinstance(inner, exp.Any | exp.All):
        _cut_value(inner.this, types)
    elif isinstance(inner, exp.Query):
        select = inner if isinstance(inner, exp.Select) else None
        item = select.expressions[0] if select is not None else inner
        if select is None or item.is_star:
            raise unsupported(
                "comparing CHAR(n) with a query of VARCHAR",
                inner,
                "Cast the column of the query to TEXT, or to CHAR(n).",
            )
        _cut_value(item.unalias(), types)
    elif types.kind(inner) is TypeKind.ARRAY:
        side.replace(duckdb("list_transform(:a, lambda e: rtrim(e, ' '))", a=inner))
    else:
        made: exp.Expr = plain("rtrim", side, text(" "))
        if isinstance(side.parent, exp.Select) and side.output_name:
            made = exp.alias_(made, side.output_name, quoted=True)
        side.replace(made)


def _cut_constant(tree: exp.Expr, *, several: bool = False) -> None:
    """Cuts the blanks off a text or a parameter; `several`: off the elements of an array's text."""
    inner = tree.unnest()
    if isinstance(inner, exp.Any | exp.All):
        inner, several = inner.this.unnest(), True
    if isinstance(inner, exp.Parameter):
        inner.meta[CUT_BLANKS] = True
    elif isinstance(inner, exp.Literal) and inner.is_string:
        inner.set("this", _without(inner.this) if several else inner.this.rstrip(" "))


def _without(array: str) -> str:
    """An array's text with its elements cut."""
    return write_array([item if item is None else item.rstrip(" ") for item in read_array(array)])


def without_blanks(
    tree: exp.Expr, relations: Mapping[tuple[str, ...], TableDescriptor]
) -> exp.Expr:
    """The tree with constants cut that are compared with a CHAR column; else the same tree.

    Columns are known by their names alone: a name that is also another table's text stays.
    """
    kinds: dict[str, set[TypeKind]] = {}
    for descriptor in relations.values():
        for column in descriptor.visible_columns:
            kinds.setdefault(column.name, set()).add(column.type.kind)
    padded = {name for name, found in kinds.items() if found == {TypeKind.CHAR}}
    if not padded:
        return tree
    made = copied(tree)
    for node in find_all(made, *_COMPARISONS):
        parts = list(node.iter_expressions())
        if any(isinstance(part, exp.Column) and folded(part.this) in padded for part in parts):
            for part in parts:
                varchar = isinstance(part, exp.Cast) and _is_varchar(type_of_cast(part))
                _cut_constant(part.this if varchar else part)
    return made


def _is_varchar(type: ColumnType | None) -> bool:
    return type is not None and type.kind is TypeKind.VARCHAR
