"""The option `key_column`: messages whose key is a column's value in place of the primary key.

    key_column = 'office'    key ["boston"]    value {"after": {"id": 7, "office": "boston"}}

Messages of one office go to one partition, whoever of it they are about. A row whose office changes
goes on in another partition, and so nobody is told of it in order.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import Datum
from ...catalog.values.errors import SQLError
from ..contract.changes import ChangeBatch


def key_column(table: TableDescriptor, name: str) -> Column:
    """The column of `table` that keys have the values of. Raises SQLError 42703."""
    for column in table.visible_columns:
        if column.name == name:
            return column
    raise SQLError(
        "42703",
        f'table "{table.name}" has no column "{name}", which the option key_column names',
        hint="Each table of the changefeed needs that column.",
    )


def check_key_columns(tables: Iterable[TableDescriptor], name: str | None) -> None:
    """Raises SQLError 42703 where one of the tables lacks the column that is named, if one is."""
    if name is not None:
        for table in tables:
            key_column(table, name)


def key_values(batch: ChangeBatch, column: Column) -> list[Datum]:
    """The value of `column` in the row of each change: of a deletion, in the row that it removed,
    and None where it removed none."""
    assert batch.previous is not None or not batch.gone, "deletions tell the row before"
    assert batch.before is None or not batch.gone, "a backfill deletes nothing"
    place = batch.descriptor.visible_columns.index(column)
    rows = list(batch.iterate_rows())
    for gone in batch.gone:
        rows[gone] = batch.previous[gone] if batch.previous is not None else None
    return [None if row is None else row[place] for row in rows]
