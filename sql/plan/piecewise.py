"""Queries that may be answered piece by piece: what they say of a table is what they say of its
parts, one part behind another.

    SELECT id, n * 2 FROM t WHERE n > 1 LIMIT 100     piecewise: each row is answered by itself
    SELECT m FROM (SELECT n AS m FROM t) AS v         piecewise, as is a view that is so
    SELECT id FROM t ORDER BY id                      piecewise, read in the order of the key
    SELECT count(*) FROM t; … ORDER BY n; … DISTINCT  not: a row's answer depends on other rows

So a table of any size is read, computed and sent a part at a time, and is never held whole.
"""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.column_types import ColumnType
from ...catalog.values.type_kinds import INTEGERS, TypeKind
from ..analyze.binder import Relations
from ..analyze.scalars import NotNative
from ..lower.analytic_select import Piecewise
from ..lower.transpile import folded_alias
from ..parse import folded
from ..parse.queries import table_name
from ..syntax.walks import find_all
from .native_select import row_count, single_table

_CLAUSES = {"expressions", "from_", "where", "order", "limit", "kind", "operation_modifiers"}
_INNER_CLAUSES = _CLAUSES - {"order", "limit"}
_SORTED_ALIKE = frozenset(
    (
        *INTEGERS,
        TypeKind.BOOL,
        TypeKind.STRING,
        TypeKind.VARCHAR,
        TypeKind.BYTES,
        TypeKind.DECIMAL,
        TypeKind.DATE,
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMPTZ,
        TypeKind.UUID,
    )
)
"""Types whose keys are in the order in which DuckDB sorts values. Floats are not: see NaN."""

_OTHER_ROWS = (exp.AggFunc, exp.Window, exp.Anonymous, exp.AnonymousAggFunc)
"""Nodes that may look at other rows: a function that the parser does not know may be an
aggregate."""


def piecewise(tree: exp.Expr, relations: Relations) -> Piecewise | None:
    """How a query is answered piece by piece, or None where it cannot be."""
    source = single_table(tree)
    if source is None and not _over_one_table(tree):
        return None
    assert isinstance(tree, exp.Select), tree
    if any(value for arg, value in tree.args.items() if arg not in _CLAUSES):
        return None
    if tree.find(*_OTHER_ROWS) is not None:
        return None
    try:
        limit = row_count(tree.args.get("limit"))
    except NotNative:
        return None
    order = tree.args.get("order")
    if order is not None and (source is None or not _in_key_order(order, tree, source, relations)):
        return None
    return Piecewise(limit, order is not None)


def _over_one_table(tree: exp.Expr) -> bool:
    """Whether a query reads one table through queries in FROM, as through a view, each of which
    answers row by row."""
    depth, select = 0, tree
    while isinstance(select, exp.Select) and single_table(select) is None:
        clause = select.args.get("from_")
        below = None if clause is None else clause.this
        if not isinstance(below, exp.Subquery) or set(_given(below)) - {"this", "alias"}:
            return False
        depth, select = depth + 1, below.this
        if set(_given(select)) - _INNER_CLAUSES:
            return False
    # A query and what puts it into FROM for each of them, and none elsewhere.
    return isinstance(select, exp.Select) and len(list(find_all(tree, exp.Query))) == 1 + 2 * depth


def _given(node: exp.Expr) -> list[str]:
    return [arg for arg, value in node.args.items() if value]


def _in_key_order(
    order: exp.Expr, tree: exp.Select, source: exp.Table, relations: Relations
) -> bool:
    descriptor = relations[table_name(source).parts]
    relation = folded_alias(source)
    names = {item.alias for item in tree.expressions if isinstance(item, exp.Alias)}
    keys = descriptor.key_columns
    if len(order.expressions) > len(keys):
        return False
    for item, key in zip(order.expressions, keys, strict=False):
        column = item.this if isinstance(item, exp.Ordered) else None
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
            return False
        if item.args.get("desc") or (column.table and folded(column.args["table"]) != relation):
            return False
        # A column of the result that is called so goes before the table's.
        if folded(column.this) != key.name or key.name in names or not _sorted_alike(key.type):
            return False
    return True


def _sorted_alike(type: ColumnType) -> bool:
    return type.enum is None and type.kind in _SORTED_ALIKE
