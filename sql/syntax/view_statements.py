"""Statements about views, as the parser hands them on."""

from __future__ import annotations

from .names import ObjectName
from .statement import DropObjects, Statement


class CreateView(Statement):
    """`text` is the query, with blanks in front so that its positions are true. `columns` are the
    names given for the query's first columns."""

    name: ObjectName
    columns: tuple[str, ...]
    text: str
    if_not_exists: bool
    replaces: bool


class RenameView(Statement):
    name: ObjectName
    new_name: str
    if_exists: bool
    position: int


class DropView(DropObjects):
    pass


ViewStatement = CreateView | RenameView | DropView
