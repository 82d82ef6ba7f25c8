"""Errors that quote values of rows: who may not read the rows is not told the values.

INSERT INTO orders VALUES (1, 'b')
    duplicate key value violates unique constraint "orders_pkey"
    DETAIL: Key (k)=(1) already exists.             for who has SELECT on orders
"""

from __future__ import annotations

from collections.abc import Sequence

from .descriptor import TableDescriptor
from .errors import SQLError
from .privileges import Privilege
from .rights import Rights


class ConstraintViolated(SQLError):
    """Rows of `tables` violate a constraint; the detail says which, by their values."""

    def __init__(
        self, sqlstate: str, message: str, *, detail: str, tables: Sequence[TableDescriptor]
    ) -> None:
        super().__init__(sqlstate, message, detail=detail)
        self.tables = tuple(tables)


def told_to(error: SQLError, rights: Rights, user: str) -> SQLError:
    """The error as the user may know it."""
    if not isinstance(error, ConstraintViolated):
        return error
    if all(rights.allow(user, table, Privilege.SELECT) for table in error.tables):
        return error
    told = SQLError(error.sqlstate, error.message, hint=error.hint, position=error.position)
    told.statement = error.statement
    return told
