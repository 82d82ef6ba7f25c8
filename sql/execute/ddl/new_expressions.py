"""Expressions that a statement gives to a table: they are of the types that they must be of.

What Python does not evaluate is shown to DuckDB, so that a function that is not there is told of
when the table is made, and not by each row that is written.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import FLOATS, TypeKind
from ...analyze.columns.column_values import check_assignable
from ...results.query_evaluator import QueryEvaluator
from ..write.row_expressions import compile_check, compile_expression, result_types

_NO_TEXTS = (TypeKind.INT8, TypeKind.DECIMAL, *FLOATS, TypeKind.BOOL)
"""Types that a text takes only by a cast."""


async def check_expressions(
    before: TableDescriptor | None, table: TableDescriptor, analytics: QueryEvaluator
) -> None:
    """Raises SQLError for checks and computed columns that the table has and `before` had not: as
    42883 where a function is unknown, 42804 where the type is wrong."""
    await _check_computed(_new_computed(before, table), table, analytics)
    await _check_checks(before, table, analytics)


def _new_computed(before: TableDescriptor | None, table: TableDescriptor) -> list[Column]:
    known = {c.id: c.computed for c in before.columns} if before is not None else {}
    return [
        column
        for column in table.visible_columns
        if column.computed is not None and known.get(column.id) != column.computed
    ]


async def _check_computed(
    columns: list[Column], table: TableDescriptor, analytics: QueryEvaluator
) -> None:
    foreign: list[tuple[Column, exp.Expr]] = []
    for column in columns:
        assert column.computed is not None, column
        compiled = compile_expression(table, column.computed, column.type)
        if compiled.scalar is None:
            foreign.append((column, compiled.tree))
        else:
            _check_type(column, compiled.scalar.type, compiled.tree)
    types = await result_types(table, [tree for _, tree in foreign], analytics)
    for (column, tree), type in zip(foreign, types, strict=True):
        _check_type(column, type, tree)


def _check_type(column: Column, type: ColumnType | None, tree: exp.Expr) -> None:
    """A text is read as every type but those, as it is in INSERT."""
    if isinstance(tree, exp.Literal | exp.Null):
        return
    readable = type is not None and type.kind is TypeKind.STRING
    if not readable or column.type.broad.kind in _NO_TEXTS:
        check_assignable(type, column.type, column.name, tree)


async def _check_checks(
    before: TableDescriptor | None, table: TableDescriptor, analytics: QueryEvaluator
) -> None:
    known = {check.expression for check in before.checks} if before is not None else set()
    new = [check for check in table.checks if check.expression not in known]
    compiled = [compile_check(table, check) for check in new]
    foreign = [check for check in compiled if check.predicates is None]
    types = await result_types(table, [check.tree for check in foreign], analytics)
    for check, type in zip(foreign, types, strict=True):
        if type.kind is not TypeKind.BOOL and not isinstance(check.tree, exp.Null):
            raise SQLError(
                "42804",
                f"argument of CHECK must be type boolean, not type {type.kind.value}",
                detail=f"The constraint is CHECK ({check.check.expression}).",
            )
