"""Positions of errors in their statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ...catalog.values.errors import SQLError
from ..syntax.names import Option


class Positioned(Protocol):
    """A part of a statement that knows where it begins."""

    @property
    def position(self) -> int: ...


S = TypeVar("S")
G = TypeVar("G", bound=Positioned)
P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def at(position: int | None) -> Iterator[None]:
    """Gives the position to an error of its block that has none."""
    try:
        yield
    except SQLError as error:
        error.position = error.position or position
        raise


def placed(method: Callable[Concatenate[S, G, P], R]) -> Callable[Concatenate[S, G, P], R]:
    """Decorates a method: an error without a position gets that of the method's first argument."""

    @wraps(method)
    def wrapper(self: S, given: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with at(given.position):
            return method(self, given, *args, **kwargs)

    return wrapper


def refuse_twice(options: Iterable[Option], what: str = "option") -> None:
    """Raises SQLError 42601 where an option is given twice."""
    seen: set[str] = set()
    for option in options:
        if option.name in seen:
            message = f'{what} "{option.name}" specified more than once'
            raise SQLError("42601", message, position=option.position)
        seen.add(option.name)
