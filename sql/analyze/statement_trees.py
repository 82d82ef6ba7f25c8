"""The trees among a statement's parts, and in parts of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

S = TypeVar("S")


def trees_in(part: object) -> Iterator[exp.Expr]:
    """Yields the trees of a statement."""
    if isinstance(part, exp.Expr):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from trees_in(item)
    elif hasattr(part, "__dataclass_fields__"):
        for name in part.__dataclass_fields__:
            yield from trees_in(getattr(part, name))


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
    if not hasattr(part, "__dataclass_fields__"):
        return part
    changed = {
        name: made
        for name in part.__dataclass_fields__
        if (made := _changed(value := getattr(part, name), change)) is not value
    }
    return replace(part, **changed) if changed else part  # type: ignore[type-var]
