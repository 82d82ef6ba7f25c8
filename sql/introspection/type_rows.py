"""Types by PostgreSQL's object ids: names, sizes, arrays; pg_type and pg_enum."""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.descriptors.named_objects import TypeDescriptor
from ...catalog.rights.privileges import securable
from ...catalog.rights.rights import read_rights
from ...catalog.values.column_types import ColumnType
from ...catalog.values.type_kinds import CatalogName, TypeKind
from ..analyze.calls.oids import PG_CATALOG as NAMESPACE
from ..analyze.calls.oids import derived, user_array_oid, user_oid, user_type_oid
from ..results.results import Row
from .rights import acl
from .virtual_table import PG_CATALOG, IntrospectionContext, Rows


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


def standard_words(type: ColumnType) -> str:
    """The data_type of information_schema, in which arrays and users' types have no own name."""
    if type.element is not None:
        return "ARRAY"
    return "USER-DEFINED" if type.enum is not None else row_of(type).words


def udt_name(type: ColumnType) -> str:
    """Returns the type's name in pg_type."""
    if type.element is None or type.catalog_name is not None:
        return row_of(type).name
    return f"_{row_of(type.element).name}"


async def user_types(context: IntrospectionContext) -> list[TypeDescriptor]:
    """The types of the database, by schema and name."""
    catalog = context.services.catalog
    found = await catalog.list_objects(context.reader, context.database, TypeDescriptor)
    return [descriptor for _, descriptor in found]


@PG_CATALOG.table("""pg_type 5
    oid:o typname typnamespace:o typowner:o typlen:i typbyval:b typtype:c typcategory:c
    typispreferred:b typisdefined:b typdelim:c typrelid:o typsubscript typelem:o typarray:o
    typinput typoutput typreceive typsend typmodin typmodout typanalyze typalign:c typstorage:c
    typnotnull:b typbasetype:o typtypmod:i typndims:i typcollation:o typdefaultbin typdefault
    typacl:S""")
async def type_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_type: built-in types, arrays, enumerations."""
    for row in ALL_ROWS:
        collation = 100 if row.category == "S" else 0
        by_value = row.size in (1, 2, 4, 8)
        element = row.element
        yield _type(
            row.oid, row.name, row.size, by_value, row.category, element, row.array, collation,
            "p" if row.category in "PX" else "b",
        )  # fmt: skip
        if row.array:
            yield _type(row.array, f"_{row.name}", -1, False, "A", row.oid, 0, collation)
    rights = await read_rights(context.reader)
    for type in await user_types(context):
        oid, array, schema = user_type_oid(type.id), user_array_oid(type.id), type.schema_id
        listed = acl(rights, securable(type))
        owner = user_oid(rights.owner(type.id))
        enum = _type(oid, type.name, 4, True, "E", 0, array, 0, "e", schema)
        yield (*enum[:3], owner, *enum[4:-1], listed)
        yield _type(array, f"_{type.name}", -1, False, "A", oid, 0, 0, "b", schema)


def _type(
    oid: int, name: str, size: int, by_value: bool, category: str, element: int, array: int,
    collation: int, kind: str = "b", namespace: int = NAMESPACE,
) -> Row:  # fmt: skip
    stem = _stem(name, kind, category, element)
    storage = "m" if name == "numeric" else "x" if size == -1 and name not in _VECTORS else "p"
    alignment = {1: "c", 2: "s", 8: "d", 16: "d"}.get(size, "i")
    subscript = "array_subscript_handler" if category == "A" else "-"
    return (
        oid, name, namespace, user_oid("root"), size, by_value, kind, category,
        name in _PREFERRED, True, ",", 0, subscript, element, array, f"{stem}in", f"{stem}out",
        f"{stem}recv", f"{stem}send", "-", "-", "-", alignment, storage, False, 0, -1, 0,
        collation, None, None, None,
    )  # fmt: skip


_VECTORS = ("int2vector", "oidvector")
_PREFERRED = ("bool", "text", "oid", "float8", "timestamptz", "interval")
_UNDERLINED = frozenset(
    {"numeric", "date", "time", "timestamp", "timestamptz", "interval", "uuid", "json", "jsonb"}
)


def _stem(name: str, kind: str, category: str, element: int) -> str:
    """Returns the beginning of the names of a type's functions: `int8in`, `date_in`, `array_in`."""
    if kind == "e":
        return "enum_"
    if category == "A" and name not in _VECTORS:
        return "array_"
    return f"{name}_" if name in _UNDERLINED else name


@PG_CATALOG.table("pg_enum 23 oid:o enumtypid:o enumsortorder:f enumlabel:N")
async def enum_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_enum: the labels of every enumeration, in order."""
    for type in await user_types(context):
        for order, member in enumerate(type.enum.members, start=1):
            yield (
                derived("enum", type.id, member.mark.hex()),
                user_type_oid(type.id),
                float(order),
                member.label,
            )
