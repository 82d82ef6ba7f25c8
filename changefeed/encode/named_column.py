"""The columns that options name: `key_column`, and `headers_json_column_name` (`headers`).

    key_column = 'office'    key ["boston"]    value {"after": {"id": 7, "office": "boston"}}

Messages of one office go to one partition, whoever of it they are about. A row whose office changes
goes on in another partition, and so nobody is told of it in order.
"""

from __future__ import annotations

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import Datum
from ...catalog.values.errors import SQLError
from ..contract.changes import ChangeBatch


def named_column(table: TableDescriptor, name: str, option: str) -> Column:
    """The column of `table` that `option` names. Raises SQLError 42703."""
    for column in table.visible_columns:
        if column.name == name:
            return column
    raise SQLError(
        "42703",
        f'table "{table.name}" has no column "{name}", which the option {option} names',
        hint="Each table of the changefeed needs that column.",
    )


def column_values(batch: ChangeBatch, column: Column) -> list[Datum]:
    """The value of `column` in the row of each change: of a deletion, in the row that it removed,
    and None where it removed none."""
    assert batch.previous is not None or not batch.gone, "deletions tell the row before"
    assert batch.before is None or not batch.gone, "a backfill deletes nothing"
    place = batch.descriptor.visible_columns.index(column)
    rows = list(batch.iterate_rows())
    for gone in batch.gone:
        rows[gone] = batch.previous[gone] if batch.previous is not None else None
    return [None if row is None else row[place] for row in rows]
