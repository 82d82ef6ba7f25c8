"""Rows of information_schema.columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...catalog.descriptors.descriptor import Column
from ...catalog.values.column_types import ColumnType
from ...catalog.values.type_kinds import TypeKind
from ..results.results import Row
from ..runtime.introspection_context import IntrospectionContext
from .described import DescribedTable, default_text
from .pg_catalog.types import user_types
from .type_rows import standard_words, udt_name

_BITS = {"INT2": 16, "INT4": 32, "INT8": 64, "FLOAT4": 24, "FLOAT8": 53}
_BYTES_OF_CHARACTER = 4
_OCTETS_MAX = 1 << 30
"""The octet length that PostgreSQL shows for texts without a limit."""
_TIMES = (TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL)
_UNLIMITED = (TypeKind.STRING, TypeKind.VARCHAR)

Schemas = Mapping[int, str]
"""The names of the schemas that users' types are in, by the ids of the types."""


async def column_rows(
    context: IntrospectionContext, tables: Sequence[DescribedTable]
) -> Sequence[Row]:
    """Rows of information_schema.columns for the tables."""
    schemas = await _schemas_of_types(context)
    return [
        _column(context.database, found, place, column, schemas)
        for found in tables
        for place, (_, column) in enumerate(found.columns, start=1)
    ]


def _column(
    database: str, found: DescribedTable, place: int, column: Column, schemas: Schemas
) -> Row:
    type, computed, identity = column.type, column.computed, column.identity
    updatable = computed is None and found.table.view is None
    return (
        database, found.schema, found.table.name, column.name, place,
        default_text(column) if computed is None else None,
        "YES" if column.nullable else "NO", standard_words(type), *_lengths(type),
        *_numbers(type), _time_precision(type), *[None] * 11,
        database, _schema_of(type, schemas), udt_name(type), *[None] * 4, str(place), "NO",
        "NO" if identity is None else "YES", None if identity is None else identity.value,
        *[None] * 4, "NO",
        "ALWAYS" if computed is not None else "NEVER", computed, "YES" if updatable else "NO",
    )  # fmt: skip


async def _schemas_of_types(context: IntrospectionContext) -> Schemas:
    names: dict[int, str] = {}
    for type in await user_types(context):
        schema = await context.services.catalog.descriptors.read(context.reader, type.schema_id)
        assert schema is not None, type
        names[type.id] = schema.name
    return names


def _schema_of(type: ColumnType, schemas: Schemas) -> str:
    enum = (type.element or type).enum
    return "pg_catalog" if enum is None else schemas.get(enum.id, "pg_catalog")


def _lengths(type: ColumnType) -> tuple[int | None, int | None]:
    """In characters and in bytes."""
    if type.width is not None:
        return type.width, type.width * _BYTES_OF_CHARACTER
    return None, _OCTETS_MAX if type.kind in _UNLIMITED else None


def _numbers(type: ColumnType) -> tuple[int | None, int | None, int | None]:
    """Precision, what it counts in, and scale."""
    if type.kind is TypeKind.DECIMAL:
        precision, scale = type.decimal
        return precision, 10, scale
    bits = _BITS.get(type.kind.value)
    if bits is None:
        return None, None, None
    return bits, 2, 0 if type.kind.value.startswith("INT") else None


def _time_precision(type: ColumnType) -> int | None:
    if type.precision is not None and type.kind in _TIMES:
        return type.precision
    return 0 if type.kind is TypeKind.DATE else 6 if type.kind in _TIMES else None
