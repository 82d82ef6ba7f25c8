"""The grammar of sequences."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.type_statements import AlterSequence, CreateSequence, SequenceChange
from ..cursor import Cursor, LexemeKind


def create_sequence(cursor: Cursor) -> CreateSequence:
    """`[IF NOT EXISTS] name [option …]`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = cursor.object_name("a sequence's name")
    change = sequence_options(cursor)
    return CreateSequence(name=name, change=change, if_not_exists=if_not_exists)


def alter_sequence(cursor: Cursor) -> AlterSequence:
    """`[IF EXISTS] name RENAME TO name`, or options, RESTART among them."""
    if_exists = cursor.accept_words("if", "exists")
    name = cursor.object_name("a sequence's name")
    new_name = None
    if cursor.accept_words("rename", "to"):
        new_name = cursor.identifier("a sequence's name")
    change = sequence_options(cursor)
    return AlterSequence(name=name, change=change, new_name=new_name, if_exists=if_exists)


def sequence_options(cursor: Cursor) -> SequenceChange:
    """The options up to the end of the statement, or of the parentheses around them."""
    position = cursor.position
    found: dict[str, object] = {}
    while not (cursor.finished or cursor.at_symbol(")")):
        sequence_option(cursor, found)
    return SequenceChange(position=position, **found)  # type: ignore[arg-type]


def sequence_option(cursor: Cursor, found: dict[str, object]) -> None:
    """Reads one option into the fields of a SequenceChange."""
    if cursor.accept_words("as"):
        found["bits"] = _width(cursor)
    elif cursor.accept_words("increment"):
        cursor.accept_words("by")
        found["increment"] = _number(cursor)
    elif cursor.accept_words("start"):
        cursor.accept_words("with")
        found["start"] = _number(cursor)
    elif cursor.accept_words("minvalue"):
        found["minimum"] = _number(cursor)
    elif cursor.accept_words("maxvalue"):
        found["maximum"] = _number(cursor)
    elif cursor.accept_words("no"):
        _negated(cursor, found)
    elif cursor.accept_words("cycle"):
        found["cycle"] = True
    elif cursor.accept_words("cache"):
        found["cache"] = _number(cursor)
    elif cursor.accept_words("owned", "by"):
        named = cursor.dotted_name("a column")
        found["owned_by"] = () if named.lower() == "none" else tuple(named.split("."))
    elif cursor.accept_words("sequence", "name"):
        found["name"] = cursor.object_name("a sequence's name")
    elif cursor.accept_words("restart"):
        found["restarts"] = True
        number = cursor.current.kind is LexemeKind.NUMBER or cursor.at_symbol("-")
        if cursor.accept_words("with") or number:
            found["restart"] = _number(cursor)
    else:
        cursor.fail(expected="an option of a sequence")


_WIDTHS = {
    "smallint": 16,
    "int2": 16,
    "int4": 32,
    "integer": 64,
    "int": 64,
    "bigint": 64,
    "int8": 64,
}
"""Bits by the name of a type, of which INTEGER is INT8 as it is for columns."""


def _width(cursor: Cursor) -> int:
    position = cursor.position
    bits = _WIDTHS.get(cursor.identifier("a type").lower())
    if bits is None:
        raise SQLError(
            "22023", "sequence type must be smallint, integer, or bigint", position=position
        )
    return bits


def _negated(cursor: Cursor, found: dict[str, object]) -> None:
    if cursor.accept_words("cycle"):
        found["cycle"] = False
    elif not (cursor.accept_words("minvalue") or cursor.accept_words("maxvalue")):
        cursor.fail(expected="MINVALUE, MAXVALUE or CYCLE")


def _number(cursor: Cursor) -> int:
    if cursor.accept_symbol("-"):
        return -cursor.integer("a whole number")
    return cursor.integer("a whole number")
