"""Tables and keys in the words of SQL: SHOW CREATE TABLE, and what a duplicate key is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from .column_types import Datum
from .descriptor import Column, TableDescriptor
from .elements import IndexKind
from .errors import SQLError
from .index_codec import IndexCodec
from .names import quote_identifier
from .publish_rules import LOCK_PARAMETER


def show_create(table: TableDescriptor) -> str:
    """The statement that would make a table like this one."""
    lines = [_column(column) for column in table.visible_columns]
    key = ", ".join(quote_identifier(column.name) for column in table.key_columns)
    lines.append(f"CONSTRAINT {quote_identifier(primary_key_name(table))} PRIMARY KEY ({key})")
    body = ",\n".join(f"    {line}" for line in lines)
    parameters = {LOCK_PARAMETER: "true"} if table.locked else {}
    parameters.update({f'"{name}"': value for name, value in table.parameters.items()})
    with_clause = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    suffix = f" WITH ({with_clause})" if with_clause else ""
    return f"CREATE TABLE {quote_identifier(table.name)} (\n{body}\n){suffix}"


def _column(column: Column) -> str:
    parts = [quote_identifier(column.name), column.type.sql_name]
    if not column.nullable:
        parts.append("NOT NULL")
    if column.has_default:
        parts.append(f"DEFAULT {literal(column.default)}")
    return " ".join(parts)


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
        case Decimal():
            return format(datum, "f")
        case _:
            return str(datum)


def primary_key_name(table: TableDescriptor) -> str:
    """The name of the primary key's constraint."""
    return f"{table.name}_pkey"


def duplicate_key(table: TableDescriptor, key: Sequence[Datum]) -> SQLError:
    """What an INSERT of a key that exists is told; `key` holds the key columns' datums."""
    names = ", ".join(column.name for column in table.key_columns)
    values = ", ".join(map(plain_text, key))
    return SQLError(
        "23505",
        f'duplicate key value violates unique constraint "{primary_key_name(table)}"',
        detail=f"Key ({names})=({values}) already exists.",
    )


def duplicate_values(table: TableDescriptor, codec: IndexCodec, body: bytes) -> SQLError:
    """What is told of a second row with equal values in a unique index; `body` is the row's."""
    index = codec.index
    name = primary_key_name(table) if index.kind is IndexKind.PRIMARY else index.name
    names = ", ".join(table.column_by_id(id).name.partition("~")[0] for id in index.columns)
    values = ", ".join(map(plain_text, codec.values(body)))
    return SQLError(
        "23505",
        f'duplicate key value violates unique constraint "{name}"',
        detail=f"Key ({names})=({values}) already exists.",
    )
