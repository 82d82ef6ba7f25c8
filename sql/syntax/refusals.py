"""Errors at their places in a statement, and that for what is understood and not offered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlglot import exp

from ...catalog.values.errors import SQLError
from .statement import Option
from .trees import position_of


def unsupported(what: str, at: exp.Expr | int | None = None, hint: str | None = None) -> SQLError:
    """Returns the error (0A000) for `what`, which stands at a tree or at a position; the hint says
    what does the same."""
    position = position_of(at) if isinstance(at, exp.Expr) else at
    return SQLError("0A000", f"not supported: {what}", position=position, hint=hint)


def error_at(
    tree: exp.Expr | None, sqlstate: str, message: str, hint: str | None = None
) -> SQLError:
    """Returns an error for what stands at a tree."""
    return SQLError(sqlstate, message, position=position_of(tree), hint=hint)


@contextmanager
def at(position: int | None) -> Iterator[None]:
    """Gives the position to an error of its block that has none."""
    try:
        yield
    except SQLError as error:
        error.position = error.position or position
        raise


def refuse_twice(options: Iterable[Option], what: str = "option") -> None:
    """Raises SQLError 42601 where an option is given twice."""
    seen: set[str] = set()
    for option in options:
        if option.name in seen:
            message = f'{what} "{option.name}" specified more than once'
            raise SQLError("42601", message, position=option.position)
        seen.add(option.name)
