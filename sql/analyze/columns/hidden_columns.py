"""Columns that are not in `SELECT *`: those made NOT VISIBLE, and the key of a table without one.

A hidden column is read where a statement names it. Where the same statement also has a star, the
star leaves it out:

    SELECT rowid, * FROM t          SELECT rowid, * EXCLUDE (rowid) FROM t
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from ....catalog.store.catalog import ColumnDefinition
from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import TypeKind
from ...syntax.tree_names import folded, table_name
from ...syntax.walks import find_all
from ..binder import Relations, scopes_in

ROWID = "rowid"


def hidden_key(columns: Iterable[ColumnDefinition]) -> ColumnDefinition:
    """The key of a table that is made without one, as CockroachDB's: `rowid`, or `rowid_1`, …"""
    taken = {column.name for column in columns}
    name, number = ROWID, 0
    while name in taken:
        number += 1
        name = f"{ROWID}_{number}"
    return ColumnDefinition(
        name=name,
        type=ColumnType(TypeKind.INT8),
        nullable=False,
        default_expression="UNIQUE_ROWID()",
        hidden=True,
    )


def named(query: exp.Expr, name: str) -> bool:
    """Whether anything in a query is called `name`."""
    return any(folded(identifier) == name for identifier in find_all(query, exp.Identifier))


def hide_columns(query: exp.Query, relations: Relations) -> None:
    """Takes hidden columns out of the stars of a query that also names them."""
    if not any(column.hidden for table in relations.values() for column in table.columns):
        return
    for scope in scopes_in(query):
        select = scope.expression
        if not isinstance(select, exp.Select):
            continue
        hidden: dict[str, set[str]] = {}
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                descriptor = relations[table_name(source).parts]
                hidden[alias] = {
                    column.name
                    for column in descriptor.visible_columns
                    if column.hidden and named(query, column.name)
                }
        for item in select.expressions:
            _hide(item, hidden)


def _hide(item: exp.Expr, hidden: dict[str, set[str]]) -> None:
    """Takes the hidden columns of each source, by its alias, out of one item's star."""
    if isinstance(item, exp.Star):
        star, names = item, set().union(*hidden.values())
    elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        star, names = item.this, hidden.get(folded(item.args["table"]), set())
    else:
        return
    if names:
        star.set("except_", [exp.to_identifier(name, quoted=True) for name in sorted(names)])
