"""The things that GRANT, REVOKE, OWNER TO and SHOW GRANTS name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ....catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....catalog.rights.privileges import SYSTEM, Securable, SecurableKind, securable
from ....catalog.values.errors import SQLError
from ...runtime.authorization import Actor
from ...runtime.relations import find_sequence, find_table, unknown_relation
from ...syntax.names import ObjectName
from ...syntax.rights_statements import GrantTarget, TargetKind
from ..ddl.enum_types import find_type, unknown

K = TypeVar("K", SequenceDescriptor, TypeDescriptor)


async def find_targets(actor: Actor, target: GrantTarget) -> list[Securable]:
    """Returns the objects that a statement names. Raises SQLError for one that does not exist."""
    match target.kind:
        case TargetKind.SYSTEM:
            return [SYSTEM]
        case TargetKind.DATABASE:
            return [await find_database(actor, name) for name in target.names]
        case TargetKind.SCHEMA:
            return [(await find_schema(actor, name))[2] for name in target.names]
        case TargetKind.SEQUENCE:
            return [await _sequence(actor, name) for name in target.names]
        case TargetKind.TYPE:
            return [await _type(actor, name) for name in target.names]
        case TargetKind.TABLE:
            return await _each(actor, target, _named)
        case TargetKind.TABLES_IN_SCHEMA:
            return await _each(actor, target, _tables)
        case TargetKind.SEQUENCES_IN_SCHEMA:
            return await _each(actor, target, sequences_in)
        case TargetKind.TYPES_IN_SCHEMA:
            return await _each(actor, target, types_in)


async def _each(
    actor: Actor,
    target: GrantTarget,
    find: Callable[[Actor, ObjectName], Awaitable[list[Securable]]],
) -> list[Securable]:
    return [thing for name in target.names for thing in await find(actor, name)]


async def find_database(actor: Actor, name: ObjectName) -> Securable:
    """Returns a database as an object of grants. Raises SQLError 3D000."""
    descriptors = actor.services.catalog.descriptors
    database_id = await descriptors.lookup(actor.reader, 0, 0, str(name))
    if database_id is None:
        raise SQLError("3D000", f'database "{name}" does not exist', position=name.position)
    return Securable(SecurableKind.DATABASE, database_id, str(name))


async def find_schema(actor: Actor, name: ObjectName) -> tuple[str, str, Securable]:
    """The database of a schema, its name, and what rights are granted on."""
    database, schema = (actor.database, *name.parts)[-2:]
    try:
        parents = await actor.services.catalog.descriptors.resolve_schema(
            actor.reader, database, schema
        )
    except SQLError as error:
        error.position = error.position or name.position
        raise
    thing = Securable(SecurableKind.SCHEMA, parents[1], schema, (parents[0],))
    return database, schema, thing


async def _tables(actor: Actor, name: ObjectName) -> list[Securable]:
    database, schema, _ = await find_schema(actor, name)
    tables = await actor.services.catalog.list_tables(
        actor.reader, database, schema, views=True, keyspaces=True
    )
    return [securable(table) for table in tables]


async def sequences_in(actor: Actor, name: ObjectName) -> list[Securable]:
    """The sequences of a schema, by name."""
    return await _objects(actor, name, SequenceDescriptor)


async def types_in(actor: Actor, name: ObjectName) -> list[Securable]:
    """The types of a schema, by name."""
    return await _objects(actor, name, TypeDescriptor)


async def _objects(actor: Actor, name: ObjectName, kind: type[K]) -> list[Securable]:
    database, schema, _ = await find_schema(actor, name)
    found = await actor.services.catalog.list_objects(actor.reader, database, kind)
    return [securable(thing) for place, thing in found if place == schema]


async def _sequence(actor: Actor, name: ObjectName) -> Securable:
    catalog = actor.services.catalog
    found = await find_sequence(catalog, actor.reader, name, actor.database)
    if found is None:
        raise unknown_relation(name)
    return securable(found)


async def _type(actor: Actor, name: ObjectName) -> Securable:
    found = await find_type(actor.services, actor.reader, name, actor.database)
    if found is None:
        raise unknown(name)
    return securable(found)


async def _named(actor: Actor, name: ObjectName) -> list[Securable]:
    """A table or a view, or all of a schema's."""
    *inside, last = name.parts
    if last == "*":
        return await _tables(actor, ObjectName(tuple(inside) or ("public",), name.position))
    virtual = actor.services.virtual_tables.find(name.parts)
    table = virtual or await find_table(
        actor.services, actor.reader, name, actor.database, views=True, keyspaces=True
    )
    if table is None:
        catalog = actor.services.catalog
        if await find_sequence(catalog, actor.reader, name, actor.database) is not None:
            raise SQLError(
                "42809",
                f'"{name}" is a sequence',
                position=name.position,
                hint="Write ON SEQUENCE.",
            )
        raise unknown_relation(name)
    if table.id < FIRST_USER_ID:
        raise SQLError(
            "42501",
            f'privileges on "{name}" cannot be changed: it is part of the system',
            position=name.position,
        )
    return [securable(table)]
