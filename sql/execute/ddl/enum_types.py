"""CREATE, ALTER and DROP TYPE, and users' types by name: those of columns, and those that a
statement names, or a client declares, without a table that has them.

    SELECT 'ok'::mood           the catalog knows mood
    Parse … $1 oid 1073741927   the type of that object id

A plan holds the version of a type that its tables have, and goes with theirs. No table stands for a
type that the statement alone names, so such a plan is made for one execution and not kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ....catalog.descriptors.descriptor import DescriptorState, TableDescriptor
from ....catalog.descriptors.enum_columns import users_of
from ....catalog.descriptors.named_objects import TypeDescriptor
from ....catalog.descriptors.publish_rules import locked_error
from ....catalog.jobs.job_store import JobStore
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.schema_change.type_change import JOB_KIND, payload_of
from ....catalog.store.catalog_changes import CatalogChanges
from ....catalog.store.descriptor_store import DescriptorReader
from ....catalog.values.column_types import ColumnType, array_of, enum_of
from ....catalog.values.enum_type import EnumType, new_members
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import SQL_NAMES
from ...analyze.enum_casts import Casting, name_enum_casts
from ...results.client_types import DeclaredType, DeclaredTypes
from ...runtime.authorization import Actor
from ...runtime.relations import Resolver, find_type
from ...runtime.services import Services
from ...syntax import schema_statements as s
from ...syntax.statement import ObjectName, TypeName, UserTypeName
from ...syntax.trees import parts_in, with_parts
from ..changer import Changer, Skipped, all_of, found_of, skipped
from .schema_changes import AUTO_UNLOCK


def unknown(name: ObjectName) -> SQLError:
    return SQLError("42704", f'type "{name}" does not exist', position=name.position or None)


async def create(changer: Changer, statement: s.CreateEnum) -> None:
    name, parents, taken = await changer.place_of(statement.name)
    if taken:
        message = f'type "{statement.name}" already exists'
        error = SQLError("42710", message, position=statement.name.position)
        raise skipped(error, statement.if_not_exists)
    type_id = await changer.descriptors.allocate_id()
    enum = EnumType(type_id, name, new_members(statement.labels))
    created = TypeDescriptor(
        id=type_id, name=name, database_id=parents[0], schema_id=parents[1], enum=enum
    )
    await changer.descriptors.publish(changer.transaction, created)


async def add_value(changer: Changer, statement: s.AddEnumValue) -> None:
    """ALTER TYPE … ADD VALUE in the transaction. Tables follow by a job, after its commit."""
    type = await _find(changer, statement.name)
    if type is None:
        raise unknown(statement.name)
    if CatalogChanges.of(changer.transaction).before(type.id, type) is not type:
        raise SQLError(
            "0A000",
            f'type "{type.name}" was already changed in this transaction',
            hint="Change it in transactions of their own.",
        )
    enum, label = type.enum, statement.label
    member = enum.find(label)
    if member is not None and not statement.if_not_exists:
        raise SQLError("42710", f'enum label "{label}" already exists')
    if member is not None and member.writable:
        raise Skipped(f'enum label "{label}" already exists')
    if member is None:
        enum = enum.with_member(label, before=statement.before, after=statement.after)
    users = await _users(changer, type.id)
    if not changer.services.store.settings.get(AUTO_UNLOCK):
        for table in users:
            if table.locked:  # the lock of a table covers the types that it uses
                raise locked_error(table)
    if not users:
        enum = replace(enum, members=tuple(replace(m, writable=True) for m in enum.members))
    await changer.publish_next(replace(type, enum=enum))
    if users:
        jobs = JobStore(changer.services.store)
        description = f"ALTER TYPE {statement.name}"
        job = await jobs.create(changer.transaction, JOB_KIND, description, payload_of(type.id))
        CatalogChanges.of(changer.transaction).jobs.append(job)


async def drop(changer: Changer, statement: s.DropType) -> str | None:
    found, notice = await found_of(changer, statement, partial(_find, changer), "types", unknown)
    for type in found:
        await drop_type(changer, type)
    return notice


async def drop_type(
    changer: Changer, type: TypeDescriptor, going: Collection[int] = frozenset()
) -> None:
    """Drops a type, with the tables whose ids are `going`. Raises SQLError 2BP01."""
    users = [table for table in await _users(changer, type.id) if table.id not in going]
    if users:
        names = ", ".join(table.name for table in users)
        raise SQLError(
            "2BP01",
            f'cannot drop type "{type.name}" because other objects ({names}) still depend on it',
            hint="Drop the columns first.",
        )
    await changer.publish_next(replace(type, state=DescriptorState.DROPPED))


async def _find(actor: Actor, name: ObjectName) -> TypeDescriptor | None:
    return await find_type(actor.services.catalog, actor.reader, name, actor.database)


async def _users(changer: Changer, type_id: int) -> list[TableDescriptor]:
    """The tables with columns of the type, as the transaction reads them."""
    return users_of(await all_of(changer.transaction, TableDescriptor), type_id)


# Types of the columns that a statement defines


S = TypeVar("S")


async def with_named_types(changer: Changer, statement: S) -> S:
    """Resolves the names of users' types in a statement. Unknown names stay, and are reported when
    their column is made. Raises SQLError 42501 without USAGE on a type: its columns hold it back.
    """
    types: dict[str, ColumnType] = {}
    for given in parts_in(statement, TypeName):
        bare = given.name.removesuffix("[]")
        if bare in SQL_NAMES:
            continue
        found = await _find(changer, ObjectName(tuple(bare.split(".")), given.position))
        if found is not None:
            await changer.need(securable(found), Privilege.USAGE)
            type = enum_of(found.enum)
            types[given.name] = array_of(type) if given.name.endswith("[]") else type

    def resolved(given: TypeName) -> TypeName:
        meant = types.get(given.name)
        if meant is None:
            return given
        return UserTypeName(given.name, given.arguments, given.position, meant)

    return with_parts(statement, TypeName, resolved) if types else statement


# Types that no table of the statement has


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
    resolver: Resolver, statement: Casting, names: Mapping[tuple[str, ...], int]
) -> bool:
    """Tells casts their types that no table of the statement has, which are `unbound_types`, and
    whether there were any. Raises SQLError 42704 for a type that nobody knows."""
    types: dict[tuple[str, ...], ColumnType] = {}
    for parts, position in names.items():
        name = ObjectName(parts, position)
        found = await find_type(resolver.services.catalog, resolver.reader, name, resolver.database)
        if found is None:
            raise unknown(name)
        types[parts] = enum_of(found.enum)
    if types:
        name_enum_casts(statement, types)
    return bool(types)
