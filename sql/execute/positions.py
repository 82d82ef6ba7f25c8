"""Positions of errors in their statements, and options that are given twice."""

from __future__ import annotations

from collections.abc import Iterable

from ...catalog.values.errors import SQLError
from ..syntax.names import Option
from ..syntax.refusals import at as at


def refuse_twice(options: Iterable[Option], what: str = "option") -> None:
    """Raises SQLError 42601 where an option is given twice."""
    seen: set[str] = set()
    for option in options:
        if option.name in seen:
            message = f'{what} "{option.name}" specified more than once'
            raise SQLError("42601", message, position=option.position)
        seen.add(option.name)
