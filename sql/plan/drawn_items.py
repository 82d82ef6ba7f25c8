"""Items of a query that draw from sequences, or do something to sessions, for each of its rows.

    SELECT nextval('s') * 2 + count(*), note AS n FROM t GROUP BY note ORDER BY n LIMIT 3

is the query without its draws, whose rows are then completed, in their order:

    SELECT 0, note AS n, count(*) FROM t GROUP BY note ORDER BY n LIMIT 3
    SELECT "$d0" * 2 + "$o0" FROM "$rows"

`setval(pg_get_serial_sequence('t', 'id'), max(id))`, whose arguments are computed, is such a call,
and so is every call of `session_calls`, which is carried out once for each row.

A value is drawn for each row of the result, behind ORDER BY and LIMIT, as PostgreSQL does it.
What would have to be drawn before (within a subquery, for DISTINCT, in WHERE) is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ..analyze.calls.sequence_calls import (
    always_evaluated,
    computed_call,
    computes_arguments,
    is_sequence_call,
)
from ..analyze.calls.session_calls import session_function
from ..analyze.columns.output_names import output_name
from ..analyze.scalars import INT8, Bindings, Scalar, Values, compile_scalar
from ..builtins.session_functions import SessionFunction
from ..parse import folded, position_of, text_of
from ..syntax.tree_names import CAST_TYPE
from ..syntax.walks import find_all

OPERAND = "$o"
DRAWN = "$d"

_FROM_ROWS = (exp.Column, exp.Query, exp.AggFunc, exp.Window)
"""Nodes that only the query itself can evaluate."""


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item of a query by its place: an expression over columns `$o0`, … (the operands that the
    query computes behind its own items) and `$d0`, … (the values that are drawn)."""

    place: int
    tree: exp.Expr

    @property
    def drawn_place(self) -> int | None:
        """Returns the place of the drawn value that an item is, or None for other items."""
        tree = self.tree.unnest()
        plain = isinstance(tree, exp.Column) and tree.name.startswith(DRAWN)
        return int(tree.name.removeprefix(DRAWN)) if plain else None


@dataclass(frozen=True, slots=True)
class DrawnCall:
    """A call of `session_calls`, its arguments being operands by their places."""

    name: str
    function: SessionFunction
    places: tuple[int, ...]

    @property
    def type(self) -> ColumnType:
        return self.function.result


