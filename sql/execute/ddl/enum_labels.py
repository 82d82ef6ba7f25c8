"""Labels of enumerations in stored expressions and in the queries of views.

    CHECK (s IN ('new', 'paid'))        RENAME VALUE 'paid' TO 'settled'
    CHECK (s IN ('new', 'settled'))

A stored expression is a text, in which a label is a literal like any other. The literals that name
a label are those to which type resolution gives the enumeration, or an array of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.array_text import read_array, write_array
from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ...analyze.enum_casts import bind_row_casts
from ...analyze.types.resolution import resolve_types
from ...analyze.types.types import Types
from ...analyze.views import query_of
from ...builtins.macros import cast_to
from ...parse import parse_expression, text_of
from ...syntax.trees import CAST_TYPE, copied, find_all

_PLACE = "place among literals"


def relabelled_expression(
    table: TableDescriptor,
    text: str,
    type: ColumnType | None,
    type_id: int,
    labels: Mapping[str, str],
) -> str:
    """Returns an expression of a table's row with other labels of the enumeration `type_id`.

    `labels` maps the labels that `table` knows to their new names. `type` is the column's for whose
    value the expression stands, None for a CHECK.
    """
    tree = parse_expression(text)
    literals = [literal for literal in find_all(tree, exp.Literal) if _names(literal, labels)]
    if not literals:
        return text
    for place, literal in enumerate(literals):
        literal.meta[_PLACE] = place
    changed = False
    for place, meant in _typed(table, tree, type):
        enum = enum_in(meant)
        if enum is not None and enum.id == type_id:
            literals[place].set("this", _relabelled(literals[place].name, meant, labels))
            changed = True
    return text_of(tree) if changed else text


def refuse_named_label(view: TableDescriptor, label: str) -> None:
    """Raises SQLError 2BP01 for a view whose query has a literal that reads as the label."""
    for literal in find_all(query_of(view), exp.Literal):
        if _names(literal, (label,)):
            raise SQLError(
                "2BP01",
                f'cannot rename enum label "{label}" because view "{view.name}" names it',
                hint=f"Run DROP VIEW {view.name}, and create it again with the new label.",
            )


def _names(literal: exp.Expr, labels: Mapping[str, str] | tuple[str, ...]) -> bool:
    """Whether a literal is one of the labels, or an array's text with one among its elements."""
    if not literal.is_string:
        return False
    return literal.name in labels or not set(labels).isdisjoint(_elements(literal.name))


def _elements(text: str) -> list[str | None]:
    try:
        return read_array(text)
    except SQLError:
        return []


def _relabelled(text: str, type: ColumnType, labels: Mapping[str, str]) -> str:
    if type.element is None:
        return labels[text]
    return write_array([label and labels.get(label, label) for label in read_array(text)])


def _typed(
    table: TableDescriptor, tree: exp.Expr, type: ColumnType | None
) -> Iterator[tuple[int, ColumnType]]:
    """Yields the marked literals of an expression by their places, with the types that type
    resolution gives them."""
    tree = copied(tree)
    bind_row_casts(tree, table)
    if type is not None and enum_in(type) is not None:
        tree = _with_typed_results(tree, type)
    source = exp.Table(this=exp.to_identifier(table.name, quoted=True))
    query = exp.select(exp.alias_(tree, "e", quoted=True), copy=False).from_(source, copy=False)
    resolve_types(query, Types(query, {(table.name,): table}))
    for cast in find_all(query, exp.Cast):
        place = cast.this.unnest().meta.get(_PLACE)
        meant = cast.meta.get(CAST_TYPE)
        if place is not None and meant is not None:
            yield place, meant


def _with_typed_results(tree: exp.Expr, type: ColumnType) -> exp.Expr:
    """Casts the literals that the expression may return to the type of its column."""
    if isinstance(tree, exp.Literal):
        return cast_to(tree, type)
    match tree:
        case exp.Paren():
            results = [tree.this]
        case exp.Case():
            results = [branch.args["true"] for branch in tree.args["ifs"]]
            results += [tree.args["default"]] if tree.args.get("default") is not None else []
        case exp.Coalesce():
            results = [tree.this, *tree.expressions]
        case _:
            results = []
    for result in results:
        typed = _with_typed_results(result, type)
        if typed is not result:
            result.replace(typed)
    return tree
