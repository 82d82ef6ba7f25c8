"""The grammar of indexes: their columns, what they store, and what they cannot be."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported
from ...syntax.schema_statements import IndexDefinition
from ..cursor import Cursor


def index_definition(cursor: Cursor, *, unique: bool) -> IndexDefinition:
    """`[name] (columns) [STORING (columns)]`, behind INDEX."""
    position = cursor.position
    name = None if cursor.at_symbol("(") else cursor.identifier("an index's name")
    return index_columns(cursor, name, unique=unique, position=position)


def index_columns(
    cursor: Cursor, name: str | None, *, unique: bool, position: int
) -> IndexDefinition:
    """`(column [ASC | DESC], …) [STORING (column, …)] [NULLS DISTINCT]`"""
    columns, descending = _indexed_columns(cursor)
    storing: tuple[str, ...] = ()
    if any(cursor.accept_words(word) for word in ("storing", "include", "covering")):
        storing = column_names(cursor)
    nulls_distinct(cursor)
    return IndexDefinition(
        name=name,
        columns=columns,
        storing=storing,
        unique=unique,
        position=position,
        descending=descending,
    )


def index_method(cursor: Cursor) -> None:
    """`[USING btree]`: what every index is."""
    if not cursor.accept_words("using"):
        return
    position = cursor.position
    method = cursor.identifier("an index's method")
    if method != "btree":
        raise unsupported(
            f'indexes of method "{method}"',
            position,
            "Indexes are ordered by their columns: leave USING out, or write USING btree.",
        )


def refuse_partial(cursor: Cursor) -> None:
    """`[WHERE condition]`"""
    if cursor.at_words("where"):
        raise unsupported(
            "partial indexes", cursor.position, "Leave WHERE out: the index then holds every row."
        )


def _refuse_expression(cursor: Cursor) -> None:
    """Called behind what may be a column's name in an index."""
    if cursor.at_symbol("("):
        raise unsupported(
            "indexes of expressions",
            cursor.position,
            "Add a computed column (… AS (expression) STORED), and index that.",
        )


def nulls_distinct(cursor: Cursor) -> None:
    """`[NULLS DISTINCT]`, as every unique index has it. Raises SQLError 0A000 for the contrary."""
    if cursor.at_words("nulls", "not", "distinct"):
        raise unsupported(
            "NULLS NOT DISTINCT",
            cursor.position,
            "Rows with a NULL are never equal. Give them a value, and make it NOT NULL.",
        )
    cursor.accept_words("nulls", "distinct")


def column_names(cursor: Cursor) -> tuple[str, ...]:
    """`(name, …)`"""
    return cursor.enclosed(lambda: cursor.identifier("a column's name"))


def _indexed_columns(cursor: Cursor) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`(name [COLLATE "C"] [operator class] [ASC | DESC] [NULLS LAST], …)`: the columns, and those
    among them that are to be descending."""

    def column() -> tuple[str, bool]:
        _refuse_expression(cursor)
        name = cursor.identifier("a column's name")
        _refuse_expression(cursor)
        return name, _ordered_otherwise(cursor)

    found = cursor.enclosed(column)
    return tuple(name for name, _ in found), tuple(name for name, other in found if other)


_OPERATOR_CLASSES = frozenset(
    f"{type}_{suffix}"
    for type in ("text", "varchar", "bpchar")
    for suffix in ("ops", "pattern_ops")
) | frozenset(
    f"{type}_ops"
    for type in (
        "int2", "int4", "int8", "float4", "float8", "numeric", "bool", "bytea", "date", "time",
        "timestamp", "timestamptz", "interval", "uuid", "enum",
    )
)  # fmt: skip
"""PostgreSQL's names of the order that every index has: texts are ordered by their bytes."""

_BYTEWISE = ("C", "POSIX", "ucs_basic", "default")


def _ordered_otherwise(cursor: Cursor) -> bool:
    """Whether what stands behind a column is DESC or NULLS FIRST. Raises SQLError 0A000 for another
    order of texts than by their bytes."""
    if cursor.accept_words("collate"):
        position, collation = cursor.position, cursor.identifier("a collation")
        if collation not in _BYTEWISE:
            raise SQLError(
                "0A000",
                f'collation "{collation}" is not supported in an index',
                hint='Texts are ordered by their bytes: leave it out, or write COLLATE "C".',
                position=position,
            )
    for word in _OPERATOR_CLASSES:
        if cursor.accept_words(word):
            break
    descending = cursor.accept_words("desc")
    cursor.accept_words("asc")
    first = cursor.accept_words("nulls", "first")
    cursor.accept_words("nulls", "last")
    return descending or first
