"""The grammar of SET ROLE and SET SESSION AUTHORIZATION, which are variables as well.

[ROLE | SESSION AUTHORIZATION] {name | 'name' | NONE | DEFAULT}
{role | session_authorization} {= | TO} …
RESET {ROLE | SESSION AUTHORIZATION | session_authorization}
"""

from __future__ import annotations

from ..syntax.rights_statements import ActAs
from .cursor import Cursor, LexemeKind

_WRITTEN: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("session", "authorization"), True),
    (("session_authorization",), True),
    (("role",), False),
)
"""The words, and whether they are about the session's user."""


def acting_user(cursor: Cursor, *, local: bool) -> ActAs | None:
    """What stands behind SET [LOCAL], if it is about who the session acts as."""
    for words, session in _WRITTEN:
        if cursor.accept_words(*words):
            _ = cursor.accept_words("to") or cursor.accept_symbol("=")
            position = cursor.position
            name = _name(cursor, session)
            cursor.expect_end()
            return ActAs(name=name, session=session, local=local, reset=False, position=position)
    return None


def reset_acting_user(cursor: Cursor) -> ActAs | None:
    """What stands behind RESET, likewise."""
    position = cursor.position
    for words, session in _WRITTEN:
        if cursor.accept_words(*words):
            cursor.expect_end()
            return ActAs(name=None, session=session, local=False, reset=True, position=position)
    return None


def _name(cursor: Cursor, session: bool) -> str | None:
    if cursor.current.kind is LexemeKind.STRING:
        name = cursor.advance().text
        return None if name == "none" and not session else name
    if cursor.accept_words("default") or (not session and cursor.accept_words("none")):
        return None
    return cursor.identifier("a role's name")
