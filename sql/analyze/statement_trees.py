"""The trees among a statement's parts, and in parts of parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from ..syntax.statement import Syntax

S = TypeVar("S")


def trees_in(part: object) -> list[exp.Expr]:
    """Returns the trees of a statement."""
    found: list[exp.Expr] = []
    _collect(part, found)
    return found


def _collect(part: object, found: list[exp.Expr]) -> None:
    if isinstance(part, exp.Expr):
        found.append(part)
    elif isinstance(part, tuple):
        for item in part:
            _collect(item, found)
    elif isinstance(part, Syntax):
        for value in vars(part).values():
            if value:
                _collect(value, found)


def with_trees(statement: S, change: Callable[[exp.Expr], exp.Expr]) -> S:
    """The statement with what `change` makes of each of its trees."""
    made = _changed(statement, change)
    assert isinstance(made, type(statement)), made
    return made


def _changed(part: object, change: Callable[[exp.Expr], exp.Expr]) -> object:
    if isinstance(part, exp.Expr):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_changed(item, change) for item in part)
    if not isinstance(part, Syntax):
        return part
    changed = {
        name: made
        for name, value in vars(part).items()
        if value and (made := _changed(value, change)) is not value
    }
    return replace(part, **changed) if changed else part  # type: ignore[type-var]
