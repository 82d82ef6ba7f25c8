"""Users' types that a statement names, or a client declares, without a table that has them.

    SELECT 'ok'::mood           the catalog knows mood
    Parse … $1 oid 1073741927   the type of that object id

A plan holds the version of a type that its tables have, and goes with theirs. No table stands for a
type that the statement alone names, so such a plan is made for one execution and not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....catalog.descriptors.named_objects import TypeDescriptor
from ....catalog.store.descriptor_store import DescriptorReader
from ....catalog.values.column_types import ColumnType, array_of, enum_of
from ....catalog.values.errors import SQLError
from ...analyze.calls.oids import user_array_oid, user_type_oid
from ...analyze.enum_casts import Casting, name_enum_casts
from ...runtime.relations import find_type
from ...runtime.services import Services
from ...syntax.names import ObjectName


class DeclaredType(NamedTuple):
    """A user's type, or its arrays, as a client declares it for a parameter."""

    type_id: int
    array: bool

    @property
    def oid(self) -> int:
        return user_array_oid(self.type_id) if self.array else user_type_oid(self.type_id)


DeclaredTypes = Sequence[ColumnType | DeclaredType | None]
"""The declared types of `$1` and so on, as far as they are."""


async def resolve_hints(
    services: Services, reader: DescriptorReader, hints: DeclaredTypes
) -> list[ColumnType | None]:
    """The types as they are now. Raises SQLError 42704 for one that is no more."""
    resolved: list[ColumnType | None] = []
    for number, hint in enumerate(hints, start=1):
        if not isinstance(hint, DeclaredType):
            resolved.append(hint)
            continue
        found = await services.catalog.descriptors.read(reader, hint.type_id)
        if not isinstance(found, TypeDescriptor) or found.dropped:
            raise SQLError(
                "42704",
                f"type with OID {hint.oid} does not exist",
                detail=f"It is declared for parameter ${number}.",
                hint="It was dropped since the client asked for it: connect again.",
            )
        type = enum_of(found.enum)
        resolved.append(array_of(type) if hint.array else type)
    return resolved


async def bind_named_enums(
    services: Services,
    reader: DescriptorReader,
    statement: Casting,
    names: Mapping[tuple[str, ...], int],
    database: str,
) -> bool:
    """Tells casts their types that no table of the statement has, which are `unbound_types`, and
    whether there were any. Raises SQLError 42704 for a type that nobody knows.
    """
    types: dict[tuple[str, ...], ColumnType] = {}
    for parts, position in names.items():
        name = ObjectName(parts, position)
        found = await find_type(services.catalog, reader, name, database)
        if found is None:
            raise SQLError("42704", f'type "{name}" does not exist', position=position or None)
        types[parts] = enum_of(found.enum)
    if types:
        name_enum_casts(statement, types)
    return bool(types)
