"""Names: which tables a statement mentions, and what its columns are.

Tables are looked up by whoever runs the statement, because that reads the catalog; here is the
part that needs no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.scope import COLLECTIBLE_TYPES, _traverse_scope
from sqlglot.optimizer.scope import Scope as QueryScope

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.errors import SQLError
from ...kvlayer.process.fibre import at_end, end_slice, give_way
from ..parse.dml import STEPS, with_ctes
from ..syntax.statement import ObjectName, Statement
from ..syntax.statements import Delete, Explain, Insert, PlannedStatement, Query, Update, WithWrites
from ..syntax.trees import (
    alias_named,
    copied,
    error_at,
    find_all,
    folded,
    position_of,
    stepping,
    table_name,
    trees_in,
    unsupported,
)
from .scalars import Scope

LONG_LIST = 100
"""Items of IN and rows of VALUES that sqlglot's scopes may look at: 0.1 ms."""

TABLE_FUNCTIONS = (exp.ExplodingGenerateSeries, exp.GenerateSeries, exp.Unnest)
"""Functions that FROM takes. Others are DuckDB's own and read files or its catalog."""


Relations = Mapping[tuple[str, ...], TableDescriptor]
"""The tables of a statement by the parts of their names as written."""


@dataclass(frozen=True, slots=True)
class NamedTables:
    """The tables that a statement writes, and those that it reads, as often as it names each. The
    target of DML is read only if a query in the statement reads it."""

    written: tuple[ObjectName, ...]
    read: tuple[ObjectName, ...]

    @property
    def names(self) -> list[ObjectName]:
        """Returns each table once, as it is named first."""
        found: dict[tuple[str, ...], ObjectName] = {}
        for name in (*self.written, *self.read):
            found.setdefault(name.parts, name)
        return list(found.values())


def tables_of(statement: Statement) -> NamedTables:
    """Returns the tables that a statement names. Raises SQLError for what is none in FROM."""
    match statement:
        case Query(tree=tree):
            return NamedTables((), _named_in(tree))
        case Insert(table=table):
            read = [name for tree in trees_in(statement) for name in _in_queries(tree)]
            return NamedTables((table,), tuple(read))
        case Update(table=table, assignments=assignments):
            values = [value for _, value in assignments]
            return NamedTables((table,), _read_beside(statement, [*values, *statement.returning]))
        case Delete(table=table):
            return NamedTables((table,), _read_beside(statement, statement.returning))
        case WithWrites():
            parts = [tables_of(part) for part in parts_of(statement)]
            read = [name for part in parts for name in part.read if name.parts[0] != STEPS]
            return NamedTables(tuple(name for part in parts for name in part.written), tuple(read))
        case Explain(statement=inner):
            return tables_of(inner)
    return NamedTables((), ())


def parts_of(statement: PlannedStatement) -> tuple[Query | Insert | Update | Delete, ...]:
    """Returns the statement, or the parts of a WITH that writes."""
    if isinstance(statement, WithWrites):
        return (*(step.statement for step in statement.steps), statement.main)
    return (statement,)


def _named_in(tree: exp.Expr) -> tuple[ObjectName, ...]:
    return tuple([table_name(table) for table in tables_in(tree)])


VIEW = "view"
"""The key of a subquery's `meta` with the parts of the name of the view that it stands for."""


def _read_beside(statement: Update | Delete, items: Sequence[exp.Expr]) -> tuple[ObjectName, ...]:
    """The tables that a statement reads beside its target; none where it has no query in it."""
    trees = [*items] if statement.where is None else [*items, statement.where]
    if statement.sources or statement.ctes or any(any(find_all(t, exp.Query)) for t in trees):
        return _named_in(reading_query(statement, items))
    return ()


def reading_query(statement: Update | Delete, items: Sequence[exp.Expr]) -> exp.Select:
    """`WITH … SELECT items FROM sources WHERE …`: what a statement reads beside its own table."""
    query = exp.select(*map(copied, items or [exp.null()]), copy=False)
    for number, source in enumerate(statement.sources):
        query = query.from_(source.copy()) if number == 0 else joined(query, [source])
    if statement.where is not None:
        query.set("where", exp.Where(this=copied(statement.where)))
    return with_ctes(query, statement.ctes)


def joined(query: exp.Select, sources: Sequence[exp.Expr]) -> exp.Select:
    """The query with more items in its FROM clause."""
    joins = [*(query.args.get("joins") or ()), *(exp.Join(this=copied(s)) for s in sources)]
    query.set("joins", joins)
    return query


def table_called(parts: Sequence[str], alias: str) -> exp.Table:
    """Returns `catalog.db.this AS alias`, by whatever parts the name has."""
    names = [exp.to_identifier(part, quoted=True) for part in reversed(parts)]
    places = dict(zip(("this", "db", "catalog"), names, strict=False))
    return exp.Table(**places, alias=alias_named(alias))


