"""Statements about types and sequences, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass

from .names import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEnum:
    name: ObjectName
    labels: tuple[str, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AddEnumValue:
    """ALTER TYPE … ADD VALUE: behind all others unless a neighbour is named."""

    name: ObjectName
    label: str
    before: str | None
    after: str | None
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameEnumValue:
    name: ObjectName
    label: str
    new_label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameType:
    name: ObjectName
    new_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType:
    names: tuple[ObjectName, ...]
    if_exists: bool
    cascade: bool


TypeStatement = CreateEnum | AddEnumValue | RenameEnumValue | RenameType | DropType


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceChange:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSequence:
    name: ObjectName
    change: SequenceChange
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSequence:
    name: ObjectName
    change: SequenceChange
    new_name: str | None
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSequence:
    names: tuple[ObjectName, ...]
    if_exists: bool
    cascade: bool


SequenceStatement = CreateSequence | AlterSequence | DropSequence