Draws = tuple[Scalar, ...] | tuple[DrawnCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnItems:
    """The items of a query that draw. Those behind a star count from the end: a negative place.

    `draws` are all of sequences, or all calls of `session_calls`.
    """

    items: tuple[DrawnItem, ...]
    draws: Draws
    operand_count: int

    def type_of(self, place: int) -> ColumnType:
        """Returns the type of a drawn value."""
        type = self.draws[place].type
        assert type is not None, place
        return type


def split_items(tree: exp.Expr) -> tuple[exp.Select, DrawnItems] | None:
    """The query without its draws, its operands behind its items, and what draws; None where no
    item draws for rows. Raises SQLError 0A000 for one that would be drawn before others see it."""
    if not isinstance(tree, exp.Select):
        return None
    calls = [call for item in tree.expressions for call in _calls(item)]
    if not calls:
        return None
    alone = tree.args.get("from_") is None and not any(map(session_function, calls))
    if alone and not any(map(computes_arguments, calls)):
        return None  # one row, whose draws are parameters of the query
    return _Split(tree.copy()).made()


def without_draws(tree: exp.Select) -> exp.Select:
    """The query with a value in place of each draw: it has the same columns."""
    query = tree.copy()
    for place, item in enumerate(list(query.expressions)):
        calls, name = _calls(item), output_name(item)
        for call in calls:
            function = session_function(call)
            call.replace(_zero() if function is None else _nothing(function.result))
        if calls and not isinstance(item, exp.Alias):
            made = query.expressions[place]
            made.replace(exp.alias_(made.copy(), name, quoted=True))
    return query


class _Split:
    def __init__(self, query: exp.Select) -> None:
        self._query = query
        self._draws: list[Scalar] = []
        self._session_calls: list[DrawnCall] = []
        self._operands: list[exp.Expr] = []

    def made(self) -> tuple[exp.Select, DrawnItems]:
        query = self._query
        _refuse_early(query)
        items: list[DrawnItem] = []
        stars = [place for place, item in enumerate(query.expressions) if item.is_star]
        for place, item in enumerate(list(query.expressions)):
            if not _calls(item):
                continue
            if len(stars) > 1:
                raise _refused(
                    item,
                    "a value cannot be drawn beside several stars",
                    "Name the columns.",
                )
            counted = place - len(query.expressions) if stars and place > stars[0] else place
            items.append(DrawnItem(counted, self._taken_apart(item.unalias())))
            _refuse_order(query, item, place)
            item.replace(exp.alias_(_zero(), output_name(item), quoted=True))
        query.set("expressions", [*query.expressions, *self._operands])
        if self._draws and self._session_calls:
            raise _refused(
                query,
                f"{self._session_calls[0].name} cannot be called beside nextval or setval",
                "Write two statements.",
            )
        calls = tuple(self._session_calls)
        drawn: Draws = calls if calls else tuple(self._draws)
        return query, DrawnItems(items=tuple(items), draws=drawn, operand_count=len(self._operands))

    def _taken_apart(self, tree: exp.Expr) -> exp.Expr:
        """The expression over what is drawn and what the query computes."""
        if is_sequence_call(tree):
            assert isinstance(tree, exp.Anonymous), tree
            always_evaluated(tree)
            self._draws.append(self._draw(tree))
            return exp.column(f"{DRAWN}{len(self._draws) - 1}", quoted=True)
        function = session_function(tree)
        if function is not None:
            assert isinstance(tree, exp.Anonymous), tree
            always_evaluated(tree)
            self._session_calls.append(self._session_call(tree, function))
            return exp.column(f"{DRAWN}{len(self._session_calls) - 1}", quoted=True)
        if not _calls(tree):
            if tree.find(*_FROM_ROWS) is None:
                return tree.copy()
            return exp.column(f"{OPERAND}{self._operand(tree)}", quoted=True)
        if isinstance(tree, _FROM_ROWS):
            raise _refused(tree, f"a value cannot be drawn within {text_of(tree)}", "Draw outside.")
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

    def _session_call(self, call: exp.Anonymous, function: SessionFunction) -> DrawnCall:
        places = []
        for number, argument in enumerate(call.expressions):
            if _calls(argument):
                raise _refused(argument, f"{call.name.lower()} takes nothing drawn", "Draw before.")
            type = function.argument(number)
            cast = exp.cast(argument.copy(), type.duckdb_name, dialect="duckdb")
            cast.meta[CAST_TYPE] = type
            places.append(self._operand(cast))
        return DrawnCall(call.name.lower(), function, tuple(places))

    def _draw(self, call: exp.Anonymous) -> Scalar:
        """The call over a row of the operands."""
        if not computes_arguments(call):
            return compile_scalar(call, {})
        for argument in call.expressions:
            if _calls(argument):
                raise _refused(argument, f"{call.name.lower()} takes nothing drawn", "Draw before.")
        ask = computed_call(call)
        places = [self._operand(argument) for argument in call.expressions]

        def evaluate(values: Values, bindings: Bindings) -> object:
            assert bindings.generators is not None, "a sequence is asked without generators"
            return ask(bindings.generators, [values[place] for place in places])

        return Scalar(INT8, evaluate, False)


def _calls(tree: exp.Expr) -> Sequence[exp.Anonymous]:
    return [
        node
        for node in find_all(tree, exp.Anonymous)
        if is_sequence_call(node) or session_function(node) is not None
    ]


def _zero() -> exp.Expr:
    return exp.cast(exp.Literal.number(0), exp.DataType.Type.BIGINT)


def _nothing(type: ColumnType) -> exp.Expr:
    cast = exp.cast(exp.Null(), type.duckdb_name, dialect="duckdb")
    cast.meta[CAST_TYPE] = type
    return cast


def _refuse_early(query: exp.Select) -> None:
    if query.args.get("distinct") is not None:
        raise _refused(
            query,
            "a value cannot be drawn beside DISTINCT",
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
                "a query cannot be ordered by what it draws",
                "What is drawn has the order of the rows already.",
            )


def _refused(tree: exp.Expr, message: str, hint: str) -> SQLError:
    return SQLError("0A000", message, hint=hint, position=position_of(tree))
