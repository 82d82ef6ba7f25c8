"""Subqueries in FROM see what is beside them behind LATERAL alone; DuckDB's always do."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ....catalog.values.errors import SQLError
from ...parse import folded, position_of
from ...syntax.refusals import error_at
from .types import Types


def check_siblings(types: Types) -> None:
    """Raises SQLError for a column that DuckDB would take from what stands beside a subquery."""
    for scope in types.scopes:
        if not scope.is_derived_table or scope.parent is None or _lateral(scope):
            continue
        tree = scope.expression
        own = set(tree.named_selects) if isinstance(tree, exp.Query) else set()
        beside = [
            (alias, source)
            for alias, (_, source) in scope.parent.selected_sources.items()
            if source is not scope
        ]
        for column in scope.columns:
            if isinstance(column.this, exp.Identifier) and beside:
                _check(column, scope, own, beside, types)


def _lateral(scope: QueryScope) -> bool:
    parent = scope.expression.parent
    return not isinstance(parent, exp.Subquery) or isinstance(parent.parent, exp.Lateral)


def _check(
    column: exp.Column,
    scope: QueryScope,
    own: set[str],
    beside: Sequence[tuple[str, exp.Expr | QueryScope]],
    types: Types,
) -> None:
    name, qualifier = folded(column.this), column.args.get("table")
    if qualifier is not None:
        table = folded(qualifier)
        if table not in scope.sources and any(alias == table for alias, _ in beside):
            raise error_at(
                column,
                "42P01",
                f'invalid reference to FROM-clause entry for table "{table}"',
                "A subquery in FROM sees what is beside it behind LATERAL.",
            )
        return
    if name in own or name in scope.sources:
        return
    if any(types.has_column(source, name) is not False for source in scope.sources.values()):
        return
    if any(types.has_column(source, name) for _, source in beside):
        around = scope.parent is not None and scope.parent.is_subquery
        raise SQLError(
            "0A000" if around else "42703",
            f'column "{name}" of a query around is not supported beside another one'
            if around
            else f'column "{name}" does not exist',
            position=position_of(column),
            hint="A subquery in FROM sees what is beside it behind LATERAL.",
        )
