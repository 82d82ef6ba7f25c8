"""The text that CREATE VIEW stores: as written, with every name qualified for good.

    SELECT * FROM orders JOIN lines USING (id)

    SELECT id, orders.placed, lines.item
    FROM shop.public.orders JOIN shop.public.lines USING (id)

The text is edited, and not written anew from its tree, so that it stays its author's and is parsed
to what it was parsed to before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from ...catalog.descriptors.names import quote_identifier
from ...catalog.descriptors.view_query import ViewDependency
from ..parse import folded, parse
from ..parse.queries import table_name
from ..syntax.refusals import error_at
from ..syntax.statements import Query
from ..syntax.tree_names import folded_alias
from ..syntax.walks import find_all
from .binder import Relations, scopes_in, tables_in
from .columns.stars import Stars, Unclear, is_star

Edit = tuple[int, int, str]
"""A range of a text, its end exclusive, and what takes its place."""


def settled_text(
    text: str, relations: Relations, full_names: Mapping[tuple[str, ...], tuple[str, ...]]
) -> str:
    """A query's text with full names for tables, and columns for stars. Raises SQLError."""
    tree = _tree(text)
    edits = [*_named(tree, full_names), *_starred(tree, relations)]
    for start, end, instead in sorted(edits, reverse=True):
        text = text[:start] + instead + text[end:]
    return text.strip()


def within_database(text: str, database: str) -> str:
    """A view's text without the database before the names of its own tables, as PostgreSQL has it
    and takes it."""
    cuts = [
        (catalog.meta["start"], schema.meta["start"])
        for table in tables_in(_tree(text))
        if (catalog := table.args.get("catalog")) is not None and catalog.name == database
        for schema in (table.args["db"],)
    ]
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


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
    stars = Stars(scopes_in(tree), relations, settled=True)
    for star in find_all(tree, exp.Star):
        item = star.parent if isinstance(star.parent, exp.Column) else star
        select = item.parent
        if "start" not in star.meta or (item is star and not isinstance(select, exp.Select)):
            continue  # that of count(*), or of what a function stands for
        if not isinstance(select, exp.Select) or not is_star(item) or item.args.get("db"):
            raise error_at(
                item,
                "0A000",
                "a view takes a star only as an item of a select list, behind an alias or alone",
                "Name the columns.",
            )
        try:
            found = stars.columns(select, item)
        except Unclear:
            raise error_at(
                item,
                "0A000",
                "it is not clear which columns the star of a view stands for",
                "Name the columns.",
            ) from None
        columns = [".".join(map(quote_identifier, column)) for column in found]
        first = item.args.get("table") or star
        yield first.meta["start"], star.meta["end"] + 1, ", ".join(columns)


# Dependencies


def dependencies(tree: exp.Expr, relations: Relations) -> tuple[ViewDependency, ...]:
    """Returns the tables of a query without stars, and of each the columns that the query names.

    A name that may be that of two tables' columns counts for both.
    """
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
