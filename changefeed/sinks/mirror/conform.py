"""Late rows: what was committed below a schema event and came behind it, as the table is now.

A row under `v1 (k, note)` in a mirror of `v2 (k, remark, extra DEFAULT 7)`, `note` renamed:

    (1, 'x')   ->   (1, 'x', 7)

Columns are matched by id. One that the row was written without takes its missing value, which is
how the store itself reads it; one that was rewritten is NULL until the backfill brings the row.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.arrow_columns import AnyArray, constant_array
from ....catalog.values.physical import physical_of
from ....kvlayer.keys import index_prefix
from ...contract.changes import ChangeBatch

KEY_PREFIX_LENGTH = len(index_prefix(1, 1))


def conform(batch: ChangeBatch, table: TableDescriptor) -> ChangeBatch:
    """The batch as one under `table`, a later version with the same primary key."""
    old = batch.descriptor
    assert old.primary_key == table.primary_key, (old, table)
    place = {column.id: index for index, column in enumerate(old.visible_columns)}
    sources = [(place.get(column.id), column) for column in table.visible_columns]
    keys = batch.keys
    if old.primary_index_id != table.primary_index_id:
        prefix = index_prefix(table.id, table.primary_index_id)
        keys = [prefix + key[KEY_PREFIX_LENGTH:] for key in keys]
    if batch.columns is None:
        assert batch.rows is not None, batch
        rows = [
            None
            if row is None
            else tuple(column.missing if index is None else row[index] for index, column in sources)
            for row in batch.rows
        ]
        return replace(batch, descriptor=table, keys=keys, rows=rows)
    columns = batch.columns
    arrays: list[AnyArray] = [
        constant_array(column.type, physical_of(column.type, column.missing), columns.num_rows)
        if index is None
        else columns.column(index)
        for index, column in sources
    ]
    names = [column.name for column in table.visible_columns]
    return replace(
        batch,
        descriptor=table,
        keys=keys,
        columns=pa.RecordBatch.from_arrays(arrays, names=names),
    )
