"""Rules of writing identity columns: GENERATED ALWAYS takes values only by OVERRIDING."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column
from ....catalog.descriptors.elements import Identity
from ....catalog.values.errors import SQLError
from ...parse import position_of
from ...syntax.conflict_clause import Overriding


def ignores(column: Column, overriding: Overriding | None) -> bool:
    """Whether an INSERT draws a value though it is given one."""
    return column.identity is not None and overriding is Overriding.USER


def refuse_inserted(
    column: Column, overriding: Overriding | None, item: exp.Expr | None = None
) -> None:
    """Raises SQLError 428C9 where an INSERT may not give the column a value."""
    if column.identity is Identity.ALWAYS and overriding is None:
        raise SQLError(
            "428C9",
            f'cannot insert a non-DEFAULT value into column "{column.name}"',
            detail=_detail(column),
            hint="Use OVERRIDING SYSTEM VALUE to override.",
            position=None if item is None else position_of(item),
        )


def refuse_updated(column: Column, target: exp.Expr) -> None:
    """Raises SQLError 428C9 where an UPDATE may give the column no value but DEFAULT."""
    if column.identity is Identity.ALWAYS:
        raise SQLError(
            "428C9",
            f'column "{column.name}" can only be updated to DEFAULT',
            detail=_detail(column),
            position=position_of(target),
        )


def _detail(column: Column) -> str:
    return f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'
