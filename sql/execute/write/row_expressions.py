"""Expressions over the rows of one table: computed columns, checks, values of defaults.

What Python evaluates row by row is evaluated so; for everything else DuckDB is asked about all rows
at once.
`AnalyticRows` is what the catalog's schema changes are given.

Defaults that DuckDB computes are computed for as many rows at once as a statement needs:

    DEFAULT lower('X') || nextval('s')

    SELECT lower('X') || "$0" FROM "$drawn"     its rows: one value of s each

What is drawn, from sequences or at random, is drawn by us and given to DuckDB: a sequence's values
are durable before they are seen, and the store's random numbers follow its seed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import pyarrow as pa
from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import CheckConstraint
from ....catalog.rows.arrow_conform import broad_schema
from ....catalog.values.arrow_columns import column_array, column_datums
from ....catalog.values.column_types import ColumnType, Datum, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.physical import to_physical
from ....catalog.values.type_kinds import TypeKind
from ....kvlayer.clock import ZERO
from ...access.predicates import (
    Comparison,
    ElementOf,
    Predicate,
    bind_predicates,
    compile_predicates,
)
from ...analyze.binder import check_columns, row_scope
from ...analyze.calls.sequence_calls import always_evaluated, is_sequence_call
from ...analyze.default_expressions import RESULT_TYPE, compile_default, computed, generator_of
from ...analyze.given_tables import given_table
from ...analyze.scalars import STRING, Bindings, NotNative, Scalar, compile_scalar
from ...analyze.types.blanks import without_blanks
from ...lower.analytic_select import AnalyticSelect
from ...lower.transpile import parameter_values, transpile
from ...parse import parse_expression
from ...results.query_evaluator import QueryEvaluator
from ...results.results import Row
from ...syntax.walks import find_all
from ..query.evaluator_errors import asked_of_duckdb

SLICE_ROWS = 200
"""Rows that are evaluated in Python before the loop gets a turn."""

_BOOL = ColumnType(TypeKind.BOOL)


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression of a table's visible columns. `scalar` is there if Python evaluates it."""

    tree: exp.Expr
    type: ColumnType
    scalar: Scalar | None

    def evaluate(self, row: Row, bindings: Bindings) -> Datum:
        assert self.scalar is not None, self
        return coerce(self.type, self.scalar.evaluate(row, bindings))


def compile_expression(table: TableDescriptor, text: str, type: ColumnType) -> RowExpression:
    """Raises SQLError for a name that the table lacks, and for what no engine takes."""
    tree = parse_expression(text)
    check_columns(tree, table, table.name)
    try:
        scalar = compile_scalar(tree, row_scope(table), table.name)
    except NotNative:
        scalar = None
        _asked(table, [tree])  # is it one for DuckDB?
    return RowExpression(tree, type, scalar)


def compile_check(table: TableDescriptor, check: CheckConstraint) -> RowExpression:
    """Compiles a CHECK constraint: for Python where its expression allows that, else for
    DuckDB. It is violated where it is false: NULL satisfies it."""
    tree = without_blanks(parse_expression(check.expression), {(table.name,): table})
    check_columns(tree, table, table.name)
    scalar = None
    try:
        predicates = compile_predicates(tree, row_scope(table), table.name)
        if any(_compares_with_null(predicate) for predicate in predicates):
            raise NotNative("NULL among the constants")
        scalar = Scalar(_BOOL, partial(_holds, predicates), False)
    except NotNative:
        _asked(table, [tree])
    return RowExpression(tree, _BOOL, scalar)


def _compares_with_null(predicate: Predicate) -> bool:
    match predicate:
        case Comparison(constant=constant):
            return constant.value(_NOTHING) is None
        case ElementOf(array=array):
            found = array.value(_NOTHING)
            return not isinstance(found, list) or None in found
    return False


_NOTHING = Bindings((), ZERO)


def _holds(predicates: Sequence[Predicate], row: Row, bindings: Bindings) -> bool:
    return not any(_false(predicate, row, bindings) for predicate in predicates)


def _false(predicate: Predicate, row: Row, bindings: Bindings) -> bool:
    if isinstance(predicate, Comparison | ElementOf) and row[predicate.column] is None:
        return False
    return not bind_predicates([predicate], bindings)(row)


async def evaluate_all(
    table: TableDescriptor,
    expressions: Sequence[RowExpression],
    rows: Sequence[Row],
    bindings: Bindings,
) -> list[Sequence[Datum]]:
    """The values of each expression in each row."""
    foreign = [found.tree for found in expressions if found.scalar is None]
    columns: list[list[Datum]] = [[] for _ in foreign]
    if foreign and rows:
        columns = await _asked(table, foreign).values(rows, bindings)
    answers = iter(columns)
    values: list[Sequence[Datum]] = []
    for expression in expressions:
        if expression.scalar is None:
            values.append([coerce(expression.type, value) for value in next(answers)])
            continue
        found: list[Datum] = []
        for start in range(0, len(rows), SLICE_ROWS):
            chunk = rows[start : start + SLICE_ROWS]
            found += [expression.evaluate(row, bindings) for row in chunk]
            await asyncio.sleep(0)
        values.append(found)
    return values


