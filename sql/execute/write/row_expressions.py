"""Expressions over the rows of one table: computed columns, checks, values of defaults.

What Python evaluates row by row is evaluated so; for everything else DuckDB is asked about all rows
at once.
`AnalyticRows` is what the catalog's schema changes are given.

Defaults that DuckDB computes are computed for as many rows at once as a statement needs:

    DEFAULT lower('X') || nextval('s')

    SELECT lower('X') || "$0" FROM "$drawn" ORDER BY "$row"     its rows: one value of s each

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
from ....catalog.values.arrow_columns import column_array
from ....catalog.values.column_types import ColumnType, Datum, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.physical import to_physical
from ....catalog.values.type_kinds import TypeKind
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
from ...analyze.given_tables import ROW_NUMBER, filled, given_table
from ...analyze.scalars import STRING, Bindings, NotNative, Scalar, compile_scalar
from ...analyze.types.blanks import without_blanks
from ...lower.analytic_select import AnalyticSelect
from ...lower.transpile import parameter_values, transpile
from ...parse import parse_expression
from ...results.as_of import datetime_of
from ...results.query_evaluator import QueryEvaluator
from ...results.results import Result, Row
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
        _query(table, [tree])  # is it one for DuckDB?
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
        _query(table, [tree])
    return RowExpression(tree, _BOOL, scalar)


def _compares_with_null(predicate: Predicate) -> bool:
    match predicate:
        case Comparison(constant=constant):
            return constant.value(_NOTHING) is None
        case ElementOf(array=array):
            found = array.value(_NOTHING)
            return not isinstance(found, list) or None in found
    return False


_NOTHING = Bindings((), datetime_of(1 << 40))  # type: ignore[arg-type]


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
    foreign = [found for found in expressions if found.scalar is None]
    answers = iter(await _ask(table, [found.tree for found in foreign], rows, bindings))
    values: list[Sequence[Datum]] = []
    for expression in expressions:
        if expression.scalar is None:
            column = next(answers)
            values.append([coerce(expression.type, value) for value in column])
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


async def _ask(
    table: TableDescriptor, trees: Sequence[exp.Expr], rows: Sequence[Row], bindings: Bindings
) -> list[list[object]]:
    """Returns the values of expressions by DuckDB, in the order of the rows."""
    if not trees or not rows:
        return [[] for _ in trees]
    select = transpile(_query(table, trees), {(table.name,): table})
    snapshots = {scan.registered: _arrow(table, scan.places, rows) for scan in select.scans}
    with asked_of_duckdb(select, [table]):
        values = parameter_values(select, bindings)
        answer = await bindings.evaluator.run(select.sql, snapshots, values)
    columns: list[list[object]] = [column.to_pylist() for column in answer.table.columns]
    if len(columns[0]) != len(rows):  # it reads no column: one answer is that for all
        columns = [column * len(rows) for column in columns]
    return columns


async def result_types(
    table: TableDescriptor, trees: Sequence[exp.Expr], analytics: QueryEvaluator
) -> list[ColumnType]:
    """Returns the types of expressions by DuckDB. Raises DuckDB's errors as SQLError, such as
    42883 for an unknown function."""
    if not trees:
        return []
    select = transpile(_query(table, trees), {(table.name,): table})
    given = {scan.registered: _arrow(table, scan.places, ()) for scan in select.scans}
    with asked_of_duckdb(select, [table]):
        columns = await analytics.describe(select.sql, given, len(select.parameters))
    return [column.type for column in columns]


def _query(table: TableDescriptor, trees: Sequence[exp.Expr]) -> exp.Select:
    aliased = [
        exp.alias_(tree.copy(), f"e{place}", quoted=True) for place, tree in enumerate(trees)
    ]
    query = exp.select(*aliased).from_(exp.Table(this=exp.to_identifier(table.name, quoted=True)))
    transpile(query, {(table.name,): table})
    return query


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
    compiled = _compiled(text)
    rows = [
        tuple([scalar.evaluate((), bindings) for scalar in compiled.drawn])
        for _ in range(count if compiled.drawn else 1)
    ]
    select = compiled.select
    with asked_of_duckdb(select):
        answer = await bindings.evaluator.run(
            select.sql, compiled.given(rows), parameter_values(select, bindings)
        )
    result = Result(tag="", columns=answer.columns, table=answer.table)
    values = [value for (value,) in result.fetch_rows()]
    return values if compiled.drawn else values * count  # the same for every row


async def note_types(trees: Iterable[exp.Expr], analytics: QueryEvaluator) -> None:
    """Notes the types of defaults that DuckDB computes. Raises DuckDB's errors as SQLError, such
    as 42883 for an unknown function."""
    for tree in trees:
        compile_default(tree)  # refuses what no default may be
        if not computed(tree):
            continue
        compiled = _compile(tree)
        select = compiled.select
        with asked_of_duckdb(select):
            (column,) = await analytics.describe(
                select.sql, compiled.given(()), len(select.parameters)
            )
        tree.meta[RESULT_TYPE] = column.type


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The query of a default, and what is drawn for each row of the table that it reads."""

    drawn: tuple[Scalar, ...]
    table: TableDescriptor
    select: AnalyticSelect

    def given(self, rows: Sequence[Sequence[object]]) -> dict[str, pa.Table]:
        table = filled(self.table, [tuple(row) for row in rows])  # type: ignore[arg-type]
        return {scan.registered: table.select(list(scan.places)) for scan in self.select.scans}


@lru_cache(maxsize=_COMPILED_MAX)
def _compiled(text: str) -> _Compiled:
    return _compile(parse_expression(text))


def _compile(tree: exp.Expr) -> _Compiled:
    made, drawn = without_draws(tree)
    columns = [(name, scalar.type or STRING) for name, scalar in drawn]
    table = given_table(_NUMBER, _NAME, columns)
    query = exp.select(exp.alias_(made, "value", quoted=True))
    if drawn:
        query = query.from_(exp.Table(this=exp.to_identifier(_NAME, quoted=True)))
        query = query.order_by(exp.column(ROW_NUMBER, table=_NAME, quoted=True))
    select = transpile(query, {(_NAME,): table})
    return _Compiled(tuple(scalar for _, scalar in drawn), table, select)


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
