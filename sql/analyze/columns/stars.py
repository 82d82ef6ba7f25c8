"""Expands the stars of a select list into columns, with their types where those are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ....catalog.values.column_types import ColumnType
from ...parse import folded
from ...parse.queries import table_name
from ..binder import Relations, sources_named

Columns = list[tuple[str, ColumnType | None]]


class ColumnTypes(Protocol):
    """The part of `types.Types` that stars need."""

    def of_unnest(self, source: exp.Unnest, name: str) -> tuple[bool, ColumnType | None]: ...

    def declared_of(self, tree: exp.Expr) -> tuple[list[str], list[ColumnType | None]]: ...

    def say_declared(self, column: exp.Column, type: ColumnType | None) -> None: ...


class Stars:
    """The stars of one query."""

    def __init__(
        self, scopes: Sequence[QueryScope], relations: Relations, types: ColumnTypes
    ) -> None:
        self._scopes = {id(scope.expression): scope for scope in scopes}
        self._relations = relations
        self._types = types
        self._opened: set[int] = set()

    def columns(self, select: exp.Select, item: exp.Expr) -> list[exp.Column] | None:
        """The columns of a star; None for any other item, and where nobody can say."""
        whole = isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        scope = self._scopes.get(id(select))
        joins = select.args.get("joins") or ()
        merged = any(join.args.get("using") or join.args.get("method") for join in joins)
        if not (whole or isinstance(item, exp.Star)) or scope is None or merged:
            return None
        if id(select) in self._opened:  # a query that is recursive meets itself
            return None
        self._opened.add(id(select))
        try:
            qualifier = item.args.get("table") if whole else None
            return self._of_sources(scope, None if qualifier is None else folded(qualifier))
        finally:
            self._opened.discard(id(select))

    def _of_sources(self, scope: QueryScope, wanted: str | None) -> list[exp.Column] | None:
        found: list[exp.Column] = []
        for alias, (_, source) in scope.selected_sources.items():
            if wanted is None or alias.lower() == wanted.lower():
                columns = self.of_source(source)
                if columns is None:
                    return None
                for name, type in columns:
                    found.append(exp.column(name, table=alias, quoted=True))
                    self._types.say_declared(found[-1], type)
        return found

    def of_source(self, source: exp.Expr | QueryScope) -> Columns | None:
        """Returns the columns of a table, view or subquery, with the types that CREATE TABLE and
        casts say; None where they are not known."""
        tree = tree_of(source)
        given = given_names(tree)
        if isinstance(tree, exp.Table):
            named = isinstance(tree.this, exp.Identifier)
            descriptor = self._relations.get(table_name(tree).parts) if named else None
            if descriptor is None:
                return None
            shown = [(column.name, column.type) for column in descriptor.shown_columns]
            names = [*given, *[name for name, _ in shown][len(given) :]]
            return list(zip(names, [type for _, type in shown], strict=False))
        if isinstance(tree, exp.Unnest):
            return [(name, self._types.of_unnest(tree, name)[1]) for name in given] or None
        names, types = self._types.declared_of(tree)
        return None if "*" in names or not names else list(zip(names, types, strict=False))


def given_names(tree: exp.Expr) -> list[str]:
    """The names of `AS t (a, b)`."""
    holder = tree if tree.args.get("alias") else tree.parent
    alias = holder.args.get("alias") if holder is not None else None
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [folded(c if isinstance(c, exp.Identifier) else c.this) for c in columns or ()]


def tree_of(source: exp.Expr | QueryScope) -> exp.Expr:
    """Returns the tree of a name in FROM."""
    return source.expression if isinstance(source, QueryScope) else source


def sources_of(scope: QueryScope, qualifier: exp.Identifier | None) -> list[exp.Expr | QueryScope]:
    """Returns the source that a column's qualifier names, or every source of FROM for a bare
    name. A common table expression that FROM does not name is no source."""
    if qualifier is None:
        unnamed = scope.cte_sources.keys() - scope.selected_sources.keys()
        return [source for alias, source in scope.sources.items() if alias not in unnamed]
    return sources_named(scope, folded(qualifier))
