"""Rules for every written row, and for batches of rows, beyond the statement's own values.

Computed columns, columns that are coming and going and that no statement knows, and checks. A table
without any of these is *plain*, and its rows are encoded as they are.

What Python evaluates row by row is evaluated so; for everything else DuckDB is asked
(`sql.lower.row_expressions`).

What is drawn, from sequences or at random, is drawn by us and given to DuckDB: a sequence's values
are durable before they are seen, and the store's random numbers follow its seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.descriptors.elements import CheckConstraint
from ....catalog.rows.arrow_conform import broad_schema, conform
from ....catalog.rows.row_codec import RowCodec, codec_for
from ....catalog.values.arrow_columns import column_array, column_datums
from ....catalog.values.column_types import ColumnType, Datum, coerce
from ....catalog.values.errors import SQLError, Violated, null_value
from ....catalog.values.physical import to_physical
from ...analyze import default_expressions
from ...analyze.scalars import Bindings, Scalar
from ...lower.row_expressions import (
    AnalyticExpressions,
    RowExpression,
    analytic_expressions,
    compile_check,
    compile_expression,
    drawn_expression,
)
from ...lower.transpile import parameter_values
from ...parse import parse_expression
from ...results.results import ArrowQuery, QueryEvaluator, Row
from ...syntax.trees import Tree
from ..query.evaluator_errors import asked_of_duckdb
from ..query.result_shape import columns_of
from .mutations import Mutation
from .steps import in_steps, portions, sliced

ROWS_PER_PIECE = 128
"""Rows that are encoded together, column by column."""

_COMPILED_MAX = 256
"""Defaults that stay compiled: as many as some busy tables have."""


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
                self._defaulted.append((place, column, default_expressions.default_of(column)))
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
            raise default_expressions.computed_given(column.name)
        if not given and column.default_expression is not None:
            lacking.append(column)
    if not lacking:
        return batch
    drawn = default_expressions.draw_defaults(lacking, batch.num_rows, bindings)
    for column, values in zip(lacking, drawn, strict=True):
        names.append(column.name)
        arrays.append(column_array(column.type, [to_physical(column.type, v) for v in values]))
    return pa.RecordBatch.from_arrays(arrays, names=names)


# Expressions


async def evaluate_all(
    table: TableDescriptor,
    expressions: Sequence[RowExpression],
    rows: Sequence[Row],
    bindings: Bindings,
) -> list[Sequence[Datum]]:
    """The values of each expression in each row."""
    foreign = [found.tree for found in expressions if found.scalar is None]
    answers: Iterator[list[Datum]] = iter([[]] * len(foreign))
    if foreign and rows:
        answers = iter(await _values(analytic_expressions(table, foreign), rows, bindings))

    def evaluated(expression: RowExpression) -> Sequence[Datum]:
        return [expression.evaluate(row, bindings) for row in in_steps(rows)]

    return [
        [coerce(found.type, value) for value in next(answers)]
        if found.scalar is None
        else await sliced(rows, partial(evaluated, found))
        for found in expressions
    ]


async def first_violation(
    table: TableDescriptor, check: RowExpression, rows: Sequence[Row], bindings: Bindings
) -> int | None:
    """The place of the first row of which the check is false."""
    (truths,) = await evaluate_all(table, [check], rows, bindings)
    return next((place for place, truth in enumerate(truths) if truth is False), None)


async def _values(
    asked: AnalyticExpressions, rows: Sequence[Row], bindings: Bindings
) -> list[list[Datum]]:
    """The values of each expression, in the order of the rows."""
    table, select = asked.table, asked.select
    with asked_of_duckdb(select, [table]):
        values = parameter_values(select, bindings)
        given = {scan.registered: _arrow(table, scan.places, rows) for scan in select.scans}
        answer = await bindings.evaluator.run(ArrowQuery(select.sql, given, values))
    columns = [
        column_datums(column.type, array)
        for column, array in zip(answer.columns, answer.table.columns, strict=True)
    ]
    if len(columns[0]) != len(rows):  # it reads no column: one answer is that for all
        columns = [column * len(rows) for column in columns]
    return columns


async def result_types(
    table: TableDescriptor, trees: Sequence[Tree], analytics: QueryEvaluator
) -> list[ColumnType]:
    """Returns the types of expressions by DuckDB. Raises its errors as SQLError, such as 42883 for
    an unknown function."""
    if not trees:
        return []
    select = analytic_expressions(table, trees).select
    return [column.type for column in await columns_of(select, analytics, [table])]


def _arrow(table: TableDescriptor, places: Sequence[int], rows: Sequence[Row]) -> pa.Table:
    columns = [table.visible_columns[place] for place in places]
    arrays = [
        column_array(column.type.broad, [to_physical(column.type, row[place]) for row in rows])
        for place, column in zip(places, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=broad_schema(table, places))


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    columns = [column.to_pylist() for column in batch.columns]
    return list(zip(*columns, strict=True))


def violation(table: TableDescriptor, check: CheckConstraint) -> SQLError:
    """Returns the error (23514) for a row of which a check is false."""
    if check.not_null_column is not None:
        name = table.column_by_id(check.not_null_column).name.partition("~")[0]
        return null_value(table.name, name)
    return SQLError(
        "23514",
        f'new row for relation "{table.name}" violates check constraint "{check.name}"',
        detail=f"The constraint is CHECK ({check.expression}).",
        violated=Violated(table.name, constraint=check.name),
    )


async def computed_values(text: str, count: int, bindings: Bindings) -> Sequence[object]:
    """Returns `count` values of a default that takes more than Python, each of a row of its own.
    Raises SQLError, and ValueNeeded where the generators do."""
    asked = _compiled(text)
    rows: list[Row] = [
        (number, *[scalar.evaluate((), bindings) for scalar in asked.draws])  # type: ignore[arg-type]
        for number in range(count if asked.draws else 1)
    ]
    (values,) = await _values(asked, rows, bindings)
    return values if asked.draws else values * count  # the same for every row


async def default_type(text: str, analytics: QueryEvaluator) -> ColumnType | None:
    """Returns the type of a default that is drawn for each row; None for one that takes any. Raises
    SQLError as `result_types`."""
    tree = parse_expression(text)
    if not default_expressions.computed(tree):
        return default_expressions.compile_default(tree).type
    asked = drawn_expression(tree)
    (found,) = await columns_of(asked.select, analytics, [asked.table])
    return found.type


@lru_cache(maxsize=_COMPILED_MAX)
def _compiled(text: str) -> AnalyticExpressions:
    return drawn_expression(parse_expression(text))
