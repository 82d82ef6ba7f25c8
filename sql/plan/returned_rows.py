"""RETURNING beside other tables, and as a table that the next part of a WITH reads.

What RETURNING takes of the tables of FROM or USING is found with the rows themselves, and stands
behind each of them:

    UPDATE t SET n = u.n FROM u WHERE t.k = u.k RETURNING t.k, n, u.note

    row of t    others
    k  n        u.note
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.binder import (
    STEPS,
    Relations,
    column_of,
    column_type,
    declared_type,
    reading_query,
    scopes_in,
)
from ..analyze.given_tables import given_table
from ..analyze.types.types import PlainTypes
from ..analyze.values_query import items_of
from ..parse import folded, position_of
from ..parse.queries import table_name
from ..syntax.statements import Delete, Insert, Query, Update, WithWrites, WritingStep
from ..syntax.walks import find_all
from .plans import Projection
from .returning import projection, projection_over

Columns = list[tuple[str, ColumnType | None]]


class Returning:
    """The RETURNING clause of an UPDATE or DELETE. `others` are what it takes of other tables."""

    def __init__(
        self,
        statement: Update | Delete,
        descriptor: TableDescriptor,
        relation: str,
        relations: Relations,
    ) -> None:
        self.others: list[exp.Expr] = []
        self._items = statement.returning
        self._descriptor = descriptor
        self._relation = relation
        self._relations = relations
        self._ctes = statement.ctes
        self._names: set[tuple[str, str]] = set()
        self._types: list[tuple[str, ColumnType]] = []
        self._sources: dict[str, Columns] = {}
        if statement.sources and statement.returning:
            self._sources = _columns_of_sources(statement, relations)
            self._items = tuple(
                part for item in statement.returning for part in self._over_all(item)
            )

    def projection(self) -> Projection:
        if not self._sources:
            return projection(
                self._items, self._descriptor, self._relation, self._relations, self._ctes
            )
        return projection_over(
            self._items,
            self._descriptor,
            self._relation,
            self._types,
            self._relations,
            self._ctes,
        )

    def _over_all(self, item: exp.Expr) -> list[exp.Expr]:
        """An item with other tables' columns by their places, its star written out."""
        inner = item.unalias()
        if isinstance(inner, exp.Star):
            self._refuse_unknown(self._sources, inner)
            own = [self._own(column.name) for column in self._descriptor.shown_columns]
            return own + [
                self._other(alias, name, exp.column(name, table=alias, quoted=True))
                for alias, columns in self._sources.items()
                for name, _ in columns
            ]
        if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
            alias = folded(inner.args["table"])
            if alias == self._relation:
                return [self._own(column.name) for column in self._descriptor.shown_columns]
            if alias not in self._sources:
                raise _missing(alias, inner)
            self._refuse_unknown([alias], inner)
            return [
                self._other(alias, name, exp.column(name, table=alias, quoted=True))
                for name, _ in self._sources[alias]
            ]
        root = exp.Paren(this=item.copy())
        for column in list(find_all(root, exp.Column)):
            if self._is_of_subquery(column):
                continue
            owner = self._alias_of(column)
            if owner is not None:
                named = self._other(owner, folded(column.this), column)
                column.replace(named if column.parent is root else named.this)
        rewritten: exp.Expr = root.this
        return [rewritten]

    def _refuse_unknown(self, aliases: Iterable[str], star: exp.Expr) -> None:
        """Raises SQLError for a star over what does not say its columns."""
        for alias in aliases:
            if not self._sources[alias]:
                raise SQLError(
                    "0A000",
                    f'RETURNING cannot tell the columns of "{alias}"',
                    hint="Name what is to be returned.",
                    position=position_of(star),
                )

    def _own(self, name: str) -> exp.Expr:
        return exp.column(name, table=self._relation, quoted=True)

    def _other(self, alias: str, name: str, column: exp.Expr) -> exp.Alias:
        """The column among `others`, under its own name."""
        place = f"{alias}.{name}"
        if (alias, name) not in self._names:
            types = dict(self._sources[alias])
            if name not in types:
                raise SQLError(
                    "42703",
                    f'column "{alias}.{name}" does not exist',
                    position=position_of(column),
                )
            type = types[name]
            if type is None:
                raise SQLError(
                    "0A000",
                    f'RETURNING cannot tell the type of "{alias}.{name}"',
                    hint="Cast it where it is computed.",
                    position=position_of(column),
                )
            self._names.add((alias, name))
            self._types.append((place, type))
            self.others.append(exp.column(name, table=alias, quoted=True))
        alias_of = exp.to_identifier(name, quoted=True)
        return exp.Alias(this=exp.column(place, quoted=True), alias=alias_of)

    def _is_of_subquery(self, column: exp.Column) -> bool:
        """Whether a name within a subquery is its own: all are but those qualified by a table of
        FROM or USING that no nearer FROM hides."""
        inner = column.find_ancestor(exp.Query)
        if inner is None:
            return False
        qualifier = column.args.get("table")
        if qualifier is None or folded(qualifier) not in self._sources:
            return True
        node: exp.Expr | None = inner
        while node is not None:
            names = (table.alias_or_name for table in find_all(node, exp.Table, exp.Subquery))
            if qualifier.name in names:
                return True
            node = node.find_ancestor(exp.Query)
        return False

    def _alias_of(self, column: exp.Column) -> str | None:
        """The other table that a name is of; None for a column of the statement's own."""
        if not isinstance(column.this, exp.Identifier):
            return None
        name, qualifier = folded(column.this), column.args.get("table")
        if qualifier is not None:
            alias = folded(qualifier)
            if alias == self._relation:
                return None
            if alias not in self._sources:
                raise _missing(alias, column)
            return alias
        owners = [alias for alias, columns in self._sources.items() if name in dict(columns)]
        own = self._descriptor.find_column(name) is not None
        if len(owners) + own > 1:
            raise SQLError(
                "42702", f'column reference "{name}" is ambiguous', position=position_of(column)
            )
        if not owners:
            column_of(self._descriptor, name, position_of(column))
        return owners[0] if owners else None