def _in_queries(tree: exp.Expr) -> Iterator[ObjectName]:
    """Yields the tables of a query, or of the queries in an expression."""
    whole = isinstance(tree, exp.Query)
    for query in [tree] if whole else find_all(tree, exp.Select):
        if whole or query.find_ancestor(exp.Select) is None:
            yield from _named_in(query)


def single_table(tree: exp.Expr) -> exp.Table | None:
    """The table of `SELECT … FROM table`, where there is no other source and no subquery."""
    if not isinstance(tree, exp.Select):
        return None
    source = tree.args.get("from_")
    if source is None or not is_plain(source.this):
        return None
    if tree.args.get("joins") or tree.args.get("laterals"):
        return None
    table: exp.Table = source.this
    queries = sum(1 for _ in find_all(tree, exp.Query))
    return table if queries == 1 else None


def is_plain(table: exp.Expr) -> bool:
    """Whether an item of FROM is a table as it is: not sampled, and its columns not renamed."""
    alias = table.args.get("alias")
    return (
        isinstance(table, exp.Table)
        and isinstance(table.this, exp.Identifier)
        and not any(table.args.get(clause) for clause in ("joins", "laterals", "sample"))
        and not (alias is not None and alias.columns)
    )


def tables_in(tree: exp.Expr) -> list[exp.Table]:
    """The table references of a query that are tables: no CTEs, no functions."""
    alone = single_table(tree)
    if alone is not None:
        _refuse_clauses(alone)
        return [alone]
    tables: dict[int, exp.Table] = {}
    for scope in scopes_in(tree):
        for source in scope.sources.values():
            if not isinstance(source, exp.Table):
                continue
            if isinstance(source.this, exp.Identifier):
                _refuse_clauses(source)
                tables[id(source)] = source
            elif source.this is None:
                raise SQLError("42601", "syntax error: ROWS FROM is not supported")
            elif not isinstance(source.this, TABLE_FUNCTIONS):
                shown = source.this.sql("postgres").partition("(")[0].lower()
                raise error_at(
                    source,
                    "42883",
                    f"function {shown} does not exist or returns no table",
                    "FROM takes tables, subqueries, generate_series and unnest.",
                )
    return list(tables.values())


_TABLE_CLAUSES = {"this", "db", "catalog", "alias", "joins", "laterals", "sample", "only"}
"""Parts of a table reference that are supported. There is no inheritance, so ONLY changes
nothing."""


def _refuse_clauses(table: exp.Table) -> None:
    for clause, value in table.args.items():
        if value and clause not in _TABLE_CLAUSES:
            raise unsupported(f"{clause} behind a table", table)


def scopes_in(tree: exp.Expr) -> list[QueryScope]:
    """sqlglot's scopes of a query, innermost first; none of what is no query.

    sqlglot makes each scope in one step, so scopes are made one by one (`traverse_scope` makes all
    of them in a call), and without the constants that no scope looks for."""
    aside = _long_constants(tree)
    try:
        for node, items in aside:
            node.args["expressions"] = items[:1]
        end_slice()
        whole = _traverse_scope(QueryScope(tree)) if isinstance(tree, exp.Query) else ()
        scopes = list(stepping(whole))
        for scope in scopes:
            give_way()
            _ = scope.selected_sources  # looks for names that are there twice
    except OptimizeError as error:
        name = f"{error}".rpartition(": ")[2]
        message, hint = f'table name "{name}" specified more than once', None
        if not name:
            message = "several tables and functions of FROM have no name"
            hint = "Write AS and a name behind each."
        raise SQLError("42712", message, hint=hint) from error
    finally:
        for node, items in aside:
            node.args["expressions"] = items
    at_end(partial(_dismantle, scopes))
    return scopes


def _long_constants(tree: exp.Expr) -> list[tuple[exp.Expr, list[exp.Expr]]]:
    """Returns the lists of IN and VALUES that are long and have nothing for a scope in them."""
    lists = [(node, node.expressions) for node in find_all(tree, exp.In, exp.Values)]
    return [
        (node, items)
        for node, items in lists
        if len(items) > LONG_LIST
        and not any(any(find_all(item, *COLLECTIBLE_TYPES)) for item in items)
    ]


def _dismantle(scopes: list[QueryScope]) -> None:
    """Scopes hold one another, and would wait for the collector, which takes all in one step."""
    while scopes:
        give_way()
        scope = scopes.pop()
        scope.clear_cache()
        scope.parent = None
        for held in (scope.sources, scope.cte_sources, scope.lateral_sources):
            held.clear()
        for parts in (
            scope.subquery_scopes, scope.derived_table_scopes, scope.table_scopes,
            scope.cte_scopes, scope.set_operation_scopes, scope.udtf_scopes,
        ):  # fmt: skip
            parts.clear()


