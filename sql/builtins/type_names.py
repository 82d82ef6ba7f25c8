"""Names of types in PostgreSQL's error messages."""

from __future__ import annotations

from ...catalog.values.type_kinds import TypeKind
from .signatures import Argument, Given

_NAMES = {
    TypeKind.INT8: "bigint",
    TypeKind.DECIMAL: "numeric",
    TypeKind.FLOAT8: "double precision",
    TypeKind.STRING: "text",
    TypeKind.BOOL: "boolean",
    TypeKind.DATE: "date",
    TypeKind.TIME: "time without time zone",
    TypeKind.TIMESTAMP: "timestamp without time zone",
    TypeKind.TIMESTAMPTZ: "timestamp with time zone",
    TypeKind.BYTES: "bytea",
    TypeKind.INT2: "smallint",
    TypeKind.INT4: "integer",
    TypeKind.FLOAT4: "real",
    TypeKind.VARCHAR: "character varying",
    TypeKind.CHAR: "character",
}


def type_name(type: Argument) -> str:
    """Returns the name of a type in PostgreSQL's error messages."""
    if isinstance(type, Given):
        return "unknown"
    if type.element is not None:
        return f"{type_name(type.element)}[]"
    return (
        type.enum.name if type.enum is not None else _NAMES.get(type.kind, type.kind.value.lower())
    )