def _missing(alias: str, node: exp.Expr) -> SQLError:
    return SQLError(
        "42P01", f'missing FROM-clause entry for table "{alias}"', position=position_of(node)
    )


def _columns_of_sources(statement: Update | Delete, relations: Relations) -> dict[str, Columns]:
    """The columns of the tables of FROM or USING, by their aliases, in order."""
    query = reading_query(statement, [])
    scope = next(scope for scope in scopes_in(query) if scope.expression is query)
    found: dict[str, Columns] = {}
    for alias, source in scope.selected_sources.items():
        found[alias] = _columns_of(source[1], relations)
    return found


def _columns_of(source: exp.Expr | QueryScope, relations: Relations) -> Columns:
    if isinstance(source, exp.Table):
        descriptor = relations[table_name(source).parts]
        return [(column.name, column.type) for column in descriptor.shown_columns]
    assert isinstance(source, QueryScope), source
    query = source.expression
    named = source.outer_columns
    if isinstance(query, exp.Values):
        return _columns_of_values(query, named)
    columns: Columns = []
    for item in query.selects if isinstance(query, exp.Query) else ():
        inner = item.unalias()
        if isinstance(inner, exp.Star) or isinstance(inner.this, exp.Star):
            for _, below in source.selected_sources.values():
                columns += _columns_of(below, relations)
            continue
        name = item.alias_or_name
        known = declared_type(inner, source, relations) if isinstance(inner, exp.Column) else None
        known = known or PlainTypes(lambda c: column_type(c, source, relations)).of(inner)
        columns.append((name, known or _of_text(inner)))
    return _renamed(columns, named)


def _columns_of_values(values: exp.Values, named: Sequence[str]) -> Columns:
    """`column1`, `column2`, … unless they are named. What has several types has none."""
    rows = [items_of(row) for row in values.expressions]
    columns: Columns = []
    for place, items in enumerate(zip(*rows, strict=False), 1):
        types = {PlainTypes(lambda _: None).of(item) for item in items} - {None}
        texts = {_of_text(item) for item in items} - {None}
        found = types or texts
        columns.append((f"column{place}", found.pop() if len(found) == 1 else None))
    return _renamed(columns, named)


def _renamed(columns: Columns, names: Sequence[str]) -> Columns:
    """The columns by the names of an alias, which may name the first few alone."""
    renamed = [(name, type) for name, (_, type) in zip(names, columns, strict=False)]
    return renamed + columns[len(renamed) :]


def _of_text(item: exp.Expr) -> ColumnType | None:
    """A literal in quotes that nothing gives another type is a text."""
    is_text = isinstance(item, exp.Literal) and item.is_string
    return ColumnType(TypeKind.STRING) if is_text else None


def returned_table(number: int, step: WritingStep, returning: Projection) -> TableDescriptor | None:
    """Returns the table of a step's RETURNING rows; None where the step has no RETURNING."""
    if not returning.columns:
        return None
    names = [column.name for column in returning.columns]
    if len(step.columns) > len(names):
        raise SQLError(
            "42P10",
            f'table "{step.name}" has {len(names)} columns available but {len(step.columns)} '
            "columns specified",
            position=step.position,
        )
    names[: len(step.columns)] = step.columns
    types = [column.type for column in returning.columns]
    return given_table(number, step.name, list(zip(names, types, strict=True)))


def refuse_unreturned(statement: WithWrites) -> None:
    """Raises SQLError 0A000 where a step is read that returns nothing."""
    silent = {step.name for step in statement.steps if not step.statement.returning}
    for part in (*(step.statement for step in statement.steps), statement.main):
        for table in (table for tree in _trees_of(part) for table in find_all(tree, exp.Table)):
            schema = table.args.get("db")
            if schema is not None and schema.name == STEPS and folded(table.this) in silent:
                raise SQLError(
                    "0A000",
                    f'WITH query "{table.name}" does not have a RETURNING clause',
                    position=position_of(table.this),
                )


def _trees_of(statement: Query | Insert | Update | Delete) -> list[exp.Expr]:
    match statement:
        case Query(tree=tree):
            return [tree]
        case Insert(source=source, returning=returning):
            return [*returning] if source is None else [source, *returning]
        case Update(assignments=assignments, returning=returning):
            return [reading_query(statement, [value for _, value in assignments]), *returning]
        case Delete(returning=returning):
            return [reading_query(statement, []), *returning]