def sources_named(scope: QueryScope, name: str) -> list[exp.Expr | QueryScope]:
    """Returns the sources that FROM has under a name: exactly, or else in letters of any case."""
    found = scope.sources.get(name)
    if found is not None:
        return [found]
    lower = name.lower()
    return [source for alias, source in scope.sources.items() if alias.lower() == lower]


def row_scope(descriptor: TableDescriptor) -> Scope:
    """The columns of one table by name: their places in a row, and their broad types."""
    return {
        column.name: (place, column.type.broad)
        for place, column in enumerate(descriptor.visible_columns)
    }


def column_of(descriptor: TableDescriptor, name: str, position: int | None) -> tuple[int, Column]:
    """A column's place and the column. Raises SQLError 42703 with a suggestion."""
    for place, column in enumerate(descriptor.visible_columns):
        if column.name == name:
            return place, column
    raise unknown_column(name, [descriptor], position)


def places_of(
    columns: Sequence[exp.Identifier] | None, descriptor: TableDescriptor
) -> tuple[int, ...]:
    """The places of the columns that an INSERT names, or of all that are shown. Raises SQLError
    42703 and 42701."""
    if columns is None:
        visible = enumerate(descriptor.visible_columns)
        return tuple(place for place, column in visible if not column.hidden)
    places: list[int] = []
    for identifier in columns:
        position = position_of(identifier)
        place, column = column_of(descriptor, folded(identifier), position)
        if place in places:
            raise SQLError(
                "42701", f'column "{column.name}" specified more than once', position=position
            )
        places.append(place)
    return tuple(places)


def unknown_column(name: str, tables: Sequence[TableDescriptor], position: int | None) -> SQLError:
    """The error (42703) for an unknown column, with the nearest name of the tables in its hint."""
    names = [column.name for table in tables for column in table.visible_columns]
    near = get_close_matches(name, names, n=1)
    if near:
        hint = f'Did you mean "{near[0]}"?'
    elif names:
        hint = f"Columns: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}."
    else:
        hint = None
    where = f' of relation "{tables[0].name}"' if len(tables) == 1 else ""
    return SQLError("42703", f'column "{name}"{where} does not exist', hint=hint, position=position)


def check_columns(tree: exp.Expr | None, descriptor: TableDescriptor, relation: str | None) -> None:
    """Says which column is unknown where a plain condition on one table names one.

    Only for trees without subqueries, in which a name can mean nothing but a column of the table.
    """
    alone = isinstance(tree, exp.Column)
    if tree is None or (not alone and tree.find(exp.Query) is not None):
        return
    for column in (tree,) if alone else find_all(tree, exp.Column):
        if not isinstance(column.this, exp.Identifier):
            continue
        qualifier = column.args.get("table")
        if qualifier is not None and folded(qualifier) not in (relation, descriptor.name):
            raise error_at(
                qualifier, "42P01", f'missing FROM-clause entry for table "{folded(qualifier)}"'
            )
        name = folded(column.this)
        if qualifier is None and name == relation and not descriptor.find_column(name):
            continue  # its whole row, which is refused where types are
        column_of(descriptor, name, position_of(qualifier or column.this))


def refuse_sets(tree: exp.Expr, clause: str, *, series: bool = False) -> None:
    """Raises SQLError for what is computed of several rows, outside of subqueries; and for
    functions that return sets, but in a clause that takes a `series`."""
    for node in find_all(tree, exp.AggFunc, exp.Window, *(() if series else TABLE_FUNCTIONS)):
        if node.find_ancestor(exp.Query) is not None:
            continue
        if isinstance(node, exp.Window):
            sqlstate, what = "42P20", "window functions"
        elif isinstance(node, TABLE_FUNCTIONS):
            sqlstate, what = "0A000", "set-returning functions"
        elif node.find_ancestor(exp.Window) is None:
            sqlstate, what = "42803", "aggregate functions"
        else:
            continue
        raise error_at(node, sqlstate, f"{what} are not allowed in {clause}")


def refuse_parameters(tree: exp.Expr, taker: str) -> None:
    """Raises SQLError 42P02 for a parameter in what is kept beyond its statement."""
    if tree.find(exp.Parameter) is not None:
        raise SQLError("42P02", f"{taker} takes no parameters")


def descriptor_of(source: exp.Expr | QueryScope, relations: Relations) -> TableDescriptor | None:
    """Returns the table that a source is, or the view that a subquery stands for."""
    if isinstance(source, QueryScope):
        return _view_of(source, relations)
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    return relations.get(table_name(source).parts)


def _view_of(source: QueryScope, relations: Relations) -> TableDescriptor | None:
    subquery = source.expression.parent
    view = None if subquery is None else relations.get(subquery.meta.get(VIEW, ()))
    if subquery is None or view is None:
        return None
    called = [folded(name) for name in subquery.args["alias"].columns]
    own = [column.name for column in view.visible_columns]
    return view if called in ([], own) else None
