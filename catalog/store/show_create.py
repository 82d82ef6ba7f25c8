"""Tables and keys in the words of SQL: SHOW CREATE TABLE, and what a duplicate key is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from ..descriptors.descriptor import Column, TableDescriptor
from ..descriptors.elements import (
    CheckConstraint,
    Constraint,
    ElementState,
    ForeignKey,
    Index,
    ReferentialAction,
    Validity,
)
from ..descriptors.names import quote_identifier
from ..descriptors.publish_rules import LOCK_PARAMETER
from ..values.array_text import write_array
from ..values.column_types import Datum

PUBLIC = ElementState.PUBLIC


def show_create(
    table: TableDescriptor, referenced: Mapping[int, TableDescriptor] | None = None
) -> str:
    """The statement that would make a table like this one, or a view.

    `referenced` are the tables that its foreign keys refer to, by id. What a schema change under
    way is still building is left out, as is what it is about to remove.
    """
    if table.view is not None:
        return f"CREATE VIEW {quote_identifier(table.name)} AS {table.view.text}"
    lines = [_column(column) for column in table.visible_columns]
    key = _names(table, table.primary_key)
    lines.append(f"CONSTRAINT {quote_identifier(primary_key_name(table))} PRIMARY KEY ({key})")
    lines += [_index(table, index) for index in table.indexes if index.state is PUBLIC]
    for constraint in table.constraints:
        if constraint.validity is not Validity.VALIDATING:
            lines += _constraint(table, constraint, referenced or {})
    body = ",\n".join(f"    {line}" for line in lines)
    parameters = {LOCK_PARAMETER: "true"} if table.locked else {}
    parameters.update({f'"{name}"': value for name, value in table.parameters.items()})
    with_clause = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    suffix = f" WITH ({with_clause})" if with_clause else ""
    return f"CREATE TABLE {quote_identifier(table.name)} (\n{body}\n){suffix}"


def _column(column: Column) -> str:
    parts = [quote_identifier(column.name), column.type.declared_name]
    if column.hidden:
        parts.append("NOT VISIBLE")
    if not column.nullable:
        parts.append("NOT NULL")
    default = default_text(column)
    if column.identity is not None:
        parts.append(f"GENERATED {column.identity.value} AS IDENTITY")
    elif default is not None:
        parts.append(f"DEFAULT {default}")
    if column.computed is not None:
        parts.append(f"AS ({column.computed}) STORED")
    return " ".join(parts)


def default_text(column: Column) -> str | None:
    """The DEFAULT of a column in SQL: a constant, or an expression; None where it has none."""
    if column.default_expression is not None:
        return column.default_expression
    return literal(column.default) if column.has_default else None


def _index(table: TableDescriptor, index: Index) -> str:
    columns = _names(table, index.columns)
    if index.constraint:
        return f"CONSTRAINT {quote_identifier(index.name)} UNIQUE ({columns})"
    unique = "UNIQUE " if index.unique else ""
    storing = f" STORING ({_names(table, index.storing)})" if index.storing else ""
    return f"{unique}INDEX {quote_identifier(index.name)} ({columns}){storing}"


def _constraint(
    table: TableDescriptor, constraint: Constraint, referenced: Mapping[int, TableDescriptor]
) -> list[str]:
    """The line of a constraint; no line for a NOT NULL that is not yet part of its column."""
    other = None
    if isinstance(constraint, ForeignKey):
        other = referenced.get(constraint.referenced_id)
        if other is None:
            return []
    elif constraint.not_null_column is not None:
        return []
    text = constraint_text(table, constraint, other)
    return [f"CONSTRAINT {quote_identifier(constraint.name)} {text}"]


def constraint_text(
    table: TableDescriptor,
    constraint: Constraint,
    referenced: TableDescriptor | None = None,
    schema: str = "public",
) -> str:
    """A check or a foreign key as PostgreSQL prints one, without its name. A foreign key refers to
    the table `referenced` of `schema`."""
    unproven = " NOT VALID" if constraint.validity is not Validity.VALIDATED else ""
    if isinstance(constraint, CheckConstraint):
        return f"CHECK ({constraint.expression}){unproven}"
    assert referenced is not None, constraint
    path = [schema, referenced.name] if schema != "public" else [referenced.name]
    text = (
        f"FOREIGN KEY ({_names(table, constraint.columns)}) REFERENCES "
        f"{'.'.join(map(quote_identifier, path))}"
        f"({_names(referenced, constraint.referenced_columns)})"
    )
    for event, action in (("UPDATE", constraint.on_update), ("DELETE", constraint.on_delete)):
        if action is not ReferentialAction.NO_ACTION:
            text += f" ON {event} {action.value}"
    return text + constraint.deferral + unproven


def _names(table: TableDescriptor, column_ids: Iterable[int]) -> str:
    return ", ".join(quote_identifier(table.column_by_id(id).name) for id in column_ids)


def literal(datum: Datum) -> str:
    """A datum as SQL text that reads back as it."""
    match datum:
        case None:
            return "NULL"
        case bool():
            return str(datum).lower()
        case float() if datum != datum or abs(datum) == float("inf"):
            return f"'{datum}'"
        case int() | float() | Decimal():
            return format(datum, "f") if isinstance(datum, Decimal) else repr(datum)
        case _:
            escaped = plain_text(datum).replace("'", "''")
            return f"'{escaped}'"


def plain_text(datum: Datum) -> str:
    """A datum as PostgreSQL prints it."""
    match datum:
        case None:
            return "null"
        case bool():
            return "t" if datum else "f"
        case bytes():
            return f"\\x{datum.hex()}"
        case datetime():
            text = datum.isoformat(sep=" ")
            return text.removesuffix(":00") if datum.tzinfo is not None else text
        case date() | UUID():
            return str(datum)
        case list():
            return write_array([None if item is None else plain_text(item) for item in datum])
        case Decimal():
            return format(datum, "f")
        case _:
            return str(datum)


def primary_key_name(table: TableDescriptor) -> str:
    """The name of the primary key's constraint."""
    return table.primary_index_name
