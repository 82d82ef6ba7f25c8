"""Defaults that DuckDB computes, for as many rows at once as a statement needs.

    DEFAULT lower('X') || nextval('s')

    SELECT lower('X') || "$0" FROM "$drawn" ORDER BY "$row"     its rows: one value of s each

What is drawn, from sequences or at random, is drawn by us and given to DuckDB: a sequence's values
are durable before they are seen, and the store's random numbers follow its seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ...analyze.calls.sequence_calls import always_evaluated, sequence_call
from ...analyze.default_expressions import RESULT_TYPE, compile_default, computed, generator_of
from ...analyze.given_tables import ROW_NUMBER, filled, given_table
from ...analyze.scalars import STRING, Bindings, Generators, Scalar, compile_scalar
from ...lower.analytic_select import AnalyticSelect
from ...lower.transpile import parameter_values, transpile
from ...parse import parse_expression
from ...results.results import Result, Row
from ...runtime.query_evaluator import QueryEvaluator
from ...syntax.walks import find_all
from ..query.evaluator_errors import asked_of_duckdb

_NAME = "$drawn"
_NUMBER = 2_000_000
"""The number of the given table of drawn values, above that of RETURNING."""

_COMPILED_MAX = 256
"""Expressions that stay compiled: as many as the defaults of some busy tables."""


class ComputedDefaults:
    """Evaluates defaults that take more than Python for one statement, whose time and client
    `bindings` tell."""

    def __init__(self, analytics: QueryEvaluator, bindings: Bindings) -> None:
        self._analytics = analytics
        self._bindings = bindings

    async def values(self, text: str, count: int, generators: Generators) -> Sequence[object]:
        """So many values, each of a row of its own. Raises SQLError, and SequenceNeeded where the
        generators do."""
        compiled = _compiled(text)
        bindings = replace(self._bindings, generators=generators)
        if not compiled.drawn:  # the same for every row
            return list(await self._ask(compiled, (), bindings)) * count
        rows = [
            tuple([scalar.evaluate((), bindings) for scalar in compiled.drawn])
            for _ in range(count)
        ]
        return await self._ask(compiled, rows, bindings)

    async def _ask(
        self, compiled: _Compiled, rows: Sequence[Sequence[object]], bindings: Bindings
    ) -> Sequence[object]:
        select = compiled.select
        with asked_of_duckdb(select):
            answer = await self._analytics.run(
                select.sql, compiled.given(rows), parameter_values(select, bindings)
            )
        result = Result(tag="", columns=answer.columns, table=answer.table)
        return [value for (value,) in result.fetch_rows()]


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
        table = filled(self.table, [_as_row(row) for row in rows])
        return {scan.registered: table.select(list(scan.places)) for scan in self.select.scans}


def _as_row(values: Sequence[object]) -> Row:
    return tuple(values)  # type: ignore[arg-type]


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
            if sequence_call(node) is None:
                continue
            always_evaluated(node)
            scalar = compile_scalar(node, {})
        name = f"${len(drawn)}"
        drawn.append((name, scalar))
        node.replace(exp.column(name, quoted=True))
    return made.this, drawn
