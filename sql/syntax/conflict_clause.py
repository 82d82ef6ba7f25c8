"""A clause of INSERT, as the parser hands it on: ON CONFLICT."""

from __future__ import annotations

from sqlglot import exp

from .statement import Syntax


class OnConflict(Syntax):
    """The ON CONFLICT clause.

    `columns` or `constraint` name the unique index that it is about; both are None for each of the
    table's. `updates` tells DO UPDATE from DO NOTHING, which has no `assignments` and no `where`.
    """

    columns: tuple[exp.Identifier, ...] | None
    constraint: exp.Identifier | None
    updates: bool
    assignments: tuple[tuple[exp.Column, exp.Expr], ...] = ()
    where: exp.Expr | None = None
    position: int | None = None
