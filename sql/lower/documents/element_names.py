"""The elements of a document, by the name of the function that gives them.

    SELECT e FROM docs, jsonb_array_elements(docs.tags) e
    SELECT e.value AS e FROM docs, jsonb_array_elements(docs.tags) e

The column is called `value`, and the name of a function that returns one column is a value too. A
column of that name, of any other source, comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ...analyze.binder import Relations, descriptor_of
from ...syntax.trees import CALLED, folded


def name_elements(relations: Relations, scopes: Sequence[Scope]) -> None:
    """Says the column where a query says the function, in place."""
    for scope in scopes:
        called = {name: only for name, source in scope.sources.items()
                  if (only := _only_column(source)) not in (None, name)}  # fmt: skip
        for column in scope.columns if called else ():
            name = folded(column.this) if isinstance(column.this, exp.Identifier) else None
            if name not in called or column.args.get("table") is not None:
                continue
            if any(_has(source, name, relations) for source in scope.sources.values()):
                continue
            made: exp.Expr = exp.column(called[name], table=name, quoted=True)
            made.meta[CALLED] = name
            if isinstance(column.parent, exp.Select) and column.arg_key == "expressions":
                made = exp.alias_(made, name, quoted=True)
            column.replace(made)


def _only_column(source: exp.Expr | Scope) -> str | None:
    """Returns the only column of an UNNEST in FROM that replaced a function's call; None for any
    other source."""
    tree = source.expression if isinstance(source, Scope) else source
    alias = tree.args.get("alias") if isinstance(tree, exp.Unnest) else None
    columns = alias.columns if isinstance(alias, exp.TableAlias) else []
    return columns[0].name if len(columns) == 1 else None


def _has(source: exp.Expr | Scope, name: str, relations: Relations) -> bool:
    descriptor = descriptor_of(source, relations)
    if descriptor is not None:
        return descriptor.find_column(name) is not None
    if isinstance(source, Scope):
        if not isinstance(source.expression, exp.Query):
            return _only_column(source) == name
        return name in [found.lower() for found in source.expression.named_selects]
    return _only_column(source) == name
