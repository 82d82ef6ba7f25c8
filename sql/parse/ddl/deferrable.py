"""DEFERRABLE and INITIALLY behind a constraint, of which there is one kind here."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ..cursor import Cursor


def not_deferrable(cursor: Cursor) -> None:
    """Reads `[NOT DEFERRABLE] [INITIALLY IMMEDIATE]`. Raises SQLError 0A000 for the contrary."""
    while True:
        if cursor.accept_words("not", "deferrable") or cursor.accept_words(
            "initially", "immediate"
        ):
            continue
        if cursor.at_words("deferrable") or cursor.at_words("initially", "deferred"):
            raise SQLError(
                "0A000",
                "deferrable constraints are not supported",
                hint="Each constraint holds at the end of each statement: leave DEFERRABLE out.",
                position=cursor.position,
            )
        return


def set_constraints(cursor: Cursor) -> str:
    """`ALL {DEFERRED | IMMEDIATE}`, which is about constraints that are deferrable, so about none.
    Raises SQLError 42809 for one that is named."""
    if not cursor.accept_words("all"):
        position, name = cursor.position, cursor.object_name("ALL, or a constraint's name")
        raise SQLError("42809", f'constraint "{name}" is not deferrable', position=position)
    if not (cursor.accept_words("deferred") or cursor.accept_words("immediate")):
        cursor.fail(expected="DEFERRED or IMMEDIATE")
    cursor.expect_end()
    return "SET CONSTRAINTS"
