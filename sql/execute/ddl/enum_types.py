"""CREATE, ALTER and DROP TYPE, and types by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import DescriptorState, TableDescriptor
from ....catalog.descriptors.enum_columns import users_of
from ....catalog.descriptors.named_objects import TypeDescriptor
from ....catalog.descriptors.publish_rules import locked_error
from ....catalog.descriptors.system_tables import DESCRIPTOR
from ....catalog.jobs.job_store import JobStore
from ....catalog.schema_change.type_change import JOB_KIND, payload_of
from ....catalog.store.catalog_changes import CatalogChanges
from ....catalog.store.descriptor_store import DescriptorReader, decode_stored
from ....catalog.values.column_types import ColumnType, array_of, enum_of
from ....catalog.values.enum_type import EnumType, new_members
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import ZERO
from ...results.results import Result
from ...runtime.relations import full_name
from ...runtime.services import Services
from ...syntax.names import ObjectName
from ...syntax.refusals import unsupported
from ...syntax.type_statements import (
    AddEnumValue,
    CreateEnum,
    DropType,
    RenameEnumValue,
    RenameType,
    TypeStatement,
)
from ..changer import Changer
from .new_names import new_table_name
from .schema_changes import AUTO_UNLOCK


async def find_type(
    services: Services, reader: DescriptorReader, name: ObjectName, database: str
) -> TypeDescriptor | None:
    """The type behind a name, if there is one."""
    wanted = full_name(name, database)
    schema = name.parts[0] if len(name.parts) == 2 else "public"
    if schema != "public" and schema in await services.catalog.list_schemas(reader, database):
        wanted = replace(wanted, database=database, schema=schema)
    descriptors = services.catalog.descriptors
    try:
        parents = await descriptors.resolve_schema(reader, wanted.database, wanted.schema)
    except SQLError:
        return None
    found_id = await descriptors.lookup(reader, *parents, wanted.name)
    found = None if found_id is None else await descriptors.read(reader, found_id)
    return found if isinstance(found, TypeDescriptor) else None


async def named_type(
    services: Services, reader: DescriptorReader, name: str, position: int, database: str
) -> ColumnType | None:
    """The column type that `mood`, `public.mood` or `mood[]` names; None for no user's type."""
    bare = name.removesuffix("[]")
    given = ObjectName(tuple(bare.split(".")), position)
    found = await find_type(services, reader, given, database)
    if found is None:
        return None
    type = enum_of(found.enum)
    return type if bare == name else array_of(type)


def unknown(name: ObjectName) -> SQLError:
    return SQLError("42704", f'type "{name}" does not exist', position=name.position)


async def run_type_statement(changer: Changer, statement: TypeStatement) -> Result:
    """Carries the statement out in the transaction. Tables follow by a job, after its commit."""
    types = Types(changer)
    match statement:
        case CreateEnum():
            return await types.create(statement)
        case DropType():
            return await types.drop(statement)
        case _:
            return await types.alter(statement)


