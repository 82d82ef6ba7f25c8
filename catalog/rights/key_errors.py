"""Errors that quote values of rows: who may not read the rows is not told the values.

INSERT INTO orders VALUES (1, 'b')
    duplicate key value violates unique constraint "orders_pkey"
    DETAIL: Key (k)=(1) already exists.             for who has SELECT on orders
"""

from __future__ import annotations

from collections.abc import Sequence

from ..descriptors.descriptor import TableDescriptor
from ..descriptors.elements import IndexKind
from ..rows.index_codec import IndexCodec
from ..store.show_create import plain_text, primary_key_name
from ..values.column_types import Datum
from ..values.errors import SQLError, Violated
from .privileges import Privilege
from .rights import Rights


class ConstraintViolated(SQLError):
    """Rows of `tables` violate a constraint; the detail says which, by their values."""

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str,
        violated: Violated,
        tables: Sequence[TableDescriptor],
    ) -> None:
        super().__init__(sqlstate, message, detail=detail, violated=violated)
        self.tables = tuple(tables)


def told_to(error: SQLError, rights: Rights, user: str) -> SQLError:
    """The error as the user may know it."""
    if not isinstance(error, ConstraintViolated):
        return error
    if all(rights.allow(user, table, Privilege.SELECT) for table in error.tables):
        return error
    told = SQLError(
        error.sqlstate,
        error.message,
        hint=error.hint,
        position=error.position,
        violated=error.violated,
    )
    told.statement = error.statement
    return told


def duplicate_key(table: TableDescriptor, key: Sequence[Datum]) -> SQLError:
    """The error of an INSERT of a key that exists; `key` holds the key columns' datums."""
    names = [column.name for column in table.key_columns]
    return _duplicate(table, primary_key_name(table), names, key)


def duplicate_values(table: TableDescriptor, codec: IndexCodec, body: bytes) -> SQLError:
    """The error of a second row with equal values in a unique index; `body` is the row's."""
    index = codec.index
    name = primary_key_name(table) if index.kind is IndexKind.PRIMARY else index.name
    names = [table.column_by_id(id).name.partition("~")[0] for id in index.columns]
    return _duplicate(table, name, names, codec.values(body))


def _duplicate(
    table: TableDescriptor, constraint: str, names: Sequence[str], values: Sequence[Datum]
) -> SQLError:
    told = ", ".join(map(plain_text, values))
    return ConstraintViolated(
        "23505",
        f'duplicate key value violates unique constraint "{constraint}"',
        detail=f"Key ({', '.join(names)})=({told}) already exists.",
        violated=Violated(table.name, constraint=constraint),
        tables=[table],
    )
