"""Types in the words of information_schema; pg_type and pg_enum."""

from __future__ import annotations

from ...catalog.descriptors.named_objects import TypeDescriptor
from ...catalog.rights.privileges import securable
from ...catalog.rights.rights import read_rights
from ...catalog.values.column_types import ColumnType
from ..analyze.calls.oids import PG_CATALOG as NAMESPACE
from ..analyze.calls.oids import derived, user_oid
from ..results.client_types import ALL_ROWS, row_of, user_array_oid, user_type_oid
from ..results.results import Row
from .rights import acl
from .virtual_table import PG_CATALOG, IntrospectionContext, Rows


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
