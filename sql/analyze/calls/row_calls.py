"""Calls that do something each time: nextval, currval and setval as parts of expressions, and calls
that do something to sessions or keyspaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Protocol
from uuid import UUID

from sqlglot import exp

from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ...builtins.session_functions import SESSION_FUNCTIONS, SessionFunction
from ...syntax.trees import error_at, find_all

COMPUTED = "computed"
"""The function of a `Request` for a default that DuckDB computes."""

Request = tuple[str, str, tuple[int, bool] | None]
"""A value that a row waits for: a function of sequences, the name of the sequence and the arguments
of setval(); or COMPUTED and the text of a default that DuckDB computes."""


class Generators(Protocol):
    """Draws values that are different for every row, and answers what rows ask for."""

    def uuid(self) -> UUID:
        """Returns the value of gen_random_uuid()."""
        ...

    def rowid(self) -> int:
        """Returns the value of unique_rowid(), greater than each that this node drew before."""
        ...

    def random(self) -> float:
        """Returns the value of random(): at least 0, and below 1."""
        ...

    def ask(self, request: Request) -> object:
        """Returns the answer, for one row more. Raises ValueNeeded where it is not there yet."""
        ...


class ValueNeeded(Exception):
    """The statement must be evaluated again when a request has been answered. Never reaches a
    client.

    `wanted` is how many answers whoever asks knows that it will ask for.
    """

    wanted = 1

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.request = request


FUNCTIONS: dict[str, tuple[int, ...]] = {"nextval": (1,), "currval": (1,), "setval": (2, 3)}
"""The functions of sequences, and how many arguments each takes."""


def is_sequence_call(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() in FUNCTIONS


def draw_of(sequence: str) -> exp.Anonymous:
    """`nextval('sequence')`"""
    return exp.Anonymous(this="nextval", expressions=[exp.Literal.string(sequence)])


def sequence_arguments(call: exp.Expr) -> list[exp.Expr]:
    """Returns the arguments of a call. Raises SQLError 42883 for a wrong number of them."""
    function = call.name.lower()
    if len(call.expressions) not in FUNCTIONS[function]:
        raise SQLError("42883", f"function {function} takes another number of arguments")
    given: list[exp.Expr] = call.expressions
    return given


def ask_sequence(function: str, generators: Generators, arguments: Sequence[object]) -> object:
    """Carries a call out; NULL of NULL. Raises SQLError 42804."""
    if None in arguments:
        return None
    name, *others = arguments
    if not others:
        return generators.ask((function, str(name), None))
    value, *called = others
    if not isinstance(value, int | Decimal) or value != int(value):
        raise SQLError("42804", f"setval takes a whole number, not {value}")
    given = int(value), not called or bool(called[0])
    return generators.ask((function, str(name), given))


def draws(tree: exp.Expr) -> bool:
    """Whether an expression asks anything of a sequence."""
    return any(map(is_sequence_call, find_all(tree, exp.Anonymous)))


# Calls that do something to sessions or keyspaces, or wait for something, once for each row of a
# query's result.
#
#     SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ada'
#     SELECT pg_try_advisory_lock(id), id FROM jobs ORDER BY id LIMIT 1
#     SELECT wait_for_changefeed(7, NULL, '5s')
#     SELECT raw_put('sessions', 'ada', 'signed in', '1h')
#
# Nothing may call them twice, so they are no part of what DuckDB evaluates: they are items of the
# outermost SELECT, and are called when its rows are there (`drawn_items`). What they do is told by
# `sql.execute.admin.session_calls`, and `sql.builtins.session_functions` what they are called with.


class SessionCalls(Protocol):
    """Carries calls out, for one statement."""

    async def call(self, name: str, arguments: Sequence[Datum]) -> Datum:
        """Returns the function's result. Raises SQLError."""
        ...


def session_function(tree: exp.Expr) -> SessionFunction | None:
    """The function that a node calls, if it is one of these. Raises SQLError 42883 for a wrong
    number of arguments."""
    if not isinstance(tree, exp.Anonymous):
        return None
    name = tree.name.lower()
    found = SESSION_FUNCTIONS.get(name)
    if found is not None and len(tree.expressions) not in found.counts:
        raise error_at(
            tree,
            "42883",
            f"function {name} takes another number of arguments",
            f"It takes {' or '.join(map(str, found.counts))}.",
        )
    return found


def calls_in(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    """The calls in a tree that do something each time. Raises SQLError as `session_function`."""
    for node in find_all(tree, exp.Anonymous):
        if is_sequence_call(node) or session_function(node) is not None:
            yield node


def refuse_session_call(node: exp.Expr) -> None:
    """Raises SQLError 0A000 for such a call that is left in what DuckDB would evaluate."""
    if session_function(node) is not None:
        raise error_at(
            node,
            "0A000",
            f"{node.name.lower()} cannot be called here",
            "Call it as an item of the outermost SELECT, beside no DISTINCT.",
        )
