"""Items of a query that draw from sequences, or do something to sessions, for each of its rows.

    SELECT nextval('s'), note AS n FROM t GROUP BY note ORDER BY n LIMIT 3

is the query without its draws, whose rows are then completed, in their order:

    SELECT 0, note AS n FROM t GROUP BY note ORDER BY n LIMIT 3

`setval(pg_get_serial_sequence('t', 'id'), max(id))`, whose arguments the query computes behind its
items, is such a call, and so is every call for `SessionCalls`, which is carried out once for each
row.

A value is drawn for each row of the result, behind ORDER BY and LIMIT, as PostgreSQL does it.
What is computed with one, and what would have to be drawn before (within a subquery, for DISTINCT,
in WHERE), is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ..analyze.calls.row_calls import is_sequence_call, sequence_arguments, session_function
from ..analyze.columns.output_columns import output_name
from ..analyze.scalars import Scalar, compile_scalar, drawn_by, evaluates
from ..builtins.macros import cast_to
from ..builtins.session_functions import SessionFunction
from ..results.results import ResultColumn
from ..syntax.trees import find_all, folded, position_of


@dataclass(frozen=True, slots=True)
class DrawnCall:
    """A call for `SessionCalls`, its arguments being operands by their places."""

    name: str
    function: SessionFunction
    places: tuple[int, ...]

    @property
    def type(self) -> ColumnType:
        return self.function.result


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnItems:
    """The items of a query that draw, by their places, and what each draws: all of sequences, or
    all by calls for `SessionCalls`. The query computes so many operands behind its own items."""

    places: tuple[int, ...]
    draws: tuple[Scalar, ...] | tuple[DrawnCall, ...]
    operand_count: int

    def shown(self, columns: Sequence[ResultColumn]) -> tuple[ResultColumn, ...]:
        """The columns of the result, by those of the query without draws."""
        found = list(columns[: len(columns) - self.operand_count])
        types = [draw.type for draw in self.draws]
        for place, type in zip(self.places, types, strict=True):
            assert type is not None, self
            found[place] = ResultColumn(found[place].name, type)
        return tuple(found)


def split_items(tree: exp.Expr) -> tuple[exp.Select, DrawnItems] | None:
    """The query without its draws, its operands behind its items, and what draws; None where no
    item draws for rows. Raises SQLError 0A000 for one that would be drawn before others see it."""
    if not isinstance(tree, exp.Select):
        return None
    items = [item for item in tree.expressions if not isinstance(item.unalias(), exp.Column)]
    calls = [call for item in items for call in _calls(item)]
    if not calls:
        return None
    alone = tree.args.get("from_") is None and not any(map(session_function, calls))
    if alone and all(map(evaluates, calls)):
        return None  # one row, whose draws are parameters of the query
    return _Split(tree.copy()).made()


class _Split:
    def __init__(self, query: exp.Select) -> None:
        self._query = query
        self._operands: list[exp.Expr] = []

    def made(self) -> tuple[exp.Select, DrawnItems]:
        query = self._query
        if query.args.get("distinct") is not None:
            hint = "Put the DISTINCT into a subquery."
            raise _refused(query, "a value cannot be drawn beside DISTINCT", hint)
        places: list[int] = []
        draws: list[Scalar] = []
        session_calls: list[DrawnCall] = []
        for place, item in enumerate(list(query.expressions)):
            if item.is_star:
                raise _refused(item, "a value cannot be drawn beside a star", "Name the columns.")
            if not _calls(item):
                continue
            places.append(place)
            call = item.unalias().unnest()
            function = session_function(call)
            if function is not None:
                session_calls.append(self._session_call(call, function))
            elif is_sequence_call(call):
                draws.append(self._draw(call))
            else:
                hint = "Call it as an item of its own, and compute with it around the query."
                raise _refused(item, "a value cannot be drawn within an expression", hint)
            _refuse_order(query, item, place)
            zero = exp.cast(exp.Literal.number(0), exp.DataType.Type.BIGINT)
            item.replace(exp.alias_(zero, output_name(item), quoted=True))
        query.set("expressions", [*query.expressions, *self._operands])
        if draws and session_calls:
            what = f"{session_calls[0].name} cannot be called beside nextval or setval"
            raise _refused(query, what, "Write two statements.")
        return query, DrawnItems(
            places=tuple(places),
            draws=tuple(session_calls) or tuple(draws),
            operand_count=len(self._operands),
        )

    def _operand(self, call: exp.Anonymous, argument: exp.Expr) -> int:
        if _calls(argument):
            raise _refused(argument, f"{call.name.lower()} takes nothing drawn", "Draw before.")
        place = len(self._operands)
        self._operands.append(exp.alias_(argument.copy(), f"$o{place}", quoted=True))
        return place

    def _session_call(self, call: exp.Anonymous, function: SessionFunction) -> DrawnCall:
        places = []
        for number, argument in enumerate(call.expressions):
            cast = cast_to(argument.copy(), function.argument(number))
            places.append(self._operand(call, cast))
        return DrawnCall(call.name.lower(), function, tuple(places))

    def _draw(self, call: exp.Anonymous) -> Scalar:
        """The call over a row of the operands."""
        if evaluates(call):
            return compile_scalar(call, {})
        places = [self._operand(call, argument) for argument in sequence_arguments(call)]
        return drawn_by(call.name.lower(), [_at(place) for place in places])


def _at(place: int) -> Scalar:
    """An operand by its place."""
    return Scalar(None, lambda values, bindings: values[place], False)


def _calls(tree: exp.Expr) -> Sequence[exp.Anonymous]:
    return [
        node
        for node in find_all(tree, exp.Anonymous)
        if is_sequence_call(node) or session_function(node) is not None
    ]


def _refuse_order(query: exp.Select, item: exp.Expr, place: int) -> None:
    """A query cannot be ordered by what is drawn in its order."""
    order = query.args.get("order")
    for key in order.expressions if order is not None else ():
        value = key.this.unnest()
        number = isinstance(value, exp.Literal) and value.this == str(place + 1)
        named = isinstance(value, exp.Column) and value.args.get("table") is None
        if number or (named and isinstance(item, exp.Alias) and folded(value.this) == item.alias):
            hint = "What is drawn has the order of the rows already."
            raise _refused(value, "a query cannot be ordered by what it draws", hint)


def _refused(tree: exp.Expr, message: str, hint: str) -> SQLError:
    return SQLError("0A000", message, hint=hint, position=position_of(tree))
