"""SELECT on one table's keys, where the statement has that shape.

    SELECT columns FROM t WHERE conjunction [ORDER BY key] [LIMIT n] [OFFSET n]

The conjunction must fix a first part of the primary key; without one, a LIMIT alone makes reading
row by row worth while.
"""

from __future__ import annotations

from sqlglot import exp

from ..catalog.descriptor import TableDescriptor
from ..catalog.type_kinds import FLOATS
from .binder import Relations, check_columns, row_scope
from .key_access import KeyAccess, key_access
from .parser import folded
from .parser.queries import table_name
from .plans import NativeSelect
from .predicates import Predicate, compile_predicates
from .results import ResultColumn
from .scalars import INT8, NotNative, Scalar, Scope, adapt, compile_scalar
from .transpile import folded_alias, output_name

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
    source = _single_table(tree)
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
        predicates = compile_predicates(condition, scope, relation)
        access = key_access(descriptor, predicates)
        limit = row_count(tree.args.get("limit"))
        if not access.restricts and (limit is None or predicates):
            return None
        columns, names = _columns(tree, descriptor, scope, relation)
        return NativeSelect(
            access=access,
            predicates=predicates,
            columns=columns,
            names=names,
            reverse=_direction(tree, descriptor, access, scope, relation),
            limit=limit,
            offset=row_count(tree.args.get("offset")),
        )
    except NotNative:
        return None


def scan_access(tree: exp.Expr, relations: Relations) -> KeyAccess | None:
    """The keys that a query on one table can be about, for DuckDB's scan; None for all."""
    source = _single_table(tree)
    if source is None or tree.find(exp.Join) is not None:
        return None
    descriptor = relations[table_name(source).parts]
    where = tree.args.get("where")
    conjuncts = list(where.this.flatten()) if where and isinstance(where.this, exp.And) else []
    if where and not conjuncts:
        conjuncts = [where.this]
    predicates: list[Predicate] = []
    for conjunct in conjuncts:
        try:
            scope, relation = row_scope(descriptor), folded_alias(source)
            predicates += compile_predicates(conjunct, scope, relation)
        except NotNative:
            continue
    access = key_access(descriptor, predicates)
    return access if access.restricts else None


def _single_table(tree: exp.Expr) -> exp.Table | None:
    """The table of `SELECT … FROM table`, where there is no other source and no subquery."""
    if not isinstance(tree, exp.Select):
        return None
    source = tree.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        return None
    table: exp.Table = source.this
    alias = table.args.get("alias")
    plain = (
        isinstance(table.this, exp.Identifier)
        and not any(table.args.get(clause) for clause in ("joins", "laterals", "sample"))
        and not (alias is not None and alias.columns)
    )
    queries = sum(1 for _ in tree.find_all(exp.Query))
    return table if plain and queries == 1 else None


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
) -> tuple[tuple[int, ...], tuple[ResultColumn, ...]]:
    places: list[int] = []
    names: list[ResultColumn] = []
    for item in tree.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Star) and not any(inner.args.values()):
            for place, column in enumerate(descriptor.visible_columns):
                if column.hidden:
                    continue
                places.append(place)
                names.append(ResultColumn(column.name, column.type))
            continue
        if not isinstance(inner, exp.Column):
            raise NotNative("expression")
        check_columns(inner, descriptor, relation)
        compile_scalar(inner, scope, relation)
        place, type = scope[folded(inner.this)]
        places.append(place)
        names.append(ResultColumn(output_name(item), type))
    return tuple(places), tuple(names)


def _direction(
    tree: exp.Select,
    descriptor: TableDescriptor,
    access: KeyAccess,
    scope: Scope,
    relation: str,
) -> bool:
    """Whether keys must be read in reverse. Raises NotNative where their order is not the one."""
    order = tree.args.get("order")
    if order is None:
        return False
    places = {column.id: place for place, column in enumerate(descriptor.visible_columns)}
    key = [places[column.id] for column in descriptor.key_columns]
    if any(column.type.kind in FLOATS for column in descriptor.key_columns):
        raise NotNative("NaN sorts elsewhere in keys")
    remaining = key[access.fixed_columns :]
    aliases = {item.alias for item in tree.expressions if isinstance(item, exp.Alias)}
    directions = set()
    for item in order.expressions:
        column = item.this
        if not isinstance(item, exp.Ordered) or not isinstance(column, exp.Column):
            raise NotNative("order by expression")
        if column.name in aliases:
            raise NotNative("order by alias")
        check_columns(column, descriptor, relation)
        compile_scalar(column, scope, relation)
        place, _ = scope[folded(column.this)]
        if place in key[: access.fixed_columns]:
            continue
        if not remaining or remaining.pop(0) != place:
            raise NotNative("not the order of the key")
        directions.add(bool(item.args.get("desc")))
    if len(directions) > 1:
        raise NotNative("mixed directions")
    return directions == {True}
