"""Names in sqlglot's trees: what an identifier means, and where it stands."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from ...catalog.values.errors import SQLError
from .names import ObjectName
from .walks import walk

CAST_TYPE = "cast_type"
"""Where a cast keeps the type that it is to, if that is not plain from the type's name."""

DECLARED = "declared_type"
"""Where a column, or what stands for a cast, keeps the type that CREATE TABLE or the cast says."""

CALLED = "called"
"""Where what stands for a function keeps the name that its column has; empty for none."""

CUT_BLANKS = "cut_blanks"
"""Marks a parameter that is compared with a CHAR(n)."""


def folded(identifier: exp.Identifier) -> str:
    """The name that an identifier means: lower case unless quoted."""
    name: str = identifier.this
    return name if identifier.args.get("quoted") else name.lower()


def folded_alias(table: exp.Expr) -> str:
    """Returns the name by which a query calls an item of FROM; the empty text for none."""
    alias = table.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else table.this
    return folded(named) if isinstance(named, exp.Identifier) else ""


def alias_named(name: str, columns: Iterable[str] = ()) -> exp.TableAlias:
    """`AS name (columns)`"""
    named = [exp.to_identifier(column, quoted=True) for column in columns]
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=named)


def is_natural(join: exp.Expr) -> bool:
    """Whether a join is NATURAL."""
    return str(join.args.get("method") or "").upper() == "NATURAL"


def position_of(node: exp.Expr | None) -> int | None:
    """The position of the first identifier or literal of `node`, if sqlglot kept it."""
    if node is None:
        return None
    if isinstance(node, exp.Literal | exp.Identifier):
        start: int | None = node.meta.get("start")
        return None if start is None else start + 1
    starts = [n.meta["start"] for n in walk(node) if "start" in n.meta]
    return min(starts) + 1 if starts else None


def table_name(table: exp.Expr) -> ObjectName:
    """The name of a table reference. Raises SQLError for anything that is not one."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise SQLError("42601", "a table's name is expected", position=position_of(table))
    parts = [table.args.get("catalog"), table.args.get("db"), table.this]
    named = [part for part in parts if isinstance(part, exp.Identifier)]
    return ObjectName(tuple(map(folded, named)), position_of(named[0]) or 1)
