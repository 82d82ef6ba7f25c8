"""Slots: numbers of a statement that are values, so that texts that differ in them share a plan.

Only these have slots: in items, in ON and WHERE, in assignments and in VALUES, under comparisons
and arithmetic. DuckDB takes them as parameters where they stand beside INT8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from ..syntax.statement import Statement
from ..syntax.statements import Delete, Insert, Query, Update
from .scalars import SLOT


def give_slots(statement: Statement, starts: Sequence[int]) -> bool:
    """Gives the number at each of `starts`, offsets in the text, its slot. Returns False, having
    marked nothing, where one of them is no value, or may mean another plan."""
    found = [node for root in _roots(statement) for node in _operands(root)]
    if not all(isinstance(node, exp.Literal) for node in found):
        return False  # a part under which a number is no value that may change
    places = {start: place for place, start in enumerate(starts)}
    slots = [places.get(node.meta.get("start", -1)) for node in found]
    if sorted(slot for slot in slots if slot is not None) != list(range(len(places))):
        return False
    for node, slot in zip(found, slots, strict=True):
        node.meta[SLOT] = slot
    return True


def _roots(statement: Statement) -> Iterator[exp.Expr]:
    """The trees whose numbers are values."""
    match statement:
        case Query(tree=exp.Select() as tree, as_of=None, lock=None):
            if tree.args.get("group") is None:  # of which items are compared with its keys
                items = [item.unalias() for item in tree.expressions]
                yield from (item for item in items if isinstance(item, exp.Add | exp.Sub | exp.Mul))
            joins = tree.args.get("joins") or ()
            yield from (join.args["on"] for join in joins if join.args.get("on") is not None)
            if tree.args.get("where") is not None:
                yield tree.args["where"].this
        case Update(where=where, assignments=assignments):
            yield from (value for _, value in assignments)
            if where is not None:
                yield where
        case Delete(where=where):
            if where is not None:
                yield where
        case Insert(source=exp.Values() as values, conflict=None):
            yield from values.expressions


_TRANSPARENT = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Paren, exp.In,
    exp.Between, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Tuple,
)  # fmt: skip
_LEAVES = (exp.Column, exp.Null, exp.Boolean, exp.CurrentTimestamp, exp.CurrentDate, exp.Is)


def _operands(tree: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(tree, _TRANSPARENT):
        for part in tree.iter_expressions():
            yield from _operands(part)
    elif not isinstance(tree, _LEAVES):
        yield tree
