"""Notices of DDL: of what was asked for and is not kept as PostgreSQL keeps it."""

from __future__ import annotations

from collections.abc import Iterable

from ....catalog.values.column_type import DECIMAL_DEFAULT
from ....catalog.values.type_kinds import TypeKind
from ...syntax import schema_statements as s
from ...syntax.names import TypeName
from .given_columns import column_type


def bare_decimals(columns: Iterable[tuple[str, TypeName]]) -> str | None:
    """Returns the notice for columns whose NUMERIC says no digits; None without such a column.

    PostgreSQL's NUMERIC keeps every digit; here a value with more digits is refused.
    """
    names = [name for name, type in columns if not type.arguments and _decimal(type)]
    if not names:
        return None
    precision, scale = DECIMAL_DEFAULT
    named = ", ".join(f'"{name}"' for name in names)
    return (
        f"NUMERIC without digits is NUMERIC({precision},{scale}), and takes no value that has more"
        f": column {named}"
    )


def of_commands(commands: Iterable[s.AlterCommand]) -> str | None:
    """Returns the bare NUMERIC columns that ALTER TABLE adds or gives a type."""
    columns: list[tuple[str, TypeName]] = []
    for command in commands:
        match command:
            case s.AddColumn(definition=definition):
                columns.append((definition.name, definition.type))
            case s.AlterType(name=name, type=type):
                columns.append((name, type))
    return bare_decimals(columns)


def ascending(elements: Iterable[object]) -> str | None:
    """A notice that names the columns of indexes that were to be descending; None without one.

    No result differs by it: a query is ordered by its ORDER BY, whatever it is read by.
    """
    columns = [
        f'"{column}"'
        for element in elements
        if isinstance(element, s.IndexDefinition)
        for column in element.descending
    ]
    if not columns:
        return None
    return f"ignored, for indexes are ascending, NULLs last: DESC of {', '.join(columns)}"


def notices(*told: str | None) -> str | None:
    """Joins several notices into one."""
    return "; ".join(filter(None, told)) or None


def _decimal(given: TypeName) -> bool:
    type = column_type(given)
    return (type.element or type).kind is TypeKind.DECIMAL
