"""SELECT on one table's keys, and queries that are answered piece by piece, where the statement has
that shape.

    SELECT items FROM t WHERE conjunction [ORDER BY key] [LIMIT n] [OFFSET n]

An item is a column, or a whole number, as by which ORMs ask whether a row is there (`SELECT 1 AS
one`). The conjunction must fix a first part of the key of an index, the primary one
or a secondary one; without one, a LIMIT alone makes reading row by row worth while, in the order
of any index.

Piece by piece is answered what says of a table what it says of its parts, one part behind another:

    SELECT id, n * 2 FROM t WHERE n > 1 LIMIT 100     piecewise: each row is answered by itself
    SELECT m FROM (SELECT n AS m FROM t) AS v         piecewise, as is a view that is so
    SELECT id FROM t ORDER BY id                      piecewise, read in the order of the key
    SELECT count(*) FROM t; … ORDER BY n; … DISTINCT  not: a row's answer depends on other rows

So a table of any size is read, computed and sent a part at a time, and is never held whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.column_types import INT8, INT8_MAX
from ...catalog.values.type_kinds import FLOATS, TypeKind
from ..access.key_access import KeyAccess, key_access, ranked_accesses
from ..analyze.binder import Relations, check_columns, row_scope, single_table
from ..analyze.columns.output_columns import origin_of, output_name
from ..analyze.predicates import compile_predicates
from ..analyze.scalars import NotNative, Scalar, Scope, adapt, compile_scalar
from ..lower.transpile import Piecewise
from ..results.results import ResultColumn
from ..syntax.trees import find_all, folded, folded_alias, table_name
from .plans import NativeSelect

_SIMPLE = {
    "expressions",
    "from_",
    "where",
    "order",
    "limit",
    "offset",
    "kind",
    "operation_modifiers",
}


def native_select(tree: exp.Expr, relations: Relations) -> NativeSelect | None:
    """The native plan, or None where DuckDB must do it. Raises SQLError for unknown columns."""
    source = single_table(tree)
    if source is None:
        return None
    assert isinstance(tree, exp.Select), tree
    if any(value for arg, value in tree.args.items() if arg not in _SIMPLE):
        return None
    descriptor = relations[table_name(source).parts]
    relation = folded_alias(source)
    scope = row_scope(descriptor)
    where = tree.args.get("where")
    condition = where.this if where is not None else None
    check_columns(condition, descriptor, relation)
    try:
        predicates = compile_predicates(condition, scope, relation, arrays=True)
        limit = row_count(tree.args.get("limit"))
        offset = row_count(tree.args.get("offset"))
        columns, constants, names = _columns(tree, descriptor, scope, relation)
        order = _order(tree, descriptor, scope, relation)
    except NotNative:
        return None
    places = {*columns, *(predicate.column for predicate in predicates)}
    visible = descriptor.visible_columns
    needed = {column.id for place, column in enumerate(visible) if place in places}
    any_row_will_do = limit is not None and not predicates
    for access in ranked_accesses(descriptor, predicates, needed):
        reverse = _direction(access, order)
        if reverse is None or not (access.restricts or any_row_will_do):
            continue
        return NativeSelect(
            access=access,
            predicates=predicates,
            columns=columns,
            constants=constants,
            names=names,
            covered=access.holds(needed),
            reverse=reverse,
            limit=limit,
            offset=offset,
        )
    return None


def row_count(clause: exp.Expr | None) -> Scalar | None:
    """LIMIT or OFFSET as a scalar."""
    if clause is None:
        return None
    if not isinstance(clause, exp.Limit | exp.Offset) or clause.args.get("limit_options"):
        raise NotNative("FETCH")
    scalar = adapt(compile_scalar(clause.expression, {}), INT8)
    return scalar


def _columns(
    tree: exp.Select, descriptor: TableDescriptor, scope: Scope, relation: str
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[ResultColumn, ...]]:
    """The places of the columns that are shown, the constants behind those of the table, and what
    they are called."""
    places: list[int] = []
    constants: list[int] = []
    names: list[ResultColumn] = []

    def show(place: int, name: str) -> None:
        column = descriptor.visible_columns[place]
        places.append(place)
        names.append(ResultColumn(name, column.type, origin_of(descriptor, column.name)))

    for item in tree.expressions:
        inner = item.unalias().unnest()
        if isinstance(inner, exp.Star) and not any(inner.args.values()):
            for place, column in enumerate(descriptor.visible_columns):
                if not column.hidden:
                    show(place, column.name)
            continue
        if isinstance(inner, exp.Literal) and inner.is_int and int(inner.this) <= INT8_MAX:
            places.append(len(descriptor.visible_columns) + len(constants))
            constants.append(int(inner.this))
            names.append(ResultColumn(output_name(item), INT8))
            continue
        if not isinstance(inner, exp.Column):
            raise NotNative("what is computed")
        check_columns(inner, descriptor, relation)
        compile_scalar(inner, scope, relation)
        show(scope[folded(inner.this)][0], output_name(item))
    return tuple(places), tuple(constants), tuple(names)


@dataclass(frozen=True, slots=True)
class _OrderItem:
    column_id: int
    descending: bool
    nulls_first: bool


def _order(
    tree: exp.Select, descriptor: TableDescriptor, scope: Scope, relation: str
) -> tuple[_OrderItem, ...]:
    """ORDER BY, where it is by columns alone."""
    clause = tree.args.get("order")
    aliases = {item.alias for item in tree.expressions if isinstance(item, exp.Alias)}
    items: list[_OrderItem] = []
    for item in clause.expressions if clause is not None else ():
        column = item.this
        if not isinstance(item, exp.Ordered) or not isinstance(column, exp.Column):
            raise NotNative("order by expression")
        if column.name in aliases:
            raise NotNative("order by alias")
        check_columns(column, descriptor, relation)
        compile_scalar(column, scope, relation)
        place, _ = scope[folded(column.this)]
        found = descriptor.visible_columns[place]
        descending, nulls_first = bool(item.args.get("desc")), bool(item.args.get("nulls_first"))
        items.append(_OrderItem(found.id, descending, nulls_first))
    return tuple(items)


def _direction(access: KeyAccess, order: Sequence[_OrderItem]) -> bool | None:
    """Whether keys must be read in reverse; None where their order is not the one asked for."""
    if not order:
        return False
    fixed = access.fixed_columns
    if any(column.type.kind in FLOATS for column in access.columns):
        return None  # NaN sorts elsewhere in keys
    done = {column.id for column in access.columns[:fixed]}
    remaining = list(enumerate(access.columns))[fixed:]
    directions = set()
    for item in order:
        if item.column_id in done:
            continue
        if not remaining or remaining[0][1].id != item.column_id:
            return None
        place, column = remaining.pop(0)
        bounded = place < len(access.alternatives) or (
            place == len(access.alternatives) and access.bounds > 0
        )
        # Keys have NULLs first, and where a predicate compares the column they have none.
        if column.nullable and not bounded and item.nulls_first is item.descending:
            return None
        directions.add(item.descending)
    if len(directions) > 1:
        return None
    return directions == {True}


_CLAUSES = {"expressions", "from_", "where", "order", "limit", "kind", "operation_modifiers"}
_INNER_CLAUSES = _CLAUSES - {"order", "limit"}
_OTHER_ROWS = (exp.AggFunc, exp.Window, exp.Anonymous, exp.AnonymousAggFunc)
"""Nodes that may look at other rows: a function that the parser does not know may be an
aggregate."""


def piecewise(tree: exp.Expr, relations: Relations) -> Piecewise | None:
    """The plan of a query that is answered piece by piece, or None where it cannot be."""
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
    if order is not None and (source is None or not _in_key_order(tree, source, relations)):
        return None
    return Piecewise(limit)


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


def _in_key_order(tree: exp.Select, source: exp.Table, relations: Relations) -> bool:
    """Whether ORDER BY names leading columns of the primary key, which DuckDB sorts alike."""
    descriptor = relations[table_name(source).parts]
    try:
        order = _order(tree, descriptor, row_scope(descriptor), folded_alias(source))
    except NotNative:
        return False
    keys = key_access(descriptor, descriptor.primary_index, ())
    sorted_alike = not any(
        column.type.enum is not None or column.type.kind is TypeKind.INTERVAL
        for column in keys.columns
    )
    return sorted_alike and _direction(keys, order) is False
