"""Schema steps: what a schema event does to the Delta table that mirrors a table.

    nothing          no column of the Delta table changes: LOCK, SET NOT NULL, a longer VARCHAR
    GROW             ADD COLUMN: the Delta table gets the column, and old rows have NULL
    REWRITE          DROP or RENAME COLUMN, a column with a default: the Delta table is written
                     anew, in one commit
    REPLACE          TRUNCATE, another primary key, another type: rows as of the event take the
                     place of those that were there, in one commit

Columns are known by id. Delta has no way to drop or rename a column, or to give old rows a default,
that every reader knows: files are written anew instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.type_kinds import TypeKind
from ....schemafeed.table_events import EventKind, TableEvent, rewrites
from ...contract.options import ChangefeedOptions, SchemaChangePolicy
from ..held_rows import COMMIT_TIMESTAMP
from ..lake.columns import KEY, OPERATION, constant_column, lake_schema

NATURAL = frozenset(
    {
        TypeKind.BOOL,
        TypeKind.INT2,
        TypeKind.INT4,
        TypeKind.INT8,
        TypeKind.DECIMAL,
        TypeKind.STRING,
        TypeKind.VARCHAR,
        TypeKind.CHAR,
        TypeKind.BYTES,
        TypeKind.DATE,
        TypeKind.TIME,
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMPTZ,
        TypeKind.UUID,
    }
)
"""Types of which two values are equal in a Delta table when they are in the store. 0.0 and -0.0 are
one key of the store, a month and thirty days too, and the labels of an ENUM change."""


class Step(Enum):
    """The change of a Delta table for a schema event."""

    NOTHING = "nothing"
    GROW = "grow"
    REWRITE = "rewrite"
    REPLACE = "replace"


def key_columns(table: TableDescriptor) -> list[str]:
    """The columns by which a mirror finds its rows."""
    columns = table.key_columns
    natural = all(each.type.kind in NATURAL and each.type.element is None for each in columns)
    if natural and not any(column.hidden for column in columns):
        return [column.name for column in columns]
    return [KEY]


def mirror_schema(table: TableDescriptor) -> pa.Schema:
    """The columns of the Delta table that mirrors `table`."""
    schema = lake_schema(table)
    schema = schema.remove(schema.get_field_index(OPERATION))
    if key_columns(table) == [KEY]:
        return schema.insert(len(schema) - 1, pa.field(KEY, pa.binary()))
    return schema


def plan_step(event: TableEvent, before: TableDescriptor, options: ChangefeedOptions) -> Step:
    """Returns how the event changes a Delta table with the columns of `before`."""
    after = event.after
    backfills = options.schema_change_policy is SchemaChangePolicy.BACKFILL
    if event.kinds & (EventKind.TRUNCATE | EventKind.PRIMARY_KEY_CHANGE):
        return Step.REPLACE
    if rewrites(event.before, after) and backfills:
        return Step.REPLACE
    old, new = mirror_schema(before), mirror_schema(after)
    known = {column.id: column for column in before.shown_columns}
    if _shape(before) == _shape(after) and old == new:
        return Step.NOTHING
    added = [column for column in after.shown_columns if column.id not in known]
    kept = _shape(after)[: len(known)] == _shape(before)
    if kept and not any(column.missing is not None for column in added):
        return Step.GROW
    return Step.REWRITE


def rewritten(
    batches: Iterator[pa.RecordBatch], before: TableDescriptor, after: TableDescriptor
) -> Iterator[pa.RecordBatch]:
    """The rows of a mirror of `before` as rows of a mirror of `after`."""
    schema = mirror_schema(after)
    old = {column.id: column for column in before.shown_columns}
    new = {column.name: column for column in after.shown_columns}
    for batch in batches:
        arrays = []
        for field in schema:
            column = new.get(field.name)
            if column is None:
                assert field.name in (KEY, COMMIT_TIMESTAMP), field
                found: Any = batch.column(field.name)
            elif column.id not in old:
                found = constant_column(column, column.missing, batch.num_rows)
            else:
                found = batch.column(old[column.id].name)
            arrays.append(pc.cast(found, field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _shape(table: TableDescriptor) -> list[tuple[int, str]]:
    return [(column.id, column.name) for column in table.shown_columns]
