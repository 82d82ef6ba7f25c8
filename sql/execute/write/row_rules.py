"""Rules for every written row, and for batches of rows, beyond the statement's own values.

Computed columns, columns that are coming and going and that no statement knows, and checks. A table
without any of these is *plain*, and its rows are encoded as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.rows.arrow_conform import conform
from ....catalog.rows.row_codec import RowCodec, codec_for
from ....catalog.values.arrow_columns import column_array
from ....catalog.values.column_types import Datum, coerce
from ....catalog.values.physical import to_physical
from ...analyze.default_expressions import computed_given, default_of, draw_defaults
from ...analyze.scalars import Bindings, Scalar
from ...results.results import Row
from .mutations import Mutation
from .row_expressions import (
    RowExpression,
    compile_check,
    compile_expression,
    evaluate_all,
    first_violation,
    rows_of,
    violation,
)
from .steps import in_steps, portions, sliced

ROWS_PER_PIECE = 128
"""Rows that are encoded together, column by column."""


class RowRules:
    """The rules of one version of a table, compiled. Places are those of written columns."""

    def __init__(self, table: TableDescriptor) -> None:
        self.table = table
        self.codec: RowCodec = codec_for(table.writable)
        self._computed: list[tuple[int, RowExpression]] = []
        self._defaulted: list[tuple[int, Column, Scalar]] = []
        for place, column in enumerate(table.written_columns):
            if column.computed is not None:
                expression = compile_expression(table, column.computed, column.type)
                self._computed.append((place, expression))
            elif not column.public:
                self._defaulted.append((place, column, default_of(column)))
        self._checks = [(check, compile_check(table.writable, check)) for check in table.checks]
        self._hidden = len(table.written_columns) - len(table.visible_columns)
        self.carried = tuple(column.id for _, column, _ in self._defaulted)
        self.plain = not (self._computed or self._hidden or self._checks)
        self.native = all(found.scalar is not None for _, found in self._computed) and all(
            found.scalar is not None for _, found in self._checks
        )

    @classmethod
    def of(cls, table: TableDescriptor) -> RowRules:
        """The rules of a version, compiled once for as long as it is in memory."""
        rules = table.compiled.get(cls)
        if rules is None:
            rules = table.compiled[cls] = cls(table)
        assert isinstance(rules, cls), rules
        return rules

    def complete(self, rows: Sequence[Row], bindings: Bindings) -> Sequence[Row]:
        """The rows as they are written, of rows of visible columns. Only if `native`.

        Raises SQLError 23514 and 23502 for a check that is false.
        """
        assert self.native, self.table
        if self.plain:
            return rows
        return [self._completed(row, bindings) for row in in_steps(rows)]

    async def complete_all(self, rows: Sequence[Row], bindings: Bindings) -> Sequence[Row]:
        """Completes rows as `complete` does; DuckDB evaluates what Python cannot."""
        if self.native:
            return await sliced(rows, lambda: self.complete(rows, bindings))
        canonical = [self._canonical(row) for row in rows]
        values = await evaluate_all(
            self.table, [expression for _, expression in self._computed], canonical, bindings
        )
        finished: list[Row] = []
        for number, row in enumerate(canonical):
            found = self._with_defaults(row, bindings)
            for (place, _), column in zip(self._computed, values, strict=True):
                found[place] = column[number]
            finished.append(tuple(found))
        for check, expression in self._checks:
            failed = await first_violation(self.table.writable, expression, finished, bindings)
            if failed is not None:
                raise violation(self.table, check)
        return finished

    def _completed(self, row: Row, bindings: Bindings) -> Row:
        canonical = self._canonical(row)
        found = self._with_defaults(canonical, bindings)
        for place, expression in self._computed:
            found[place] = expression.evaluate(canonical, bindings)
        written = tuple(found)
        for check, expression in self._checks:
            assert expression.scalar is not None, check
            if expression.scalar.evaluate(written, bindings) is False:
                raise violation(self.table, check)
        return written

    def _canonical(self, row: Row) -> Row:
        """Values as the columns will hold them: a check must see what is stored."""
        columns = self.table.visible_columns
        return tuple(
            coerce(column.type, value, column=column.name)
            for column, value in zip(columns, row, strict=True)
        )

    def _with_defaults(self, row: Row, bindings: Bindings) -> list[Datum]:
        found = [*row, *([None] * self._hidden)]
        for place, column, default in self._defaulted:
            found[place] = coerce(column.type, default.evaluate((), bindings))
        return found


def encoded(rules: RowRules, rows: Sequence[Row]) -> Mutation:
    """The puts of rows as they are written."""
    mutation = Mutation(rules.codec, carried=rules.carried)
    for some in portions(rows, ROWS_PER_PIECE):
        keys, bodies = rules.codec.encode_rows(some)
        mutation.keys += keys
        mutation.bodies += bodies
    return mutation


async def encode_batch(
    rules: RowRules, batch: pa.RecordBatch, bindings: Bindings, *, keys: list[bytes] | None = None
) -> Mutation:
    """The puts of the rows of a batch. Columns that it lacks take their defaults. `keys` are its
    rows' where they are known.

    Raises SQLError as `conform` does, and 23514 for a row of which a check is false.
    """
    whole = conform(rules.table, _with_drawn(rules.table, batch, bindings))
    mutation = Mutation(rules.codec, carried=rules.carried)
    if rules.plain:
        encoded, bodies = rules.codec.encode_columns(whole, keys=keys)
        mutation.keys, mutation.bodies = list(encoded), list(bodies)
    else:
        rows = await rules.complete_all(rows_of(whole), bindings)
        mutation.keys, mutation.bodies = rules.codec.encode_rows(rows)
    return mutation


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
