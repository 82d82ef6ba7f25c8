"""The names that `'…'::regclass` and its kin take, each with the object that it means.

'orders'::regclass      class       orders          104
'shop.lines'::regclass  class       shop.lines      107
'int[]'::regtype        type        int[]           1016
'1016'::regtype         type        1016            1016
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...catalog.rights.users import list_users
from ...catalog.values.column_types import Datum
from ..analyze.calls.oids import user_array_oid, user_oid, user_type_oid
from ..results.results import Row
from ..runtime.introspection_context import IntrospectionContext
from .pg_catalog.namespaces import namespace_rows
from .pg_catalog.relations import class_rows
from .pg_catalog.types import user_types
from .type_rows import ALL_ROWS

VISIBLE = ("pg_catalog", "public")
"""Schemas whose relations need no prefix."""

_OTHER_WORDS = {
    "int2": ("int2",),
    "int4": ("int", "int4"),
    "int8": ("int8",),
    "float4": ("float4",),
    "float8": ("float", "float8"),
    "bool": ("bool",),
    "numeric": ("decimal", "dec"),
    "text": ("string",),
    "bytea": ("bytes",),
    "bpchar": ("char", "bpchar"),
    "varchar": ("varchar",),
    "timestamp": ("timestamp",),
    "timestamptz": ("timestamptz",),
    "time": ("time",),
}
"""Further SQL names of built-in types."""


async def spelling_rows(context: IntrospectionContext) -> Sequence[Row]:
    namespaces: dict[Datum, str] = {row[0]: str(row[1]) for row in await namespace_rows(context)}
    named: list[Row] = [("namespace", name, oid) for oid, name in namespaces.items()]
    for row in await class_rows(context):
        oid, name, schema = row[0], str(row[1]), namespaces[row[2]]
        named += [("class", spelled, oid) for spelled in _qualified(schema, name)]
        named.append(("class", f"{context.database}.{schema}.{name}", oid))
    named += await _types(context, namespaces)
    named += [("role", user.name, user_oid(user.name)) for user in await list_users(context.reader)]
    numbered = dict.fromkeys((kind, str(oid), oid) for kind, _, oid in named)
    return [*named, *numbered]


def _qualified(schema: str, name: str) -> Iterator[str]:
    if schema in VISIBLE:
        yield name
    yield f"{schema}.{name}"


async def _types(context: IntrospectionContext, schemas: dict[Datum, str]) -> list[Row]:
    found: list[Row] = []
    for row in ALL_ROWS:
        spelled = dict.fromkeys((row.name, row.words, *_OTHER_WORDS.get(row.name, ())))
        for word in (*spelled, f"pg_catalog.{row.name}"):
            found.append(("type", word, row.oid))
            found += [("type", f"{word}[]", row.array)] if row.array else []
        if not row.array:
            continue
        found += [("type", name, row.array) for name in _qualified("pg_catalog", f"_{row.name}")]
    for type in await user_types(context):
        schema, array = schemas[type.schema_id], user_array_oid(type.id)
        for word in _qualified(schema, type.name):
            found += [("type", word, user_type_oid(type.id)), ("type", f"{word}[]", array)]
        found += [("type", name, array) for name in _qualified(schema, f"_{type.name}")]
    return found
