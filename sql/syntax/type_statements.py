"""Statements about types and sequences, as the parser hands them on."""

from __future__ import annotations

from .names import ObjectName
from .statement import DropObjects, Statement, Syntax


class CreateEnum(Statement):
    name: ObjectName
    labels: tuple[str, ...]
    if_not_exists: bool


class AddEnumValue(Statement):
    """ALTER TYPE … ADD VALUE: behind all others unless a neighbour is named."""

    name: ObjectName
    label: str
    before: str | None
    after: str | None
    if_not_exists: bool


class RenameEnumValue(Statement):
    name: ObjectName
    label: str
    new_label: str


class RenameType(Statement):
    name: ObjectName
    new_name: str


class DropType(DropObjects):
    pass


TypeStatement = CreateEnum | AddEnumValue | RenameEnumValue | RenameType | DropType


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
    name: ObjectName
    change: SequenceChange
    if_not_exists: bool


class AlterSequence(Statement):
    name: ObjectName
    change: SequenceChange
    new_name: str | None
    if_exists: bool


class DropSequence(DropObjects):
    pass


SequenceStatement = CreateSequence | AlterSequence | DropSequence
