"""Columns that are not in `SELECT *`: the key of a table that was made without one."""

from __future__ import annotations

from collections.abc import Iterable

from ....catalog.store.catalog import ColumnDefinition
from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import TypeKind

ROWID = "rowid"


def hidden_key(columns: Iterable[ColumnDefinition]) -> ColumnDefinition:
    """The key of a table that is made without one, as CockroachDB's: `rowid`, or `rowid_1`, …"""
    taken = {column.name for column in columns}
    name, number = ROWID, 0
    while name in taken:
        number += 1
        name = f"{ROWID}_{number}"
    return ColumnDefinition(
        name=name,
        type=ColumnType(TypeKind.INT8),
        nullable=False,
        default_expression="UNIQUE_ROWID()",
        hidden=True,
    )
