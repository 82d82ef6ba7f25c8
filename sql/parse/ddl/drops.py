"""The grammar of DROP."""

from __future__ import annotations

from collections.abc import Callable

from ...syntax.statements import Statement
from ..cursor import Cursor


def drop_behaviour(cursor: Cursor) -> bool:
    """`[CASCADE | RESTRICT]`: whether it says CASCADE."""
    if cursor.accept_words("cascade"):
        return True
    cursor.accept_words("restrict")
    return False


def drop_objects(make: Callable[..., Statement], what: str) -> Callable[[Cursor], Statement]:
    """`[IF EXISTS] name, … [CASCADE | RESTRICT]`, of objects in schemas"""

    def grammar(cursor: Cursor) -> Statement:
        if_exists = cursor.accept_words("if", "exists")
        names = cursor.names(what)
        return make(names=names, if_exists=if_exists, cascade=drop_behaviour(cursor))

    return grammar


def drop_named(make: Callable[..., Statement], what: str) -> Callable[[Cursor], Statement]:
    """`[IF EXISTS] name`, of what is in no schema"""

    def grammar(cursor: Cursor) -> Statement:
        if_exists = cursor.accept_words("if", "exists")
        position = cursor.position
        return make(name=cursor.identifier(what), if_exists=if_exists, position=position)

    return grammar
