"""Expressions over the rows of a table: of computed columns, checks and defaults.

What Python evaluates row by row has a scalar; everything else is a query for DuckDB, which is asked
about all rows at once, and about defaults for as many rows as a statement needs:

    DEFAULT lower('X') || nextval('s')

    SELECT lower('X') || "$0" FROM "$drawn"     its rows: one value of s each
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.elements import CheckConstraint
from ...catalog.values.column_types import BOOL, STRING, ColumnType, Datum, coerce
from ..analyze.binder import check_columns, row_scope
from ..analyze.calls.row_calls import is_sequence_call
from ..analyze.default_expressions import generator_of
from ..analyze.enum_casts import bind_row_casts
from ..analyze.given_tables import given_table
from ..analyze.predicates import compile_condition
from ..analyze.scalars import Bindings, NotNative, Scalar, Scope, compile_scalar
from ..analyze.types.blanks import without_blanks
from ..parse import parse_expression
from ..results.results import Row
from ..syntax.trees import find_all
from .transpile import AnalyticSelect, transpile

_DRAWN = "$drawn"
_DRAWN_NUMBER = 2_000_000
"""The number of the given table of drawn values, above those of a WITH's parts."""


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression of a table's visible columns. `scalar` is there if Python evaluates it."""

    tree: exp.Expr
    type: ColumnType
    scalar: Scalar | None

    @property
    def null(self) -> bool:
        return isinstance(self.tree, exp.Null)

    def evaluate(self, row: Row, bindings: Bindings) -> Datum:
        assert self.scalar is not None, self
        return coerce(self.type, self.scalar.evaluate(row, bindings))


def compile_expression(table: TableDescriptor, text: str, type: ColumnType) -> RowExpression:
    """Raises SQLError for a name that the table lacks, and for what no engine takes."""
    return _compiled(table, parse_expression(text), type, compile_scalar)


def compile_check(table: TableDescriptor, check: CheckConstraint) -> RowExpression:
    """Compiles a CHECK constraint: for Python where its expression allows that, else for
    DuckDB. It is violated where it is false: NULL satisfies it."""
    tree = without_blanks(parse_expression(check.expression), {(table.name,): table})
    return _compiled(table, tree, BOOL, compile_condition)


def _compiled(
    table: TableDescriptor,
    tree: exp.Expr,
    type: ColumnType,
    compile: Callable[[exp.Expr, Scope, str], Scalar],
) -> RowExpression:
    bind_row_casts(tree, table)
    check_columns(tree, table, table.name)
    try:
        return RowExpression(tree, type, compile(tree, row_scope(table), table.name))
    except NotNative:
        analytic_expressions(table, [tree])  # is it one for DuckDB?
    return RowExpression(tree, type, None)


@dataclass(frozen=True, slots=True)
class AnalyticExpressions:
    """Expressions over the rows of a table, as DuckDB evaluates them: for a default, each row is
    what `draws` give."""

    table: TableDescriptor
    select: AnalyticSelect
    draws: Sequence[Scalar] = ()


def analytic_expressions(
    table: TableDescriptor, trees: Sequence[exp.Expr], draws: Sequence[Scalar] = ()
) -> AnalyticExpressions:
    """The query for DuckDB of expressions over a table's rows. Raises SQLError."""
    aliased = [
        exp.alias_(tree.copy(), f"e{place}", quoted=True) for place, tree in enumerate(trees)
    ]
    query = exp.select(*aliased).from_(exp.Table(this=exp.to_identifier(table.name, quoted=True)))
    return AnalyticExpressions(table, transpile(query, {(table.name,): table}), draws)


def drawn_expression(tree: exp.Expr) -> AnalyticExpressions:
    """A default, in which a column, `$0` and so on, stands for each call that draws."""
    made = exp.Paren(this=tree.copy())
    drawn: list[Scalar] = []
    columns: list[tuple[str, ColumnType]] = []
    for node in list(find_all(made, exp.Anonymous, exp.Uuid, exp.Rand)):
        scalar = generator_of(node)
        if scalar is None:
            if not is_sequence_call(node):
                continue
            scalar = compile_scalar(node, {})
        name = f"${len(drawn)}"
        drawn.append(scalar)
        columns.append((name, scalar.type or STRING))
        node.replace(exp.column(name, quoted=True))
    return analytic_expressions(given_table(_DRAWN_NUMBER, _DRAWN, columns), [made.this], drawn)
