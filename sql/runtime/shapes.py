"""Shapes: texts that differ in their numbers alone, parsed and planned once.

Clients of the simple protocol write their values into the text, so that no two texts are the same:

    SELECT abalance FROM accounts WHERE aid = 4711       shape   … WHERE aid = 0000
    SELECT abalance FROM accounts WHERE aid = 8150       shape   … WHERE aid = 0000

The first text of a shape is parsed, and its numbers become *slots*: in Python they are evaluated
to what the text at hand says. A number keeps its length in the shape, so what an error says of
positions is true of every text.

Only numbers that are values have slots: in items, in ON and WHERE, in assignments and in VALUES,
under comparisons and arithmetic. DuckDB takes them as parameters where they stand beside INT8. A
statement with a number elsewhere (LIMIT 10, ORDER BY 1, DECIMAL(8,2)) has a shape of its own, which
is no use to others, and neither is a DuckDB query with a number beside another type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from ...catalog.values.column_types import INT8_MAX
from ..analyze.scalars import SLOT
from ..plan.plans import (
    DeletePlan,
    Engine,
    InsertPlan,
    Plan,
    SelectPlan,
    UpdatePlan,
    engine_of,
)
from ..syntax.statements import Delete, Insert, Query, Statement, Update

SHAPED_LENGTH_MAX = 1000
"""Longer texts are lists of values, hardly ever two of one length."""

_QUOTING = ("'", "$", "\\", "--", "/*")
"""Texts with these take a tokenizer to be understood, which costs a third of parsing them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A text with zeros for the digits of its numbers; the numbers, and where they begin."""

    text: str
    numbers: tuple[int, ...]
    starts: tuple[int, ...]


def shape_of(text: str) -> Shape | None:
    """The shape of a text, or None where it has none that is worth knowing."""
    if len(text) > SHAPED_LENGTH_MAX or any(mark in text for mark in _QUOTING):
        return None
    parts: list[str] = []
    numbers: list[int] = []
    starts: list[int] = []
    done, at, end = 0, 0, len(text)
    while at < end:
        start, first = at, text[at]
        at += 1
        if first == '"':
            at = text.find('"', at) + 1
            if not at:
                return None  # a name without an end
        if not (first.isalnum() or first == "_"):
            continue
        while at < end and ((following := text[at]).isalnum() or following in "_."):
            at += 1
        word = text[start:at]
        if word.isdecimal() and word.isascii():
            number = int(word)
            if number > INT8_MAX:
                return None
            numbers.append(number)
            starts.append(start)
            parts += (text[done:start], "0" * len(word))
            done = at
        elif first.isdigit():
            return None  # 1.5, 1e3, 0x1F, or an error
    if not numbers:
        return None
    return Shape("".join([*parts, text[done:]]), tuple(numbers), tuple(starts))


class _Elsewhere(Exception):
    """There is something under which a number is no value that may change."""


def give_slots(statement: Statement, shape: Shape) -> bool:
    """Marks the numbers of a statement, and says whether each of the shape's is one of them."""
    try:
        found = [node for root in _roots(statement) for node in _numbers(root)]
    except _Elsewhere:
        return False
    places = {start: place for place, start in enumerate(shape.starts)}
    slots = [places.get(node.meta.get("start", -1)) for node in found]
    if sorted(slot for slot in slots if slot is not None) != list(range(len(places))):
        return False
    for node, slot in zip(found, slots, strict=True):
        node.meta[SLOT] = slot
    return True


def _roots(statement: Statement) -> Iterator[exp.Expr]:
    """The trees whose numbers are values."""
    match statement:
        case Query(tree=exp.Select() as tree, as_of=None, locks=()):
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


def _numbers(tree: exp.Expr) -> Iterator[exp.Literal]:
    if isinstance(tree, exp.Literal):
        yield tree
    elif isinstance(tree, _TRANSPARENT):
        for part in tree.iter_expressions():
            yield from _numbers(part)
    elif not isinstance(tree, _LEAVES):
        raise _Elsewhere


def serves_shape(plan: Plan) -> bool:
    """Whether a plan is for every text of its shape: each number is a slot wherever it is used."""
    match plan:
        case SelectPlan(locking=None, drawn=None):
            return engine_of(plan) is Engine.POINTS or not plan.analytic.fixed
        case InsertPlan(query=query, conflict=conflict):
            return query is None and conflict is None
        case UpdatePlan(finder=finder) | DeletePlan(finder=finder):
            return finder.analytic is None or not finder.analytic.fixed
    return False
