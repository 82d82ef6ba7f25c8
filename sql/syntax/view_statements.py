"""Statements about views, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass

from .names import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """`text` is the query, with blanks in front so that its positions are true. `columns` are the
    names given for the query's first columns."""

    name: ObjectName
    columns: tuple[str, ...]
    text: str
    if_not_exists: bool
    replaces: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameView:
    name: ObjectName
    new_name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView:
    names: tuple[ObjectName, ...]
    if_exists: bool
    cascade: bool


ViewStatement = CreateView | RenameView | DropView
