"""Views in statements: each becomes the subquery that it stands for, before anything is planned.

    SELECT due FROM late l WHERE id = 7

    SELECT due FROM (SELECT id, due FROM defaultdb.public.orders WHERE …) AS l WHERE id = 7

So all that is known of subqueries holds of views: which columns are scanned, and what a transaction
has written. The statement's relations have the view beside what it reads: it is leased like them,
and a plan that is kept goes with its version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.names import quote_identifier
from ...catalog.descriptors.view_query import ViewDependency
from ...catalog.values.errors import SQLError
from ..parse import parse
from ..parse.constants import written_out
from ..syntax.statement import ObjectName
from ..syntax.statements import Delete, Insert, Query, Update, WithWrites
from ..syntax.trees import (
    alias_named,
    copied,
    error_at,
    find_all,
    folded,
    folded_alias,
    is_cte,
    table_name,
    walk,
    with_parts,
)
from .binder import VIEW, Relations, parts_of, scopes_in, tables_in
from .columns.stars import Item, Stars, Unclear, is_star

EXPANSIONS_MAX = 1000
"""Views in one statement, those within others counted as often as they are used: twice in each of
eleven views over one another is beyond this, and beyond any plan that ends."""

_COMPILED = "view's query"

Part = Query | Insert | Update | Delete
S = TypeVar("S", bound=Part)


def query_of(view: TableDescriptor) -> exp.Expr:
    """The tree of a view's query, which nobody may change."""
    assert view.view is not None, view
    known = view.compiled.get(_COMPILED)
    if known is None:
        (statement,) = parse(view.view.text).statements
        assert isinstance(statement, Query), view
        tree = written_out(statement.tree)
        for node in walk(tree):
            node.meta.clear()  # positions in another text than the statement's
        known = view.compiled[_COMPILED] = tree
    assert isinstance(known, exp.Expr), known
    return known


def names_in(view: TableDescriptor) -> list[ObjectName]:
    """Returns the names of the relations that a view's query reads."""
    return [table_name(table) for table in tables_in(query_of(view))]


def expand_views(statement: Part | WithWrites, relations: Relations) -> Part | WithWrites:
    """The statement with subqueries in the place of views, itself where it names none."""
    if all(table.view is None for table in relations.values()):
        return statement
    for part in parts_of(statement):
        if isinstance(part, Query):
            _refuse_locks(part, relations)
    expansion = _Expansion(relations)
    if not isinstance(statement, WithWrites):
        return expansion.of(statement)
    steps = [replace(step, statement=expansion.of(step.statement)) for step in statement.steps]
    return replace(statement, steps=tuple(steps), main=expansion.of(statement.main))


def _refuse_locks(statement: Query, relations: Relations) -> None:
    for table in tables_in(statement.tree) if statement.lock else ():
        name = table_name(table)
        if relations[name.parts].view is not None:
            raise SQLError(
                "0A000",
                f'FOR UPDATE and FOR SHARE cannot lock the rows of view "{name}"',
                hint="Lock the rows of the tables that it reads.",
                position=name.position,
            )


@dataclass(slots=True)
class _Expansion:
    """The expansion of one statement: how many views there were so far."""

    relations: Relations
    count: int = 0

    def of(self, statement: S) -> S:
        """The trees among a statement's parts, and in parts of parts, are copied."""
        ctes = getattr(statement, "ctes", ())
        hidden = [folded(cte.args["alias"].this) for cte in ctes]
        return with_parts(statement, exp.Expr, lambda tree: self._tree(copied(tree), hidden))

    def _tree(self, tree: exp.Expr, hidden: Sequence[str] = ()) -> exp.Expr:
        """The tree without views; `hidden` are the names of parts of WITH that stand before it."""
        for table in list(find_all(tree, exp.Table)):
            view = self._view(table, hidden)
            if view is None:
                continue
            self.count += 1
            if self.count > EXPANSIONS_MAX:
                raise SQLError("54001", f"more than {EXPANSIONS_MAX} views in one statement")
            made = self._subquery(table, view)
            if table is tree:
                tree = made
            else:
                table.replace(made)
        return tree

    def _view(self, table: exp.Table, hidden: Sequence[str]) -> TableDescriptor | None:
        """The view that a table reference means, if it means one."""
        if not isinstance(table.this, exp.Identifier):
            return None
        parts = table_name(table).parts
        found = self.relations.get(parts)
        if found is None or found.view is None:
            return None
        shadowed = len(parts) == 1 and (parts[0] in hidden or is_cte(table, parts[0]))
        return None if shadowed else found

    def _subquery(self, table: exp.Table, view: TableDescriptor) -> exp.Subquery:
        assert view.view is not None, view
        inner = self._tree(copied(query_of(view)))
        given = table.args.get("alias")
        own = alias_named(folded(table.this))
        alias = own if given is None else given.copy()
        if alias.this is None:
            alias.set("this", own.this)
        made = exp.Subquery(this=selected(inner), alias=alias)
        made.meta[VIEW] = table_name(table).parts
        for clause in ("joins", "laterals", "sample"):
            if table.args.get(clause):
                made.set(clause, table.args[clause])
        return made


