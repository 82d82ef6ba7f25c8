"""The keys of its tables that a query can be about, for DuckDB's scans.

    SELECT … FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.id = 7

`o.id = 7` narrows `orders`, and `lines` too: the equality carries it over. A table is narrowed by

    every row's conditions     those of WHERE and of inner joins
    its own join's             where it is joined by LEFT JOIN; for other tables they say nothing
    what equalities carry      among columns of one type
    what a statement has       `id IN (SELECT id FROM locked)`, and columns that equal one of
                               `locked`, where that is a part of WITH that has run before

Conditions are comparisons, which no NULL fulfils, but for IS NULL. So it is the same whether a left
join finds no row because of them, or WHERE refuses the row that it finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from sqlglot import exp

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import array_of
from ...catalog.values.type_kinds import TypeKind
from ...kvlayer.process.fibre import give_way
from ..access.key_access import KeyAccess, best_access
from ..analyze.binder import Relations, is_plain, row_scope
from ..analyze.given_tables import is_given, is_virtual, values_given
from ..analyze.predicates import ElementOf, NullTest, Predicate, compile_predicates
from ..analyze.scalars import NotNative, Scalar, Scope
from ..lower.transpile import names_used
from ..syntax.trees import find_all, folded, folded_alias, table_name

_CARRIED = frozenset(
    {
        TypeKind.INT8, TypeKind.STRING, TypeKind.BYTES, TypeKind.UUID,
        TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ,
    }
)  # fmt: skip
"""Broad types of which equal values are one value, and so fulfil the same conditions."""

_Place = tuple[str, int]
"""A table's alias, and the place of a column in its rows."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A table of FROM, and how it is joined: `merged` are the columns of USING. It is `optional`
    where a LEFT JOIN joins it."""

    descriptor: TableDescriptor
    scope: Scope
    optional: bool
    condition: exp.Expr | None
    merged: tuple[str, ...]


@dataclass(slots=True)
class _Conditions:
    """Conditions on columns: the predicates of tables, and which columns are equal."""

    predicates: dict[str, list[Predicate]] = field(default_factory=dict)
    equal: list[tuple[_Place, _Place]] = field(default_factory=list)


def scan_accesses(tree: exp.Expr, relations: Relations) -> dict[str, KeyAccess]:
    """The keys that a query's tables are read by, by their aliases; none for a table of which all
    rows are read, and for a query that has subqueries, or joins of other kinds."""
    sources = _sources(tree, relations)
    if sources is None:
        return {}
    assert isinstance(tree, exp.Select), tree
    known = _Conditions()
    where = tree.args.get("where")
    if where is not None:
        _note(where.this, sources, known)
        _note_given(where.this, sources, relations, known)
    for alias, source in sources.items():
        if not source.optional:
            _note_join(alias, sources, known)
    for alias, place in chain.from_iterable(known.equal):
        if is_given(table := sources[alias].descriptor):
            known.predicates.setdefault(alias, []).append(_one_of(place, table, place))
    carried = _carried(known)
    used, starred = names_used(tree)
    accesses: dict[str, KeyAccess] = {}
    for alias, source in sources.items():
        give_way()
        if is_virtual(source.descriptor):
            continue  # its rows have no keys to be read by
        columns = source.descriptor.visible_columns
        needed = [column.id for column in columns if starred or column.name in used]
        predicates = _predicates_of(alias, sources, known, carried)
        access = best_access(source.descriptor, predicates, needed)
        if access.restricts:
            accesses[alias] = access
    return accesses


def _sources(tree: exp.Expr, relations: Relations) -> dict[str, _Source] | None:
    """The tables of FROM by alias, where it has nothing but tables, joined or not."""
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return None
    if tree.args.get("with_"):
        return None
    within = [query for query in find_all(tree, exp.Query) if query is not tree]
    if any(_given_column(query.unnest(), relations) is None for query in within):
        return None
    joins: list[exp.Join] = tree.args.get("joins") or []
    sources: dict[str, _Source] = {}
    for table, join in [(tree.args["from_"].this, None), *((join.this, join) for join in joins)]:
        if not is_plain(table) or not (join is None or _narrowing(join)):
            return None
        descriptor = relations[table_name(table).parts]
        source = _Source(
            descriptor,
            row_scope(descriptor),
            optional=join is not None and join.side == "LEFT",
            condition=None if join is None else join.args.get("on"),
            merged=tuple(map(folded, (join and join.args.get("using")) or ())),
        )
        if sources.setdefault(folded_alias(table), source) is not source:
            return None
    return sources


def _given_column(query: exp.Expr, relations: Relations) -> tuple[TableDescriptor, int] | None:
    """Returns the table that a part of WITH has given and the place of its column, where a query is
    `SELECT column FROM table`."""
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return None
    if any(value for arg, value in query.args.items() if arg not in ("expressions", "from_")):
        return None
    source = query.args["from_"].this if query.args.get("from_") else None
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    table = relations.get(table_name(source).parts)
    if table is None or not is_given(table):
        return None
    item = query.expressions[0].unalias()
    if isinstance(item, exp.Star) and len(table.shown_columns) == 1:
        return table, table.visible_columns.index(table.shown_columns[0])
    plain = isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier)
    found = row_scope(table).get(folded(item.this)) if plain else None
    return None if found is None else (table, found[0])


def _narrowing(join: exp.Join) -> bool:
    """Whether its rows fulfil its condition, or are rows of its left side that nothing matches."""
    return (
        join.side in ("", "LEFT")
        and join.kind in ("", "INNER", "CROSS", "OUTER")
        and not join.method
    )


def _note_join(alias: str, sources: Mapping[str, _Source], known: _Conditions) -> None:
    """Adds what the join of a table says by ON, or by USING: there each column is that of the only
    table before it that has one of its name."""
    source = sources[alias]
    if source.condition is not None:
        _note(source.condition, sources, known)
    earlier = list(sources)[: list(sources).index(alias)] if source.merged else []
    for name in source.merged:
        owners = [other for other in earlier if name in sources[other].scope]
        if len(owners) == 1 and name in source.scope:
            pair = (owners[0], sources[owners[0]].scope[name][0]), (alias, source.scope[name][0])
            if _alike(*pair, sources):
                known.equal.append(pair)


def _note(condition: exp.Expr, sources: Mapping[str, _Source], known: _Conditions) -> None:
    """Adds what the conjuncts of a condition say, as far as it can be used."""
    conjuncts = condition.flatten() if isinstance(condition, exp.And) else [condition]
    for conjunct in conjuncts:
        give_way()
        columns = [_place(column, sources) for column in find_all(conjunct, exp.Column)]
        aliases = {place[0] for place in columns if place is not None}
        if None in columns or not aliases:
            continue
        if len(aliases) == 1:
            (alias,) = aliases
            try:
                found = compile_predicates(conjunct, sources[alias].scope, alias, arrays=True)
            except NotNative:
                continue
            known.predicates.setdefault(alias, []).extend(found)
        elif isinstance(conjunct, exp.EQ) and len(columns) == 2:
            pair = [conjunct.this.unnest(), conjunct.expression.unnest()]
            left, right = columns
            assert left is not None and right is not None
            if all(isinstance(side, exp.Column) for side in pair) and _alike(left, right, sources):
                known.equal.append((left, right))


def _note_given(
    condition: exp.Expr, sources: Mapping[str, _Source], relations: Relations, known: _Conditions
) -> None:
    """Adds the conjuncts `column = (SELECT …)` and `column IN (SELECT …)` of what is given."""
    for conjunct in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        match conjunct:
            case exp.In(this=exp.Column() as column) if conjunct.args.get("query"):
                query = conjunct.args["query"]
            case exp.EQ(this=exp.Column() as column, expression=exp.Subquery() as query):
                pass
            case _:
                continue
        place, given = _place(column, sources), _given_column(query.unnest(), relations)
        if place is None or given is None:
            continue
        own = sources[place[0]].descriptor.visible_columns[place[1]]
        if _carries(own, given[0].visible_columns[given[1]]):
            known.predicates.setdefault(place[0], []).append(_one_of(place[1], *given))


def _one_of(place: int, table: TableDescriptor, column: int) -> ElementOf:
    """Returns the predicate that a column has one of the values of a given table's."""
    type = table.visible_columns[column].type
    values = Scalar(array_of(type), lambda _, bindings: values_given(table, column, bindings), True)
    return ElementOf(column=place, type=type, array=values)


