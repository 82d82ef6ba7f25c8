"""Statements about views, as the parser hands them on."""

from __future__ import annotations

from .names import ObjectName
from .statement import DropObjects, Statement

_VIEW = "name:view [columns:(column,…)] AS text:view_query"


class CreateView(Statement):
    """`text` is the query, with blanks in front so that its positions are true. `columns` are the
    names given for the query's first columns."""

    grammar = (
        f"CREATE VIEW if_not_exists:[IF NOT EXISTS] {_VIEW}",
        (f"CREATE OR REPLACE VIEW {_VIEW}", {"replaces": True}),
    )
    name: ObjectName
    columns: tuple[str, ...]
    text: str
    if_not_exists: bool = False
    replaces: bool = False


class DropView(DropObjects):
    grammar = "DROP VIEW if_exists:[IF EXISTS] names:view,… [cascade:CASCADE | RESTRICT]"


ViewStatement = CreateView | DropView
