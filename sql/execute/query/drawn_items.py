"""Completes the rows of a query by what is drawn for them, or done for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa
from sqlglot import exp

from ....catalog.values.arrow_columns import column_array
from ....catalog.values.column_types import ColumnType, Datum
from ....catalog.values.errors import SQLError
from ....catalog.values.physical import to_physical
from ...analyze.calls.sequence_calls import ValueNeeded
from ...analyze.given_tables import ROW_NUMBER, filled, given_table
from ...analyze.scalars import Bindings, Scalar
from ...lower.transpile import parameter_values, transpile
from ...plan.drawn_items import DRAWN, OPERAND, DrawnCall, DrawnItem, DrawnItems
from ...results.results import Result, ResultColumn, Row
from ...runtime.query_evaluator import Answer, QueryEvaluator
from .evaluator_errors import from_duckdb

_NAME = "$rows"
_NUMBER = 3_000_000
"""The number of the given table of rows, above that of drawn defaults."""


async def with_draws(
    found: Answer, drawn: DrawnItems, bindings: Bindings, analytics: QueryEvaluator
) -> Answer:
    """Returns the rows of a query's items, computed from the rows of the query without draws.
    Raises SequenceNeeded where a statement has not drawn enough yet."""
    width = len(found.columns) - drawn.operand_count
    operands = Answer(found.columns[width:], found.table.select(range(width, len(found.columns))))
    given = Result(tag="", columns=operands.columns, table=operands.table).fetch_rows()
    given = given if drawn.operand_count else [()] * found.table.num_rows
    values = await _called(drawn, given, bindings) or _draw(drawn, given, bindings)
    foreign = [item for item in drawn.items if item.drawn_place is None]
    types = [drawn.type_of(place) for place in range(len(drawn.draws))]
    computed = await _computed(foreign, operands.columns, types, given, values, bindings, analytics)
    columns, arrays = list(found.columns[:width]), list(found.table.columns[:width])
    for item in drawn.items:
        place = item.place if item.place >= 0 else width + item.place
        if item.drawn_place is None:
            type, arrays[place] = next(computed)
        else:
            type = types[item.drawn_place]
            column = [to_physical(type, row[item.drawn_place]) for row in values]
            arrays[place] = pa.chunked_array([column_array(type, column)])
        columns[place] = ResultColumn(columns[place].name, type)
    fields = [pa.field(column.name, column.type.arrow_type) for column in columns]
    return Answer(tuple(columns), pa.Table.from_arrays(arrays, schema=pa.schema(fields)))


def _draw(drawn: DrawnItems, given: Sequence[Row], bindings: Bindings) -> list[Row]:
    """The drawn values of each row of operands."""
    rows: list[Row] = []
    draws = [draw for draw in drawn.draws if isinstance(draw, Scalar)]
    try:
        for row in given:
            rows.append(tuple([draw.evaluate(row, bindings) for draw in draws]))  # type: ignore[misc]
    except ValueNeeded as needed:
        needed.wanted = len(given) - len(rows)
        raise
    return rows


async def _called(drawn: DrawnItems, given: Sequence[Row], bindings: Bindings) -> list[Row]:
    """Returns the results of session calls, row by row; no rows where the items hold none."""
    calls = [draw for draw in drawn.draws if isinstance(draw, DrawnCall)]
    rows: list[Row] = []
    for row in given if calls else ():
        rows.append(tuple([await _call(call, row, bindings) for call in calls]))
    return rows


async def _call(call: DrawnCall, row: Row, bindings: Bindings) -> Datum:
    if bindings.calls is None:
        raise SQLError(
            "0A000",
            f"{call.name} cannot be called by a statement that writes",
            hint="Call it in a SELECT.",
        )
    arguments = [row[place] for place in call.places]
    if None in (arguments[:1] if call.function.lenient else arguments):
        return None
    return await bindings.calls.call(call.name, arguments)


async def _computed(
    items: Sequence[DrawnItem],
    operands: Sequence[ResultColumn],
    drawn_types: Sequence[ColumnType],
    given: Sequence[Row],
    values: Sequence[Row],
    bindings: Bindings,
    analytics: QueryEvaluator,
) -> Iterator[tuple[ColumnType, pa.ChunkedArray[pa.Scalar[pa.DataType]]]]:
    """The items that are more than a drawn value, in order: DuckDB evaluates them."""
    if not items:
        return iter(())
    types = [column.type for column in operands]
    table = given_table(
        _NUMBER,
        _NAME,
        [(f"{OPERAND}{place}", type) for place, type in enumerate(types)]
        + [(f"{DRAWN}{place}", type) for place, type in enumerate(drawn_types)],
    )
    rows = [(*row, *drawn) for row, drawn in zip(given, values, strict=True)]
    query = exp.select(*(exp.alias_(item.tree.copy(), "item", quoted=True) for item in items))
    query = query.from_(exp.Table(this=exp.to_identifier(_NAME, quoted=True)))
    query = query.order_by(exp.column(ROW_NUMBER, table=_NAME, quoted=True))
    select = transpile(query, {(_NAME,): table})
    whole = filled(table, rows)
    snapshots = {scan.registered: whole.select(list(scan.places)) for scan in select.scans}
    try:
        answer = await analytics.run(select.sql, snapshots, parameter_values(select, bindings))
    except duckdb.Error as error:
        raise from_duckdb(error, [table], select.positions) from error
    types = [column.type for column in answer.columns]
    return zip(types, answer.table.columns, strict=True)