async def first_violation(
    table: TableDescriptor, check: RowExpression, rows: Sequence[Row], bindings: Bindings
) -> int | None:
    """The place of the first row of which the check is false."""
    (truths,) = await evaluate_all(table, [check], rows, bindings)
    return next((place for place, truth in enumerate(truths) if truth is False), None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Expressions over the rows of a table, as DuckDB evaluates them."""

    table: TableDescriptor
    select: AnalyticSelect

    async def values(self, rows: Sequence[Row], bindings: Bindings) -> list[list[Datum]]:
        """The values of each expression, in the order of the rows."""
        with asked_of_duckdb(self.select, [self.table]):
            values = parameter_values(self.select, bindings)
            answer = await bindings.evaluator.run(self.select.sql, self._given(rows), values)
        columns = [
            column_datums(column.type, array)
            for column, array in zip(answer.columns, answer.table.columns, strict=True)
        ]
        if len(columns[0]) != len(rows):  # it reads no column: one answer is that for all
            columns = [column * len(rows) for column in columns]
        return columns

    async def types(self, analytics: QueryEvaluator) -> list[ColumnType]:
        """The types of the expressions. Raises DuckDB's errors as SQLError, such as 42883 for an
        unknown function."""
        select = self.select
        with asked_of_duckdb(select, [self.table]):
            columns = await analytics.describe(select.sql, self._given(()), len(select.parameters))
        return [column.type for column in columns]

    def _given(self, rows: Sequence[Row]) -> dict[str, pa.Table]:
        scans = self.select.scans
        return {scan.registered: _arrow(self.table, scan.places, rows) for scan in scans}


def _asked(table: TableDescriptor, trees: Sequence[exp.Expr]) -> _Asked:
    aliased = [
        exp.alias_(tree.copy(), f"e{place}", quoted=True) for place, tree in enumerate(trees)
    ]
    query = exp.select(*aliased).from_(exp.Table(this=exp.to_identifier(table.name, quoted=True)))
    return _Asked(table, transpile(query, {(table.name,): table}))


async def result_types(
    table: TableDescriptor, trees: Sequence[exp.Expr], analytics: QueryEvaluator
) -> list[ColumnType]:
    """Returns the types of expressions by DuckDB. Raises SQLError."""
    return await _asked(table, trees).types(analytics) if trees else []


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
        return SQLError(
            "23502",
            f'null value in column "{name}" of relation "{table.name}" violates not-null '
            "constraint",
        )
    return SQLError(
        "23514",
        f'new row for relation "{table.name}" violates check constraint "{check.name}"',
        detail=f"The constraint is CHECK ({check.expression}).",
    )


_NAME = "$drawn"
_NUMBER = 2_000_000
"""The number of the given table of drawn values, above that of RETURNING."""

_COMPILED_MAX = 256
"""Expressions that stay compiled: as many as the defaults of some busy tables."""


async def computed_values(text: str, count: int, bindings: Bindings) -> Sequence[object]:
    """Returns `count` values of a default that takes more than Python, each of a row of its own.
    Raises SQLError, and SequenceNeeded where the generators do."""
    drawn, asked = _compiled(text)
    rows: list[Row] = [
        (number, *[scalar.evaluate((), bindings) for scalar in drawn])  # type: ignore[arg-type]
        for number in range(count if drawn else 1)
    ]
    (values,) = await asked.values(rows, bindings)
    return values if drawn else values * count  # the same for every row


async def note_types(trees: Iterable[exp.Expr], analytics: QueryEvaluator) -> None:
    """Notes the types of defaults that DuckDB computes. Raises DuckDB's errors as SQLError, such
    as 42883 for an unknown function."""
    for tree in trees:
        compile_default(tree)  # refuses what no default may be
        if computed(tree):
            (tree.meta[RESULT_TYPE],) = await _compile(tree)[1].types(analytics)


_Compiled = tuple[Sequence[Scalar], _Asked]
"""The draws of a default, for each row of the table that its expression reads, and the
expression."""


@lru_cache(maxsize=_COMPILED_MAX)
def _compiled(text: str) -> _Compiled:
    return _compile(parse_expression(text))


def _compile(tree: exp.Expr) -> _Compiled:
    made, drawn = without_draws(tree)
    columns = [(name, scalar.type or STRING) for name, scalar in drawn]
    table = given_table(_NUMBER, _NAME, columns)
    return [scalar for _, scalar in drawn], _asked(table, [made])


def without_draws(tree: exp.Expr) -> tuple[exp.Expr, list[tuple[str, Scalar]]]:
    """The expression with a column, `$0` and so on, for each call that draws, and these by name.

    Raises SQLError 0A000 for a sequence's value that need not be drawn for every row.
    """
    made = exp.Paren(this=tree.copy())
    drawn: list[tuple[str, Scalar]] = []
    for node in list(find_all(made, exp.Anonymous, exp.Uuid, exp.Rand)):
        scalar = generator_of(node)
        if scalar is None:
            if not is_sequence_call(node):
                continue
            always_evaluated(node)
            scalar = compile_scalar(node, {})
        name = f"${len(drawn)}"
        drawn.append((name, scalar))
        node.replace(exp.column(name, quoted=True))
    return made.this, drawn