def selected(tree: exp.Expr) -> exp.Query:
    """A query in which VALUES is `SELECT * FROM (VALUES …) AS values`."""
    if not isinstance(tree, exp.Values):
        assert isinstance(tree, exp.Query), tree
        return tree
    tree.set("alias", alias_named("values"))
    return exp.select("*").from_(tree)


def refuse_view(table: TableDescriptor, name: ObjectName, what: str) -> None:
    """Raises SQLError 42809 where what is to be written is a view."""
    if table.view is not None:
        names = ", ".join(dict.fromkeys(map(str, names_in(table)))) or "nothing"
        raise SQLError(
            "42809",
            f'cannot {what} view "{table.name}"',
            hint=f"Views are only read. This one reads: {names}.",
            position=name.position,
        )


# The text that CREATE VIEW stores: as written, with every name qualified for good.
#
#     SELECT * FROM orders JOIN lines USING (id)
#
#     SELECT id, orders.placed, lines.item
#     FROM shop.public.orders JOIN shop.public.lines USING (id)
#
# The text is edited, and not written anew from its tree, so that it stays its author's and is
# parsed to what it was parsed to before.


Edit = tuple[int, int, str]
"""A range of a text, its end exclusive, and what takes its place."""


def settled_text(
    text: str, relations: Relations, full_names: Mapping[tuple[str, ...], tuple[str, ...]]
) -> str:
    """A query's text with full names for tables, and columns for stars. Raises SQLError."""
    tree = _tree(text)
    return _edited(text, [*_named(tree, full_names), *_starred(tree, relations)]).strip()


def _edited(text: str, edits: list[Edit]) -> str:
    for start, end, instead in sorted(edits, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def with_name(text: str, before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """A view's text in which a relation has another full name; its columns stay qualified by the
    old one, which becomes its alias."""
    edits: list[Edit] = []
    for table in tables_in(_tree(text)):
        if table_name(table).parts == before:
            name = ".".join(map(quote_identifier, after))
            alias = "" if table.args.get("alias") else f" AS {quote_identifier(before[-1])}"
            first, last = table.args["catalog"].meta, table.this.meta
            edits.append((first["start"], last["end"] + 1, name + alias))
    return _edited(text, edits)


def within_database(text: str, database: str) -> str:
    """A view's text without the database before the names of its own tables, as PostgreSQL has it
    and takes it."""
    cuts = [
        (catalog.meta["start"], table.args["db"].meta["start"], "")
        for table in tables_in(_tree(text))
        if (catalog := table.args.get("catalog")) is not None and catalog.name == database
    ]
    return _edited(text, cuts)


def _tree(text: str) -> exp.Expr:
    (statement,) = parse(text).statements
    assert isinstance(statement, Query), text
    return statement.tree


def _named(tree: exp.Expr, full_names: Mapping[tuple[str, ...], tuple[str, ...]]) -> Iterator[Edit]:
    for table in tables_in(tree):
        parts = [table.args.get("catalog"), table.args.get("db"), table.this]
        written = [part.meta for part in parts if part is not None]
        if all("start" in meta for meta in written):  # else it is what a function stands for
            name = ".".join(map(quote_identifier, full_names[table_name(table).parts]))
            yield written[0]["start"], written[-1]["end"] + 1, name


# Stars


def _starred(tree: exp.Expr, relations: Relations) -> Iterator[Edit]:
    stars = Stars(scopes_in(tree), relations)
    for star in find_all(tree, exp.Star):
        item = star.parent if isinstance(star.parent, exp.Column) else star
        select = item.parent
        if "start" not in star.meta or (item is star and not isinstance(select, exp.Select)):
            continue  # that of count(*), or of what a function stands for
        found: Sequence[Item] = ()
        if isinstance(select, exp.Select) and is_star(item) and not item.args.get("db"):
            with suppress(Unclear):
                found = stars.columns(select, item)
        if not found:
            message = "it is not clear which columns the star of a view stands for"
            raise error_at(item, "0A000", message, "Name the columns.")
        columns = [".".join(map(quote_identifier, column)) for column in found]
        first = item.args.get("table") or star
        yield first.meta["start"], star.meta["end"] + 1, ", ".join(columns)


# Dependencies


def dependencies(text: str, relations: Relations) -> tuple[ViewDependency, ...]:
    """Returns the tables of a settled text, and of each the columns that the query names.

    A name that may be that of two tables' columns counts for both.
    """
    tree = _tree(text)
    tables = [
        (folded_alias(table), relations[table_name(table).parts]) for table in tables_in(tree)
    ]
    names: dict[int, set[int]] = {table.id: set() for _, table in tables if table.id > 0}
    for qualifier, name in _column_names(tree):
        for alias, table in tables:
            found = table.find_column(name) if qualifier in (None, alias) else None
            if found is not None and table.id > 0:
                names[table.id].add(found.id)
    return tuple(ViewDependency(id, tuple(sorted(columns))) for id, columns in names.items())


def _column_names(tree: exp.Expr) -> Iterator[tuple[str | None, str]]:
    """The names of columns in a query, each with the alias before it."""
    for column in find_all(tree, exp.Column):
        if isinstance(column.this, exp.Identifier):
            qualifier = column.args.get("table")
            yield None if qualifier is None else folded(qualifier), folded(column.this)
    for join in find_all(tree, exp.Join):
        for identifier in join.args.get("using") or ():
            yield None, folded(identifier)
