"""Batches of rows to be written: columns by name, completed by the rules of their table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.arrow_conform import conform
from ....catalog.values.arrow_columns import column_array
from ....catalog.values.physical import to_physical
from ...analyze.default_expressions import computed_given, draw_defaults
from ...analyze.scalars import Bindings
from ...runtime.query_evaluator import QueryEvaluator
from .row_expressions import rows_of
from .row_rules import RowRules


async def encode_batch(
    rules: RowRules,
    batch: pa.RecordBatch,
    bindings: Bindings,
    analytics: QueryEvaluator,
    *,
    keys: list[bytes] | None = None,
) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Keys and bodies of the rows of a batch. Columns that it lacks take their defaults. `keys` are
    its rows' where they are known.

    Raises SQLError as `conform` does, and 23514 for a row of which a check is false.
    """
    whole = conform(rules.table, _with_drawn(rules.table, batch, bindings))
    if rules.plain:
        return rules.codec.encode_columns(whole, keys=keys)
    rows = await rules.complete_all(rows_of(whole), bindings, analytics)
    pairs = [rules.codec.encode_row(row) for row in rows]
    return [key for key, _ in pairs], [body for _, body in pairs]


def _with_drawn(
    table: TableDescriptor, batch: pa.RecordBatch, bindings: Bindings
) -> pa.RecordBatch:
    """The batch with a column more for each that it lacks whose default is drawn row by row.

    A computed column may not be given; it is computed later.
    """
    names, arrays = list(batch.schema.names), list(batch.columns)
    lacking = []
    for column in table.visible_columns:
        given = column.name in names
        if column.computed is not None and given:
            raise computed_given(column.name)
        if not given and column.default_expression is not None:
            lacking.append(column)
    if not lacking:
        return batch
    drawn = draw_defaults(lacking, batch.num_rows, bindings)
    for column, values in zip(lacking, drawn, strict=True):
        names.append(column.name)
        arrays.append(column_array(column.type, [to_physical(column.type, v) for v in values]))
    return pa.RecordBatch.from_arrays(arrays, names=names)
