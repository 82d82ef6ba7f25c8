"""Items of a query that draw from sequences, for each of its rows.

    SELECT nextval('s') * 2 + count(*), note AS n FROM t GROUP BY note ORDER BY n LIMIT 3

is the query without its draws, whose rows are then completed, in their order:

    SELECT 0, note AS n, count(*) FROM t GROUP BY note ORDER BY n LIMIT 3
    SELECT "$d0" * 2 + "$o0" FROM "$rows"

`setval(pg_get_serial_sequence('t', 'id'), max(id))`, whose arguments are computed, is such a call.

A value is drawn for each row of the result, behind ORDER BY and LIMIT, as PostgreSQL does it.
What would have to be drawn before (within a subquery, for DISTINCT, in WHERE) is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from ..catalog.errors import SQLError
from .parser import folded, position_of, text_of
from .postgres.output_names import output_name
from .scalars import INT8, Bindings, Scalar, Values, compile_scalar
from .sequence_calls import (
    always_evaluated,
    computed_call,
    computes_arguments,
    draws,
    is_sequence_call,
)

OPERAND = "$o"
DRAWN = "$d"

_FROM_ROWS = (exp.Column, exp.Query, exp.AggFunc, exp.Window)
"""What only the query itself can evaluate."""


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item of a query by its place: an expression over columns `$o0`, … (the operands that the
    query computes behind its own items) and `$d0`, … (the values that are drawn)."""

    place: int
    tree: exp.Expr

    @property
    def drawn_place(self) -> int | None:
        """Which of the drawn values it is, if it is nothing else."""
        tree = self.tree.unnest()
        plain = isinstance(tree, exp.Column) and tree.name.startswith(DRAWN)
        return int(tree.name.removeprefix(DRAWN)) if plain else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnItems:
    """The items of a query that draw. Those behind a star count from the end: a negative place."""

    items: tuple[DrawnItem, ...]
    draws: tuple[Scalar, ...]
    operand_count: int


def split_items(tree: exp.Expr) -> tuple[exp.Select, DrawnItems] | None:
    """The query without its draws, its operands behind its items, and what draws; None where no
    item draws for rows. Raises SQLError 0A000 for one that would be drawn before others see it."""
    if not isinstance(tree, exp.Select) or not any(draws(item) for item in tree.expressions):
        return None
    calls = [call for item in tree.expressions for call in _calls(item)]
    if tree.args.get("from_") is None and not any(map(computes_arguments, calls)):
        return None  # one row, whose draws are parameters of the query
    return _Split(tree.copy()).made()


def without_draws(tree: exp.Select) -> exp.Select:
    """The query with a zero in place of each draw: it has the same columns."""
    query = tree.copy()
    for item in query.expressions:
        for call in list(_calls(item)):
            call.replace(_zero())
    return query


class _Split:
    def __init__(self, query: exp.Select) -> None:
        self._query = query
        self._draws: list[Scalar] = []
        self._operands: list[exp.Expr] = []

    def made(self) -> tuple[exp.Select, DrawnItems]:
        query = self._query
        _refuse_early(query)
        items: list[DrawnItem] = []
        stars = [place for place, item in enumerate(query.expressions) if item.is_star]
        for place, item in enumerate(list(query.expressions)):
            if not draws(item):
                continue
            if len(stars) > 1:
                raise _refused(
                    item,
                    "a sequence cannot be drawn from beside several stars",
                    "Name the columns.",
                )
            counted = place - len(query.expressions) if stars and place > stars[0] else place
            items.append(DrawnItem(counted, self._taken_apart(item.unalias())))
            _refuse_order(query, item, place)
            item.replace(exp.alias_(_zero(), output_name(item), quoted=True))
        query.set("expressions", [*query.expressions, *self._operands])
        return query, DrawnItems(
            items=tuple(items), draws=tuple(self._draws), operand_count=len(self._operands)
        )

    def _taken_apart(self, tree: exp.Expr) -> exp.Expr:
        """The expression over what is drawn and what the query computes."""
        if is_sequence_call(tree):
            assert isinstance(tree, exp.Anonymous), tree
            always_evaluated(tree)
            self._draws.append(self._draw(tree))
            return exp.column(f"{DRAWN}{len(self._draws) - 1}", quoted=True)
        if not draws(tree):
            if tree.find(*_FROM_ROWS) is None:
                return tree.copy()
            return exp.column(f"{OPERAND}{self._operand(tree)}", quoted=True)
        if isinstance(tree, _FROM_ROWS):
            raise _refused(
                tree, f"a sequence cannot be drawn from within {text_of(tree)}", "Draw outside."
            )
        made = tree.copy()
        for name, part in tree.args.items():
            if isinstance(part, exp.Expr):
                made.set(name, self._taken_apart(part))
            elif isinstance(part, list):
                made.set(
                    name, [self._taken_apart(p) if isinstance(p, exp.Expr) else p for p in part]
                )
        return made

    def _operand(self, tree: exp.Expr) -> int:
        place = len(self._operands)
        self._operands.append(exp.alias_(tree.copy(), f"{OPERAND}{place}", quoted=True))
        return place

    def _draw(self, call: exp.Anonymous) -> Scalar:
        """The call over a row of the operands."""
        if not computes_arguments(call):
            return compile_scalar(call, {})
        for argument in call.expressions:
            if draws(argument):
                raise _refused(argument, f"{call.name.lower()} takes nothing drawn", "Draw before.")
        ask = computed_call(call)
        places = [self._operand(argument) for argument in call.expressions]

        def evaluate(values: Values, bindings: Bindings) -> object:
            assert bindings.generators is not None, "a sequence is asked without generators"
            return ask(bindings.generators, [values[place] for place in places])

        return Scalar(INT8, evaluate, False)


def _calls(tree: exp.Expr) -> Sequence[exp.Anonymous]:
    return [node for node in tree.find_all(exp.Anonymous) if is_sequence_call(node)]


def _zero() -> exp.Expr:
    return exp.cast(exp.Literal.number(0), exp.DataType.Type.BIGINT)


def _refuse_early(query: exp.Select) -> None:
    if query.args.get("distinct") is not None:
        raise _refused(
            query,
            "a sequence cannot be drawn from beside DISTINCT",
            "Put the DISTINCT into a subquery.",
        )


def _refuse_order(query: exp.Select, item: exp.Expr, place: int) -> None:
    """A query cannot be ordered by what is drawn in its order."""
    order = query.args.get("order")
    for key in order.expressions if order is not None else ():
        value = key.this.unnest()
        number = isinstance(value, exp.Literal) and value.this == str(place + 1)
        named = isinstance(value, exp.Column) and value.args.get("table") is None
        if number or (named and isinstance(item, exp.Alias) and folded(value.this) == item.alias):
            raise _refused(
                value,
                "a query cannot be ordered by what it draws from a sequence",
                "What is drawn has the order of the rows already.",
            )


def _refused(tree: exp.Expr, message: str, hint: str) -> SQLError:
    return SQLError("0A000", message, hint=hint, position=position_of(tree))