def _place(column: exp.Column, sources: Mapping[str, _Source]) -> _Place | None:
    """Returns the place of a column; None where not just one table has it."""
    if not isinstance(column.this, exp.Identifier):
        return None
    name, table = folded(column.this), column.args.get("table")
    aliases = list(sources) if table is None else [folded(table)]
    owners = [alias for alias in aliases if alias in sources and name in sources[alias].scope]
    if len(owners) != 1:
        return None
    return owners[0], sources[owners[0]].scope[name][0]


def _alike(left: _Place, right: _Place, sources: Mapping[str, _Source]) -> bool:
    """Whether a condition on one of the columns may be carried over to the other."""
    return _carries(
        *(sources[alias].descriptor.visible_columns[place] for alias, place in (left, right))
    )


def _carries(one: Column, other: Column) -> bool:
    return one.type.broad == other.type.broad and one.type.broad.kind in _CARRIED


def _carried(known: _Conditions) -> dict[_Place, list[Predicate]]:
    """The predicates on each column that equals others, theirs among them."""
    parents: dict[_Place, _Place] = {}

    def root(place: _Place) -> _Place:
        while (parent := parents.get(place, place)) != place:
            parents[place] = parents.get(parent, parent)
            place = parent
        return place

    for left, right in known.equal:
        parents[root(left)] = root(right)
        parents.setdefault(root(right), root(right))
    classes: dict[_Place, list[Predicate]] = {}
    for alias, predicates in known.predicates.items():
        for predicate in predicates:
            place = alias, predicate.column
            if place in parents:
                classes.setdefault(root(place), []).append(predicate)
    return {place: classes.get(root(place), []) for place in parents}


def _predicates_of(
    alias: str,
    sources: Mapping[str, _Source],
    known: _Conditions,
    carried: Mapping[_Place, Sequence[Predicate]],
) -> list[Predicate]:
    """Returns the predicates that narrow a table."""
    source = sources[alias]
    found = list(known.predicates.get(alias, ()))
    if source.optional:
        # `IS NULL` is fulfilled where the join found nothing, of whatever rows there are.
        found = [each for each in found if not (isinstance(each, NullTest) and each.null)]
    for place, _ in source.scope.values():
        found += _on(place, carried.get((alias, place), ()))
    if source.optional:
        own = _Conditions()
        _note_join(alias, sources, own)
        found += own.predicates.get(alias, ())
        for pair in own.equal:
            for (table, place), (other, column) in (pair, pair[::-1]):
                if table == alias:
                    found += _on(place, carried.get((other, column), ()))
                    told = known.predicates.get(other, ())
                    found += _on(place, [each for each in told if each.column == column])
    return found


def _on(place: int, predicates: Sequence[Predicate]) -> list[Predicate]:
    return [replace(predicate, column=place) for predicate in predicates]
