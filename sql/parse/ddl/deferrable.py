"""DEFERRABLE and INITIALLY behind a constraint: foreign keys alone may be deferrable."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.statements import SetConstraints
from ..cursor import Cursor


def deferral(cursor: Cursor) -> tuple[bool, bool]:
    """Reads `[[NOT] DEFERRABLE] [INITIALLY {DEFERRED | IMMEDIATE}]` in either order: whether the
    constraint is deferrable, and whether it is deferred initially."""
    deferrable: bool | None = None
    deferred = False
    while True:
        position = cursor.position
        if cursor.accept_words("not", "deferrable"):
            deferrable = False
        elif cursor.accept_words("deferrable"):
            deferrable = True
        elif cursor.accept_words("initially", "deferred"):
            deferred = True
        elif not cursor.accept_words("initially", "immediate"):
            return bool(deferrable or deferred), deferred
        if deferrable is False and deferred:
            raise SQLError(
                "42601",
                "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
                position=position,
            )


def not_deferrable(cursor: Cursor) -> None:
    """Reads `[NOT DEFERRABLE] [INITIALLY IMMEDIATE]`. Raises SQLError 0A000 for the contrary."""
    position = cursor.position
    deferrable, _ = deferral(cursor)
    if deferrable:
        raise SQLError(
            "0A000",
            "only foreign keys are deferrable",
            hint="A key holds at the end of each statement, by its index: leave DEFERRABLE out.",
            position=position,
        )


def set_constraints(cursor: Cursor) -> SetConstraints:
    """`{ALL | name [, …]} {DEFERRED | IMMEDIATE}`"""
    named = not cursor.accept_words("all")
    names = cursor.names("ALL, or a constraint's name") if named else ()
    deferred = cursor.accept_words("deferred")
    if not (deferred or cursor.accept_words("immediate")):
        cursor.fail(expected="DEFERRED or IMMEDIATE")
    return SetConstraints(names=names, deferred=deferred)
