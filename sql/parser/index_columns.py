"""The grammar of indexes: their columns, what they store, and what they cannot be."""

from __future__ import annotations

from ...catalog.errors import SQLError
from .cursor import Cursor
from .schema_statements import IndexDefinition


def index_definition(cursor: Cursor, *, unique: bool) -> IndexDefinition:
    """`[name] (columns) [STORING (columns)]`, behind INDEX."""
    position = cursor.position
    name = None if cursor.at_symbol("(") else cursor.identifier("an index's name")
    return index_columns(cursor, name, unique=unique, position=position)


def index_columns(
    cursor: Cursor, name: str | None, *, unique: bool, position: int
) -> IndexDefinition:
    columns = column_names(cursor)
    storing: tuple[str, ...] = ()
    if any(cursor.accept_words(word) for word in ("storing", "include", "covering")):
        storing = column_names(cursor)
    return IndexDefinition(
        name=name, columns=columns, storing=storing, unique=unique, position=position
    )


def index_method(cursor: Cursor) -> None:
    """`[USING btree]`: what every index is."""
    if not cursor.accept_words("using"):
        return
    position = cursor.position
    method = cursor.identifier("an index's method")
    if method != "btree":
        raise SQLError(
            "0A000",
            f'indexes of method "{method}" are not supported',
            hint="Indexes are ordered by their columns: leave USING out, or write USING btree.",
            position=position,
        )


def refuse_partial(cursor: Cursor) -> None:
    """`[WHERE condition]`"""
    if cursor.at_words("where"):
        raise SQLError(
            "0A000",
            "partial indexes are not supported",
            hint="Leave WHERE out: the index then holds every row.",
            position=cursor.position,
        )


def _refuse_expression(cursor: Cursor) -> None:
    """Called behind what may be a column's name in an index."""
    if cursor.at_symbol("("):
        raise SQLError(
            "0A000",
            "indexes of expressions are not supported",
            hint="Add a computed column (… AS (expression) STORED), and index that.",
            position=cursor.position,
        )


def column_names(cursor: Cursor) -> tuple[str, ...]:
    """`(name [ASC], …)`"""
    cursor.expect_symbol("(")
    names: list[str] = []
    while True:
        _refuse_expression(cursor)
        names.append(cursor.identifier("a column's name"))
        _refuse_expression(cursor)
        if cursor.at_words("desc"):
            raise SQLError(
                "0A000", "descending columns are not supported", position=cursor.position
            )
        cursor.accept_words("asc")
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(names)
