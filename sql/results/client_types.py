"""Types as clients know them: PostgreSQL's object ids, names, sizes, categories and modifiers.

Built-in types have PostgreSQL's ids, users' types ids made of those of their descriptors, by which
they are found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...catalog.values.column_types import ColumnType
from ...catalog.values.type_kinds import CatalogName, TypeKind


@dataclass(frozen=True, slots=True)
class TypeRow:
    """`name` as pg_type has it, `words` as format_type prints it; `size` is -1 where it varies."""

    oid: int
    name: str
    words: str
    size: int
    category: str
    array: int
    element: int = 0
    """Oids of the vectors of pg_catalog; other arrays have no row of their own."""


TYPE_ROWS: dict[TypeKind, TypeRow] = {
    TypeKind.BOOL: TypeRow(16, "bool", "boolean", 1, "B", 1000),
    TypeKind.BYTES: TypeRow(17, "bytea", "bytea", -1, "U", 1001),
    TypeKind.INT8: TypeRow(20, "int8", "bigint", 8, "N", 1016),
    TypeKind.INT2: TypeRow(21, "int2", "smallint", 2, "N", 1005),
    TypeKind.INT4: TypeRow(23, "int4", "integer", 4, "N", 1007),
    TypeKind.STRING: TypeRow(25, "text", "text", -1, "S", 1009),
    TypeKind.FLOAT4: TypeRow(700, "float4", "real", 4, "N", 1021),
    TypeKind.FLOAT8: TypeRow(701, "float8", "double precision", 8, "N", 1022),
    TypeKind.CHAR: TypeRow(1042, "bpchar", "character", -1, "S", 1014),
    TypeKind.VARCHAR: TypeRow(1043, "varchar", "character varying", -1, "S", 1015),
    TypeKind.DATE: TypeRow(1082, "date", "date", 4, "D", 1182),
    TypeKind.TIMESTAMP: TypeRow(1114, "timestamp", "timestamp without time zone", 8, "D", 1115),
    TypeKind.TIMESTAMPTZ: TypeRow(1184, "timestamptz", "timestamp with time zone", 8, "D", 1185),
    TypeKind.TIME: TypeRow(1083, "time", "time without time zone", 8, "D", 1183),
    TypeKind.INTERVAL: TypeRow(1186, "interval", "interval", 16, "T", 1187),
    TypeKind.DECIMAL: TypeRow(1700, "numeric", "numeric", -1, "N", 1231),
    TypeKind.UUID: TypeRow(2950, "uuid", "uuid", 16, "U", 2951),
    TypeKind.JSONB: TypeRow(3802, "jsonb", "jsonb", -1, "U", 3807),
}

OTHER_ROWS = (
    TypeRow(18, "char", '"char"', 1, "Z", 1002),
    TypeRow(19, "name", "name", 64, "S", 1003),
    TypeRow(22, "int2vector", "int2vector", -1, "A", 1006, 21),
    TypeRow(26, "oid", "oid", 4, "N", 1028),
    TypeRow(30, "oidvector", "oidvector", -1, "A", 1013, 26),
    TypeRow(114, "json", "json", -1, "U", 199),
    TypeRow(705, "unknown", "unknown", -2, "X", 0),
    *(
        TypeRow(oid, name, name, 4, "P", 0)
        for oid, name in (
            (2249, "record"), (2275, "cstring"), (2276, "any"), (2278, "void"), (2279, "trigger"),
            (2277, "anyarray"), (2283, "anyelement"), (2776, "anynonarray"), (3500, "anyenum"),
            (2281, "internal"), (3838, "event_trigger"),
        )
    ),
)  # fmt: skip
"""Types that clients look up by name, though no column has them."""

CATALOG_ROWS = {
    name: next(row for row in OTHER_ROWS if row.words == name.value) for name in CatalogName
}
ALL_ROWS = (*TYPE_ROWS.values(), *OTHER_ROWS)

_USER_TYPES = 1 << 30
_USER_ARRAYS = _USER_TYPES | 1 << 29
"""Users' types lie above all built-in ones, with which clients would take a descriptor's bare id
for one of PostgreSQL's own types; below 2**31, for clients that read ids with a sign."""


def user_type_oid(type_id: int) -> int:
    return _USER_TYPES | type_id


def user_array_oid(type_id: int) -> int:
    """Returns the oid of the array type of a user's type."""
    return _USER_ARRAYS | type_id


def user_type_of(oid: int) -> tuple[int, bool] | None:
    """The descriptor's id of a user's type, and whether `oid` is that of its arrays; None for the
    ids of anything else."""
    if oid >> 30 != 1:
        return None
    return oid & ((1 << 29) - 1), bool(oid & 1 << 29)


def row_of(type: ColumnType) -> TypeRow:
    """The row of a type that is no array. A user's has the id of its descriptor."""
    if type.catalog_name is not None:
        return CATALOG_ROWS[type.catalog_name]
    if type.enum is None:
        return TYPE_ROWS[type.kind]
    id, name = type.enum.id, type.enum.name
    return TypeRow(user_type_oid(id), name, type.sql_name, 4, "E", user_array_oid(id))


def type_oid(type: ColumnType) -> int:
    if type.catalog_name is None and type.element is not None:
        return row_of(type.element).array
    return row_of(type).oid


def type_modifier(type: ColumnType) -> int:
    """pg_attribute.atttypmod: precision and scale, or a width, plus four, or a number of fractional
    digits; -1 for none."""
    if type.width is not None:
        return type.width + 4
    if type.kind is not TypeKind.DECIMAL:
        return -1 if type.precision is None else type.precision
    precision, scale = type.decimal
    return ((precision << 16) | scale) + 4


class DeclaredType(NamedTuple):
    """A user's type, or its arrays, as a client declares it for a parameter."""

    type_id: int
    array: bool

    @property
    def oid(self) -> int:
        return user_array_oid(self.type_id) if self.array else user_type_oid(self.type_id)


DeclaredTypes = Sequence[ColumnType | DeclaredType | None]
"""The declared types of `$1` and so on, as far as they are."""
