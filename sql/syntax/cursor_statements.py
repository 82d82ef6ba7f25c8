"""Statements about SQL cursors, as the parser hands them on."""

from __future__ import annotations

from enum import Enum

from .statement import NamedStatement, Syntax


class DeclareCursor(NamedStatement):
    """`text` is the query, with blanks in front so that its positions are true. `scroll` is None
    where nothing is said: then it may go backwards as long as it holds all of its rows."""

    grammar = (
        "DECLARE ^ name:cursor [INSENSITIVE/ASENSITIVE] [scroll:scroll] CURSOR "
        "[hold:WITH HOLD | WITHOUT HOLD] FOR text:query_text"
    )
    text: str
    scroll: bool | None
    hold: bool


class From(Enum):
    """From where FETCH counts."""

    HERE = "relative"  # behind the current row, or before it where the count is negative
    START = "absolute"  # from the first row, or from the last where the count is negative


class Direction(Syntax):
    """With `single` the row at `count` from `origin`; else the next `count` rows, backwards where
    it is negative, and all of that direction where it is None."""

    grammar = (
        "NEXT",
        ("FIRST", {"origin": From.START, "count": 1, "single": True}),
        ("LAST", {"origin": From.START, "count": -1, "single": True}),
        ("ABSOLUTE count:count", {"origin": From.START, "single": True}),
        ("RELATIVE count:count", {"single": True}),
        ("ALL", {"count": None}),
        ("FORWARD ALL", {"count": None}),
        ("BACKWARD ALL", {"count": None, "backward": True}),
    )
    origin: From = From.HERE
    count: int | None = 1
    single: bool = False
    backward: bool = False


class FetchCursor(NamedStatement, Direction):
    """FETCH, or MOVE."""

    moves: bool


class CloseCursor(NamedStatement):
    grammar = "CLOSE ^ name:cursor"


CursorStatement = DeclareCursor | FetchCursor | CloseCursor
