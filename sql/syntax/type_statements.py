"""Statements about types and sequences, as the parser hands them on."""

from __future__ import annotations

from .names import ObjectName
from .statement import DropObjects, Statement, Syntax


class CreateEnum(Statement):
    grammar = (
        "CREATE TYPE if_not_exists:[IF NOT EXISTS] name:type [AS] "
        "ENUM '(' [labels:label_text,…] ')'"
    )
    name: ObjectName
    labels: tuple[str, ...]
    if_not_exists: bool


class AddEnumValue(Statement):
    """Behind all others unless a neighbour is named."""

    grammar = (
        "ALTER TYPE name:type ADD VALUE if_not_exists:[IF NOT EXISTS] label:label_text "
        "[BEFORE before:label_text | AFTER after:label_text]"
    )
    name: ObjectName
    label: str
    before: str | None
    after: str | None
    if_not_exists: bool


class RenameEnumValue(Statement):
    grammar = "ALTER TYPE name:type RENAME VALUE label:label_text TO new_label:label_text"
    name: ObjectName
    label: str
    new_label: str


class DropType(DropObjects):
    grammar = "DROP TYPE if_exists:[IF EXISTS] names:type,… [cascade:CASCADE | RESTRICT]"


TypeStatement = CreateEnum | AddEnumValue | RenameEnumValue | DropType


class SequenceChange(Syntax):
    """The options that are said of a sequence, None for the others.

    `owned_by` are the parts of a column's name, empty for NONE. `restarts` tells RESTART from none,
    `restart` is its value, if it has one. `bits` are those of AS type: the values are within them.
    """

    position: int
    bits: int | None = None
    start: int | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    cycle: bool | None = None
    cache: int | None = None
    owned_by: tuple[str, ...] | None = None
    restarts: bool = False
    restart: int | None = None
    name: ObjectName | None = None
    """SEQUENCE NAME, of a sequence that is made with its column."""


class CreateSequence(Statement):
    grammar = "CREATE SEQUENCE if_not_exists:[IF NOT EXISTS] name:sequence change:sequence_options"
    name: ObjectName
    change: SequenceChange
    if_not_exists: bool


class AlterSequence(Statement):
    grammar = "ALTER SEQUENCE if_exists:[IF EXISTS] name:sequence change:sequence_options"
    name: ObjectName
    change: SequenceChange
    if_exists: bool


class DropSequence(DropObjects):
    grammar = "DROP SEQUENCE if_exists:[IF EXISTS] names:sequence,… [cascade:CASCADE | RESTRICT]"


SequenceStatement = CreateSequence | AlterSequence | DropSequence
