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
