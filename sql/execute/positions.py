"""Positions of errors in their statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ...catalog.values.errors import SQLError
from ..syntax.names import Option


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
