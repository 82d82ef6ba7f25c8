"""CASCADE and RESTRICT at the end of a DROP."""

from __future__ import annotations

from ..cursor import Cursor


def drop_behaviour(cursor: Cursor) -> bool:
    """`[CASCADE | RESTRICT]`: whether it says CASCADE."""
    if cursor.accept_words("cascade"):
        return True
    cursor.accept_words("restrict")
    return False
