"""nextval, currval, setval and lastval as parts of expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Protocol

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...parse import position_of
from ...syntax.walks import find_all


class SequenceGenerators(Protocol):
    """Answers what expressions ask of sequences, which it knows by the names that they give."""

    def nextval(self, name: str) -> int: ...
    def currval(self, name: str) -> int: ...
    def setval(self, name: str, value: int, called: bool) -> int: ...
    def lastval(self) -> int: ...


class ValueNeeded(Exception):
    """The statement must be evaluated again when a value has been drawn. Never reaches a client.

    `wanted` is how many values whoever asks knows that it will ask for.
    """

    wanted = 1


class ExpressionNeeded(ValueNeeded):
    """Values of an expression that DuckDB evaluates: a default (`row_expressions`)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class SequenceNeeded(ValueNeeded):
    """Values of a sequence, or the sequence itself.

    `draws` tells a call that needs values, `set_to` one that sets the sequence, from one that only
    needs to know it.
    """

    def __init__(
        self, name: str, *, draws: bool = False, set_to: tuple[int, bool] | None = None
    ) -> None:
        super().__init__(name)
        self.name = name
        self.draws = draws
        self.set_to = set_to


FUNCTIONS = ("nextval", "currval", "setval", "lastval")

SequenceCall = Callable[[SequenceGenerators], int]


def sequence_call(tree: exp.Expr) -> SequenceCall | None:
    """Returns the sequence call of an expression, or None for any other. Raises SQLError 0A000 for
    a name or a value that is computed."""
    if not isinstance(tree, exp.Anonymous) or tree.name.lower() not in FUNCTIONS:
        return None
    function, given = tree.name.lower(), tree.expressions
    if function == "lastval":
        return lambda generators: generators.lastval()
    name = _name(tree)
    if function == "nextval":
        return lambda generators: generators.nextval(name)
    if function == "currval":
        return lambda generators: generators.currval(name)
    if len(given) not in (2, 3):
        raise SQLError("42883", "function setval takes a sequence, a value, and a bool")
    value = _integer(given[1])
    called = len(given) == 2 or bool(given[2].this)
    return lambda generators: generators.setval(name, value, called)


def is_sequence_call(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() in FUNCTIONS


def computes_arguments(call: exp.Anonymous) -> bool:
    """Whether a call's arguments have to be computed, as not all of them are literals."""
    try:
        sequence_call(call)
    except SQLError as error:
        return error.sqlstate == "0A000"
    return False


def computed_call(
    call: exp.Anonymous,
) -> Callable[[SequenceGenerators, Sequence[object]], int | None]:
    """Returns a call with its arguments' values; None where one of them is NULL. Raises SQLError
    42883 for a wrong number of them."""
    function = call.name.lower()
    counts = {"setval": (2, 3)}.get(function, (1,))
    if len(call.expressions) not in counts:
        raise SQLError("42883", f"function {function} takes another number of arguments")

    def ask(generators: SequenceGenerators, arguments: Sequence[object]) -> int | None:
        if None in arguments:
            return None
        name, *others = arguments
        if function == "nextval":
            return generators.nextval(str(name))
        if function == "currval":
            return generators.currval(str(name))
        value, *called = others
        if not isinstance(value, int | Decimal) or value != int(value):
            raise SQLError("42804", f"setval takes a whole number, not {value}")
        return generators.setval(str(name), int(value), not called or bool(called[0]))

    return ask


def draws(tree: exp.Expr) -> bool:
    """Whether an expression asks anything of a sequence."""
    return any(node.name.lower() in FUNCTIONS for node in find_all(tree, exp.Anonymous))


def always_evaluated(call: exp.Expr) -> None:
    """Raises SQLError 0A000 for a call that need not be evaluated for every row."""
    if call.find_ancestor(*_LAZY) is not None:
        raise SQLError(
            "0A000",
            f"{call.name.lower()} cannot stand where it may not be evaluated",
            position=position_of(call),
            hint="Take it out of CASE, COALESCE, AND or OR.",
        )


_LAZY = (exp.Case, exp.If, exp.Coalesce, exp.And, exp.Or)


def _name(tree: exp.Anonymous) -> str:
    argument = tree.expressions[0] if tree.expressions else None
    if isinstance(argument, exp.Cast):  # 's'::regclass
        argument = argument.this
    if not isinstance(argument, exp.Literal) or not argument.is_string:
        raise SQLError("0A000", f"{tree.name.lower()} takes the name of a sequence as a literal")
    return str(argument.this)


def _integer(tree: exp.Expr) -> int:
    negative = isinstance(tree, exp.Neg)
    literal = tree.this if negative else tree
    if not isinstance(literal, exp.Literal) or not str(literal.this).isdecimal():
        raise SQLError("0A000", "setval takes a whole number as a literal")
    return -int(literal.this) if negative else int(literal.this)
