"""Derived tables without an alias: those behind the first of a FROM get a name of their own.

    FROM (SELECT 1 AS x), (VALUES (2)), LATERAL (SELECT 3), unnest(a)
    FROM (SELECT 1 AS x), (VALUES (2)) AS "~1", LATERAL (SELECT 3) AS "~2", unnest(a) AS "unnest"

What reads a tree knows the tables of a FROM by their names, and so two without one would be one.
"""

from __future__ import annotations

from sqlglot import exp


def plain_derived(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with names for derived tables that have none, where several stand side by
    side."""
    for select in list(tree.find_all(exp.Select)):
        unnamed = [table for table in _tables_of(select) if _unnamed(table)]
        for number, table in enumerate(unnamed if len(unnamed) > 1 else ()):
            name = _function(table) or (f"~{number}" if number else None)
            if name is not None:
                named = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
                table.set("alias", named)
    return tree


def _tables_of(select: exp.Select) -> list[exp.Expr]:
    begins = select.args.get("from_")
    joins = [*(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
    return [one if isinstance(one, exp.Lateral) else one.this for one in (begins, *joins) if one]


def _unnamed(table: exp.Expr) -> bool:
    if table.alias:
        return False
    if isinstance(table, exp.Subquery):
        return not isinstance(table.this, exp.Table)  # a JOIN in parentheses
    return isinstance(table, exp.Values | exp.Lateral) or _function(table) is not None


def _function(table: exp.Expr) -> str | None:
    """The name of a function in FROM, which is its table's."""
    call = table.this if isinstance(table, exp.Table | exp.Lateral) else table
    if isinstance(call, exp.Anonymous):
        return call.name.lower()
    return call.sql_name().lower() if isinstance(call, exp.Func) else None
