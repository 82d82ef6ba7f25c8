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
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.descriptors.names import quote_identifier
from ...catalog.descriptors.view_query import ViewDependency
from ..parse import folded, parse
from ..parse.lexer import tokenize
from ..parse.queries import table_name
from ..syntax.refusals import error_at
from ..syntax.statements import Query
from ..syntax.tree_names import folded_alias
from ..syntax.walks import find_all
from .binder import Relations, scopes_in, tables_in
from .columns.stars import Stars, Unclear

Edit = tuple[int, int, str]
"""A range of a text, its end exclusive, and what takes its place."""


def settled_text(
    text: str, relations: Relations, full_names: Mapping[tuple[str, ...], tuple[str, ...]]
) -> str:
    """A query's text with full names for tables, and columns for stars. Raises SQLError."""
    marked = _with_marks(text)
    tree = _tree(marked)
    edits = [*_named(tree, full_names), *_starred(tree, relations)]
    for start, end, instead in sorted(edits, reverse=True):
        marked = marked[:start] + instead + marked[end:]
    return marked.strip()


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


MARK = "*"
"""The quoted column name that replaces a star while the text is analyzed. No real column has it, so
that the stars of the text can be found again."""


def _with_marks(text: str) -> str:
    """The text with a column of a name that no one else has for each star of a select list."""
    tokens = tokenize(text)
    for place in reversed(range(len(tokens))):
        if tokens[place].token_type == TokenType.STAR and _stands_for_columns(tokens, place):
            start = tokens[place].start
            text = f'{text[:start]}"{MARK}"{text[start + 1 :]}'
    return text


_BEFORE = {TokenType.SELECT, TokenType.ALL, TokenType.DISTINCT, TokenType.COMMA, TokenType.DOT}


def _stands_for_columns(tokens: list[Token], place: int) -> bool:
    """Whether a star is all columns, and neither a multiplication nor that of `count(*)`."""
    before = tokens[place - 1]
    if before.token_type != TokenType.R_PAREN:
        return before.token_type in _BEFORE
    depth = 0
    for index in range(place - 1, 1, -1):  # DISTINCT ON (…) *
        depth += (tokens[index].token_type == TokenType.R_PAREN) - (
            tokens[index].token_type == TokenType.L_PAREN
        )
        if depth == 0:
            return [token.text.lower() for token in tokens[index - 2 : index]] == ["distinct", "on"]
    return False


def _starred(tree: exp.Expr, relations: Relations) -> Iterator[Edit]:
    stars = Stars(scopes_in(tree), relations, MARK)
    for column in find_all(tree, exp.Column):
        if not stars.is_star(column):
            continue
        qualifier = column.args.get("table")
        if column.args.get("db") is not None or not isinstance(column.parent, exp.Select):
            raise error_at(
                column,
                "0A000",
                "a view takes a star only as an item of a select list, behind an alias or alone",
                "Name the columns.",
            )
        first = column.this if qualifier is None else qualifier
        try:
            found = stars.columns(column.parent, column)
        except Unclear:
            raise error_at(
                column,
                "0A000",
                "it is not clear which columns the star of a view stands for",
                "Name the columns.",
            ) from None
        items = [".".join(map(quote_identifier, item)) for item in found]
        yield first.meta["start"], column.this.meta["end"] + 1, ", ".join(items)


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
