"""The grammar of DECLARE, FETCH, MOVE and CLOSE."""

from __future__ import annotations

from ..syntax.changefeed_statements import FetchSubscription
from ..syntax.cursor_statements import CloseCursor, DeclareCursor, FetchCursor, From
from .admin.subscriptions import fetch_subscription
from .cursor import Cursor, LexemeKind
from .queries import parse_query

_WORDS = ("next", "prior", "first", "last", "absolute", "relative", "all", "forward", "backward")


def declare(cursor: Cursor) -> DeclareCursor:
    """`name [INSENSITIVE] [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR query`"""
    position = cursor.position
    name = cursor.identifier("a cursor's name")
    if cursor.at_words("binary"):
        cursor.fail(hint="The format of rows is the protocol's: leave BINARY out.")
    _ = cursor.accept_words("insensitive") or cursor.accept_words("asensitive")
    scroll: bool | None = None
    if cursor.accept_words("no", "scroll"):
        scroll = False
    elif cursor.accept_words("scroll"):
        scroll = True
    cursor.expect_words("cursor")
    hold = cursor.accept_words("with", "hold")
    cursor.accept_words("without", "hold")
    cursor.expect_words("for")
    if cursor.finished:
        cursor.fail(expected="a query")
    tokens = cursor.rest()
    parse_query(cursor.text, tokens)
    start, end = tokens[0].start, tokens[-1].end + 1
    text = " " * start + cursor.text[start:end]
    return DeclareCursor(name=name, text=text, scroll=scroll, hold=hold, position=position)


def fetch(cursor: Cursor) -> FetchCursor | FetchSubscription:
    """`[direction] [FROM | IN] name`, or `… FROM SUBSCRIPTION name`"""
    direction = _direction(cursor)
    _ = cursor.accept_words("from") or cursor.accept_words("in")
    if _directs(cursor, "subscription") and cursor.accept_words("subscription"):
        origin, count, single, backward = direction
        if origin is not From.HERE or single or backward:
            cursor.fail(hint="A subscription is read forwards: FETCH 100, or FETCH ALL.")
        return fetch_subscription(cursor, count)
    return _of_cursor(cursor, direction, moves=False)


def move(cursor: Cursor) -> FetchCursor:
    """`[direction] [FROM | IN] name`"""
    direction = _direction(cursor)
    _ = cursor.accept_words("from") or cursor.accept_words("in")
    return _of_cursor(cursor, direction, moves=True)


def close(cursor: Cursor) -> CloseCursor:
    position = cursor.position
    name = cursor.identifier("a cursor's name")
    cursor.expect_end()
    return CloseCursor(name=name, position=position)


def _of_cursor(
    cursor: Cursor, direction: tuple[From, int | None, bool, bool], *, moves: bool
) -> FetchCursor:
    origin, count, single, backward = direction
    position = cursor.position
    name = cursor.identifier("a cursor's name")
    cursor.expect_end()
    return FetchCursor(
        name=name,
        origin=origin,
        count=count,
        single=single,
        backward=backward,
        moves=moves,
        position=position,
    )


def _direction(cursor: Cursor) -> tuple[From, int | None, bool, bool]:
    """From where, how many, whether it is one row alone, and whether it goes back."""
    if _numbered(cursor):
        return _counted(_signed(cursor))
    word = next((word for word in _WORDS if _directs(cursor, word)), None)
    if word is not None:
        cursor.accept_words(word)
    match word:
        case None | "next":
            return From.HERE, 1, False, False
        case "prior":
            return From.HERE, -1, False, True
        case "first":
            return From.START, 1, True, False
        case "last":
            return From.START, -1, True, False
        case "absolute":
            return From.START, _signed(cursor), True, False
        case "relative":
            return From.HERE, _signed(cursor), True, False
        case "all":
            return From.HERE, None, False, False
    sign = -1 if word == "backward" else 1
    if cursor.accept_words("all"):
        return From.HERE, None, False, sign < 0
    if _numbered(cursor):
        return _counted(sign * _signed(cursor))
    return _counted(sign)


def _counted(count: int) -> tuple[From, int | None, bool, bool]:
    return From.HERE, count, count == 0, count < 0


def _directs(cursor: Cursor, word: str) -> bool:
    """Whether the word is a direction, and not the name of the cursor: that ends the statement."""
    return cursor.at_words(word) and cursor.current.token_index < len(cursor.tokens) - 1


def _numbered(cursor: Cursor) -> bool:
    return cursor.current.kind is LexemeKind.NUMBER or cursor.at_symbol("-")


def _signed(cursor: Cursor) -> int:
    sign = -1 if cursor.accept_symbol("-") else 1
    return sign * cursor.integer("a number of rows")