class Types:
    """The types of one database, for a statement."""

    def __init__(self, changer: Changer) -> None:
        self._changer = changer

    async def create(self, statement: CreateEnum) -> Result:
        descriptors, transaction = self._changer.descriptors, self._changer.transaction
        name = await new_table_name(self._changer, statement.name)
        parents = await descriptors.resolve_schema(transaction, name.database, name.schema)
        taken = await descriptors.lookup(transaction, *parents, name.name)
        if taken is not None and statement.if_not_exists:
            return Result(tag="CREATE TYPE", notice=f'type "{statement.name}" exists, skipping')
        if taken is not None:
            raise SQLError(
                "42710",
                f'type "{statement.name}" already exists',
                position=statement.name.position,
            )
        type_id = await descriptors.allocate_id(transaction)
        enum = EnumType(type_id, name.name, new_members(statement.labels))
        created = TypeDescriptor(
            id=type_id, name=name.name, database_id=parents[0], schema_id=parents[1], enum=enum
        )
        await descriptors.publish(transaction, created)
        return Result(tag="CREATE TYPE")

    async def alter(self, statement: AddEnumValue | RenameEnumValue | RenameType) -> Result:
        type = await self._found(statement.name)
        if CatalogChanges.of(self._changer.transaction).before(type.id, type) is not type:
            raise SQLError(
                "0A000",
                f'type "{type.name}" was already changed in this transaction',
                hint="Change it in transactions of their own.",
            )
        enum = type.enum
        match statement:
            case AddEnumValue(label=label):
                member = enum.find(label)
                if member is not None and not statement.if_not_exists:
                    raise SQLError("42710", f'enum label "{label}" already exists')
                if member is not None and member.writable:
                    notice = f'enum label "{label}" already exists, skipping'
                    return Result(tag="ALTER TYPE", notice=notice)
                if member is None:
                    enum = enum.with_member(label, before=statement.before, after=statement.after)
            case RenameEnumValue(label=label, new_label=new_label):
                enum = enum.renamed_member(label, new_label)
            case RenameType(new_name=new_name):
                enum = replace(enum, name=new_name)
        users = await self._users(type.id)
        self._check_locks(users)
        if not users:
            enum = replace(enum, members=tuple(replace(m, writable=True) for m in enum.members))
        await self._changer.publish_next(replace(type, name=enum.name, enum=enum))
        if users:
            await self._begin(type.id, statement)
        return Result(tag="ALTER TYPE")

    async def drop(self, statement: DropType) -> Result:
        missing = 0
        for name in statement.names:
            type = await self._find(name)
            if type is None:
                if not statement.if_exists:
                    raise unknown(name)
                missing += 1
                continue
            users = await self._users(type.id)
            if users and statement.cascade:
                raise unsupported("DROP TYPE CASCADE")
            await self._drop_unused(type, users)
        notice = f"{missing} of the types did not exist, skipping" if missing else None
        return Result(tag="DROP TYPE", notice=notice)

    async def drop_with(self, type: TypeDescriptor, going: Collection[int]) -> None:
        """Drops a type with the tables whose ids are `going`. Raises SQLError 2BP01."""
        users = [table for table in await self._users(type.id) if table.id not in going]
        await self._drop_unused(type, users)

    async def _drop_unused(self, type: TypeDescriptor, users: Sequence[TableDescriptor]) -> None:
        if users:
            names = ", ".join(table.name for table in users)
            raise SQLError(
                "2BP01",
                f'cannot drop type "{type.name}" because other objects ({names}) still depend '
                "on it",
                hint="Drop the columns first.",
            )
        await self._changer.publish_next(replace(type, state=DescriptorState.DROPPED))

    async def _found(self, name: ObjectName) -> TypeDescriptor:
        type = await self._find(name)
        if type is None:
            raise unknown(name)
        return type

    async def _find(self, name: ObjectName) -> TypeDescriptor | None:
        changer = self._changer
        return await find_type(changer.services, changer.transaction, name, changer.database)

    async def _users(self, type_id: int) -> list[TableDescriptor]:
        """The tables with columns of the type, as the transaction reads them.

        All of `system.descriptor` is read, so that who makes such a table meanwhile conflicts.
        """
        rows = await self._changer.transaction.scan(DESCRIPTOR.primary_span)
        found = [decode_stored(key, body, ZERO) for key, body in rows]
        return users_of([one for one in found if isinstance(one, TableDescriptor)], type_id)

    def _check_locks(self, users: list[TableDescriptor]) -> None:
        """The lock of a table covers the types that it uses."""
        if not self._changer.services.store.settings.get(AUTO_UNLOCK):
            for table in users:
                if table.locked:
                    raise locked_error(table)

    async def _begin(self, type_id: int, statement: TypeStatement) -> None:
        jobs = JobStore(self._changer.services.store)
        description = f"ALTER TYPE {getattr(statement, 'name', '')}"
        job = await jobs.create(
            self._changer.transaction, JOB_KIND, description, payload_of(type_id)
        )
        CatalogChanges.of(self._changer.transaction).jobs.append(job)
