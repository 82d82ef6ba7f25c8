"""`tableoid`: which table a row is of, which every table tells without having a column of it.

    SELECT l.tableoid FROM pg_language l        SELECT 'pg_catalog.pg_language'::regclass::oid

`ctid`, `xmin` and their kin say where a row lies in a file of PostgreSQL's, and are not there.
"""

from __future__ import annotations

from sqlglot import exp

from ...syntax.tree_names import folded
from .registered_names import id_of_relation

NAME = "tableoid"


def table_id(column: exp.Column) -> exp.Expr | None:
    """Returns the replacement of a system column of a table in FROM; None for all other columns."""
    if not isinstance(column.this, exp.Identifier) or column.name.lower() != NAME:
        return None
    select = column.find_ancestor(exp.Select)
    first = None if select is None else select.args.get("from_")
    if select is None or first is None:
        return None
    sources = [first.this, *(join.this for join in select.args.get("joins") or ())]
    qualifier = column.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier)
        sources = [source for source in sources if _alias(source) == wanted]
    if len(sources) != 1 or not isinstance(sources[0], exp.Table):
        return None
    return id_of_relation(exp.table_name(sources[0], identify=True))


def _alias(source: exp.Expr) -> str:
    alias = source.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else source.this
    return folded(named) if isinstance(named, exp.Identifier) else ""
