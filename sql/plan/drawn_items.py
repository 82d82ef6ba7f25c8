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

from ...catalog.values.column_types import INT8, ColumnType
from ...catalog.values.errors import SQLError
from ..analyze.calls.row_calls import calls_in, sequence_arguments, session_function
from ..analyze.columns.output_columns import output_name
from ..analyze.scalars import evaluates
from ..builtins.macros import cast_to
from ..builtins.session_functions import SessionFunction
from ..results.results import ResultColumn
from ..syntax.trees import folded, position_of


@dataclass(frozen=True, slots=True)
class DrawnCall:
    """A call for `SessionCalls`, or of a function of sequences where `function` is None. Its
    arguments are `texts`, or operands by their places."""

    name: str
    function: SessionFunction | None
    places: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def type(self) -> ColumnType:
        return INT8 if self.function is None else self.function.result


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnItems:
    """The items of a query that draw, by their places, and what each draws: all of sequences, or
    all by calls for `SessionCalls`. The query computes so many operands behind its own items."""

    places: tuple[int, ...]
    draws: tuple[DrawnCall, ...]
    operand_count: int

    def shown(self, columns: Sequence[ResultColumn]) -> tuple[ResultColumn, ...]:
        """The columns of the result, by those of the query without draws."""
        found = list(columns[: len(columns) - self.operand_count])
        for place, draw in zip(self.places, self.draws, strict=True):
            found[place] = ResultColumn(found[place].name, draw.type)
        return tuple(found)


def split_items(tree: exp.Expr) -> tuple[exp.Select, DrawnItems] | None:
    """The query without its draws, its operands behind its items, and what draws; None where no
    item draws for rows. Raises SQLError 0A000 for one that would be drawn before others see it."""
    if not isinstance(tree, exp.Select):
        return None
    items = [item for item in tree.expressions if not isinstance(item.unalias(), exp.Column)]
    calls = [call for item in items for call in calls_in(item)]
    if not calls:
        return None
    alone = tree.args.get("from_") is None and not any(map(session_function, calls))
    if alone and all(map(evaluates, calls)):
        return None  # one row, whose draws are parameters of the query
    return _split(tree.copy())


def _split(query: exp.Select) -> tuple[exp.Select, DrawnItems]:
    if query.args.get("distinct") is not None:
        hint = "Put the DISTINCT into a subquery."
        raise _refused(query, "a value cannot be drawn beside DISTINCT", hint)
    places: list[int] = []
    draws: list[DrawnCall] = []
    operands: list[exp.Expr] = []
    for place, item in enumerate(list(query.expressions)):
        if item.is_star:
            raise _refused(item, "a value cannot be drawn beside a star", "Name the columns.")
        calls = list(calls_in(item))
        if not calls:
            continue
        call = item.unalias().unnest()
        if call is not calls[0]:
            hint = "Call it as an item of its own, and compute with it around the query."
            raise _refused(item, "a value cannot be drawn within an expression", hint)
        places.append(place)
        draws.append(_draw(call, operands))
        _refuse_order(query, item, place)
        zero = exp.cast(exp.Literal.number(0), exp.DataType.Type.BIGINT)
        item.replace(exp.alias_(zero, output_name(item), quoted=True))
    query.set("expressions", [*query.expressions, *operands])
    if len({draw.function is None for draw in draws}) > 1:
        what = "functions of sessions cannot be called beside nextval or setval"
        raise _refused(query, what, "Write two statements.")
    return query, DrawnItems(places=tuple(places), draws=tuple(draws), operand_count=len(operands))


def _draw(call: exp.Anonymous, operands: list[exp.Expr]) -> DrawnCall:
    """The call over a row of the operands, to which its own are added."""
    function = session_function(call)
    arguments = sequence_arguments(call) if function is None else call.expressions
    if function is None and all(argument.is_string for argument in arguments):
        texts = tuple(argument.name for argument in arguments)
        return DrawnCall(call.name.lower(), function, texts=texts)
    first = len(operands)
    for number, argument in enumerate(arguments):
        if list(calls_in(argument)):
            raise _refused(argument, f"{call.name.lower()} takes nothing drawn", "Draw before.")
        given = argument.copy()
        if function is not None:
            given = cast_to(given, function.argument(number))
        operands.append(exp.alias_(given, f"$o{len(operands)}", quoted=True))
    return DrawnCall(call.name.lower(), function, tuple(range(first, len(operands))))


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
