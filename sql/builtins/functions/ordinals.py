"""The endings of ordinal numbers: 1st, 2nd, 3rd, 11th."""

from __future__ import annotations

from ....catalog.values.errors import SQLError

_ENDINGS = {"1": "st", "2": "nd", "3": "rd"}


def ordinal_ending(digits: str, *, upper: bool) -> str:
    """What stands behind a number that is written so. Raises SQLError 22P02."""
    if not digits[-1:].isdecimal():
        raise SQLError("22P02", f'"{digits}" is not a number')
    teen = len(digits) > 1 and digits[-2] == "1"
    ending = "th" if teen else _ENDINGS.get(digits[-1:], "th")
    return ending.upper() if upper else ending
