"""GRANT, REVOKE, owners and default privileges, and SHOW GRANTS and its kin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ....catalog.descriptors.descriptor import (
    TableDescriptor,
)
from ....catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....catalog.rights.default_privileges import (
    ANY_ROLE,
    ANY_SCHEMA,
    DefaultGrant,
    list_defaults,
    put_default,
)
from ....catalog.rights.privileges import (
    ALL_OF,
    GRANTABLE_ON,
    SYSTEM,
    Privilege,
    Securable,
    SecurableKind,
    privilege_names,
    securable,
)
from ....catalog.rights.rights import (
    Grant,
    Rights,
    add_member,
    add_privileges,
    put_grant,
    read_rights,
    remove_member,
    remove_privileges,
    set_owner,
)
from ....catalog.rights.users import ADMIN, PUBLIC, ROOT, require_role
from ....catalog.values.errors import SQLError
from ....changefeed import give_connections, give_subscriptions
from ....changefeed.jobs.places import give_places
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.relations import find_sequence, find_table, unknown_relation
from ...syntax.names import ObjectName
from ...syntax.rights_statements import (
    AlterDefaultPrivileges,
    GrantPrivileges,
    GrantRoles,
    GrantTarget,
    PrivilegeName,
    ReassignOwned,
    RightsChange,
    SetOwner,
    ShowGrants,
    ShowRoleGrants,
    TargetKind,
)
from ..ddl.enum_types import find_type, unknown

_KINDS = {
    TargetKind.TABLE: SecurableKind.TABLE,
    TargetKind.TABLES_IN_SCHEMA: SecurableKind.TABLE,
    TargetKind.SEQUENCE: SecurableKind.SEQUENCE,
    TargetKind.SEQUENCES_IN_SCHEMA: SecurableKind.SEQUENCE,
    TargetKind.TYPE: SecurableKind.TYPE,
    TargetKind.TYPES_IN_SCHEMA: SecurableKind.TYPE,
    TargetKind.SCHEMA: SecurableKind.SCHEMA,
    TargetKind.DATABASE: SecurableKind.DATABASE,
    TargetKind.SYSTEM: SecurableKind.SYSTEM,
}


async def change_rights(actor: Actor, statement: RightsChange) -> Result:
    """Carries a statement out in the actor's transaction. Does not commit."""
    match statement:
        case GrantPrivileges():
            await _grant_privileges(actor, statement)
        case GrantRoles():
            await _grant_roles(actor, statement)
        case AlterDefaultPrivileges():
            await _alter_defaults(actor, statement)
            return Result(tag="ALTER DEFAULT PRIVILEGES")
        case SetOwner():
            return await _set_owner(actor, statement)
        case ReassignOwned(to=None):
            await _drop_owned(actor, statement.roles)
            return Result(tag="DROP OWNED")
        case ReassignOwned():
            await _reassign(actor, statement)
            return Result(tag="REASSIGN OWNED")
    return Result(tag="REVOKE" if statement.revoke else "GRANT")


async def _check_roles(actor: Actor, names: Iterable[str], *, public: bool = True) -> None:
    for name in names:
        if name == PUBLIC and not public:
            raise SQLError("0LP01", f'"{PUBLIC}" is everybody, and no role')
        await require_role(actor.reader, name)


def privileges_of(names: Sequence[PrivilegeName], kind: SecurableKind) -> int:
    """Returns a list of privileges as a set. Raises SQLError 0LP01 for a privilege that this
    kind of object does not have."""
    found = 0
    for given in names:
        if given.name == "ALL":
            found |= ALL_OF[kind]
            continue
        known = Privilege.__members__.get(given.name)
        if known is None or not known & GRANTABLE_ON[kind]:
            choices = ", ".join(
                sorted(str(one.name) for one in Privilege if one & GRANTABLE_ON[kind])
            )
            raise SQLError(
                "0LP01",
                f"invalid privilege type {given.name} for {_shown(kind)}",
                position=given.position,
                hint=f"Privileges of a {_shown(kind)}: ALL, {choices}.",
            )
        found |= known
    return int(found)


def _shown(kind: SecurableKind) -> str:
    return "table" if kind is SecurableKind.TABLE else kind.value


# Privileges.


async def _grant_privileges(actor: Actor, statement: GrantPrivileges) -> None:
    kind = _KINDS[statement.target.kind]
    privileges = privileges_of(statement.privileges, kind)
    await _check_roles(actor, statement.grantees)
    revokes_all = statement.revoke and any(given.name == "ALL" for given in statement.privileges)
    if revokes_all:
        privileges |= GRANTABLE_ON[kind]
    for thing in await find_targets(actor, statement.target):
        await _check_may_grant(actor, thing, privileges, everything=revokes_all)
        for grantee in statement.grantees:
            _check_grantee(grantee, statement)
            if statement.revoke:
                await remove_privileges(
                    actor.reader, thing.id, grantee, privileges, option_only=statement.option
                )
            else:
                grantable = privileges if statement.option else 0
                await add_privileges(actor.reader, thing.id, grantee, privileges, grantable)


def _check_grantee(grantee: str, statement: GrantPrivileges) -> None:
    if grantee in (ROOT, ADMIN) and statement.revoke:
        raise SQLError("42501", f"the privileges of {grantee} cannot be revoked")
    if grantee == PUBLIC and statement.option and not statement.revoke:
        raise SQLError("0LP01", "grant options can only be granted to roles, not to public")


async def _check_may_grant(
    actor: Actor, thing: Securable, privileges: int, *, everything: bool
) -> None:
    """Raises SQLError 42501 where the user may not pass the privileges on: admins may, owners,
    and roles that have them WITH GRANT OPTION."""
    grantable = (await actor.rights()).grantable(actor.user, thing)
    lacking = 0 if everything and grantable else privileges & ~grantable
    if lacking:
        names = ", ".join(privilege_names(lacking, thing.kind))
        raise SQLError(
            "42501",
            f"user {actor.user} missing WITH GRANT OPTION privilege on {names}"
            + (
                "" if thing.kind is SecurableKind.SYSTEM else f" of {thing.kind.value} {thing.name}"
            ),
        )


# Membership.


async def _grant_roles(actor: Actor, statement: GrantRoles) -> None:
    await _check_roles(actor, (*statement.roles, *statement.members), public=False)
    for role in statement.roles:
        for member in statement.members:
            rights = await actor.rights()
            await _check_may_pass_on(actor, rights, role)
            if not statement.revoke:
                await add_member(actor.reader, rights, role, member, admin=statement.option)
            elif (role, member) == (ADMIN, ROOT):
                raise SQLError("42501", "root is always a member of admin")
            else:
                await remove_member(actor.reader, role, member, option_only=statement.option)


async def _check_may_pass_on(actor: Actor, rights: Rights, role: str) -> None:
    if rights.may_pass_on(actor.user, role):
        return
    may_create = rights.held(actor.user, SYSTEM) & Privilege.CREATEROLE
    if may_create and not rights.admin(role):
        return
    raise SQLError("42501", f"{actor.user} is not a superuser or role admin for role {role}")


# Defaults.


async def _alter_defaults(actor: Actor, statement: AlterDefaultPrivileges) -> None:
    kind = _KINDS[statement.kind]
    privileges = privileges_of(statement.privileges, kind)
    await _check_roles(actor, statement.grantees)
    rights = await actor.rights()
    makers = (actor.user,) if statement.roles == () else statement.roles
    if makers is None:
        await actor.need_admin("alter default privileges for all roles")
        makers = (ANY_ROLE,)
    else:
        await _check_roles(actor, makers, public=False)
    for maker in makers:
        if maker and maker not in rights.roles_of(actor.user) and not rights.admin(actor.user):
            raise SQLError("42501", f"must be a member of {maker}")
    places = await _places(actor, statement)
    known = {_place(default): default for default in await list_defaults(actor.reader)}
    for database_id, schema_id in places:
        for maker in makers:
            for grantee in statement.grantees:
                fresh = DefaultGrant(
                    database_id=database_id,
                    schema_id=schema_id,
                    role=maker,
                    kind=kind,
                    grantee=grantee,
                    grant=Grant(),
                )
                found = known.get(_place(fresh), fresh)
                grant = _changed(found.grant, privileges, statement)
                await put_default(actor.reader, replace(found, grant=grant))


def _place(default: DefaultGrant) -> tuple[object, ...]:
    return (
        default.database_id, default.schema_id, default.role, default.kind, default.grantee,
    )  # fmt: skip


def _changed(grant: Grant, privileges: int, statement: AlterDefaultPrivileges) -> Grant:
    if not statement.revoke:
        grantable = privileges if statement.option else 0
        return Grant(grant.privileges | privileges, grant.grantable | grantable)
    kept = grant.privileges if statement.option else grant.privileges & ~privileges
    return Grant(kept, grant.grantable & ~privileges)


async def _places(actor: Actor, statement: AlterDefaultPrivileges) -> list[tuple[int, int]]:
    """Ids of a database and of a schema in it, or ANY_SCHEMA."""
    if statement.schemas:
        if statement.kind is TargetKind.SCHEMA:
            raise SQLError(
                "0LP01", "schemas are not made in schemas", position=statement.position,
                hint="Leave out IN SCHEMA.",
            )  # fmt: skip
        found = [(await find_schema(actor, name))[2] for name in statement.schemas]
        return [(thing.parents[0], thing.id) for thing in found]
    database = await find_database(actor, ObjectName((actor.database,), statement.position))
    return [(database.id, ANY_SCHEMA)]


# Owners.


async def _set_owner(actor: Actor, statement: SetOwner) -> Result:
    tag = f"ALTER {statement.target.kind.value.upper()}"
    try:
        (thing,) = await _owned(actor, statement.target)
    except SQLError as error:
        if statement.if_exists and error.sqlstate in ("42P01", "42704"):
            return Result(tag=tag, notice=f"{error.message}, skipping")
        raise
    rights = await actor.rights()
    if not rights.owns(actor.user, thing.id):
        raise SQLError("42501", f"must be owner of {thing.kind.value} {thing.name}")
    await _check_roles(actor, [statement.owner], public=False)
    if not rights.admin(actor.user) and statement.owner not in rights.roles_of(actor.user):
        raise SQLError("42501", f"must be member of role {statement.owner}")
    await set_owner(actor.reader, rights, thing.id, statement.owner)
    return Result(tag=tag)


async def _owned(actor: Actor, target: GrantTarget) -> list[Securable]:
    """Returns the object whose owner is set. ALTER TABLE takes a sequence, too, as pg_dump
    writes it."""
    if target.kind is TargetKind.TABLE:
        (name,) = target.names
        if await find_sequence(actor.services.catalog, actor.reader, name, actor.database):
            target = GrantTarget(kind=TargetKind.SEQUENCE, names=target.names)
    return await find_targets(actor, target)


async def _reassign(actor: Actor, statement: ReassignOwned) -> None:
    assert statement.to is not None, statement
    await _check_roles(actor, (*statement.roles, statement.to), public=False)
    rights = await _rights_over(actor, (*statement.roles, statement.to))
    for object_id, owner, grant in list(rights.all_grants()):
        if grant.owner and owner in statement.roles:
            await set_owner(actor.reader, await actor.rights(), object_id, statement.to)
    await give_places(actor.reader, statement.roles, statement.to)
    await give_subscriptions(actor.reader, statement.roles, statement.to)
    await give_connections(actor.reader, statement.roles, statement.to)


async def _drop_owned(actor: Actor, roles: Sequence[str]) -> None:
    """Takes away what was granted to roles, here and by default. Raises 2BP01 where one owns a
    thing that still exists."""
    await _check_roles(actor, roles, public=False)
    rights = await _rights_over(actor, roles)
    for object_id, grantee, grant in list(rights.all_grants()):
        if grantee not in roles:
            continue
        if grant.owner and await _lives(actor, object_id):
            raise SQLError(
                "2BP01",
                f"role {grantee} still owns objects, which DROP OWNED BY does not drop",
                hint=f"REASSIGN OWNED BY {grantee} TO another role, or drop them.",
            )
        await put_grant(actor.reader, object_id, grantee, Grant())
    for default in await list_defaults(actor.reader):
        if default.grantee in roles or default.role in roles:
            await put_default(actor.reader, replace(default, grant=Grant()))


async def _rights_over(actor: Actor, roles: Iterable[str]) -> Rights:
    rights = await actor.rights()
    for role in roles:
        if not rights.admin(actor.user) and role not in rights.roles_of(actor.user):
            raise SQLError("42501", f"must be member of role {role}")
    if ROOT in roles and not rights.admin(actor.user):
        raise SQLError("42501", "only admins may give away what root owns")
    return rights


async def _lives(actor: Actor, object_id: int) -> bool:
    if object_id == SYSTEM.id:
        return True
    found = await actor.services.catalog.descriptors.read(actor.reader, object_id)
    return found is not None and not found.dropped


async def what_depends_on(actor: Actor, role: str) -> list[str]:
    """Returns the objects and grants that keep a role from being dropped, a phrase for each."""
    rights = await actor.rights()
    reasons: list[str] = []
    for object_id, grantee, grant in rights.all_grants():
        if grantee != role or not await _lives(actor, object_id):
            continue
        if object_id == SYSTEM.id:
            continue  # goes with the role
        found = await actor.services.catalog.descriptors.read(actor.reader, object_id)
        assert found is not None, object_id
        kind = "table" if isinstance(found, TableDescriptor) else securable(found).kind.value
        verb = "owns" if grant.owner else "has privileges on"
        reasons.append(f"it {verb} {kind} {found.name}")
    for default in await list_defaults(actor.reader):
        if role in (default.grantee, default.role):
            reasons.append("default privileges mention it")
    return sorted(set(reasons))


K = TypeVar("K", SequenceDescriptor, TypeDescriptor)


# The things that statements name


async def find_targets(actor: Actor, target: GrantTarget) -> list[Securable]:
    """Returns the objects that a statement names. Raises SQLError for one that does not exist."""
    if target.kind is TargetKind.SYSTEM:
        return [SYSTEM]
    find = _FINDERS[target.kind]
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


async def _sequences(actor: Actor, name: ObjectName) -> list[Securable]:
    return await _objects(actor, name, SequenceDescriptor)


async def _types(actor: Actor, name: ObjectName) -> list[Securable]:
    return await _objects(actor, name, TypeDescriptor)


async def _objects(actor: Actor, name: ObjectName, kind: type[K]) -> list[Securable]:
    """The objects of a kind in a schema, by name."""
    database, schema, _ = await find_schema(actor, name)
    found = await actor.services.catalog.list_objects(actor.reader, database, kind)
    return [securable(thing) for place, thing in found if place == schema]


async def _database(actor: Actor, name: ObjectName) -> list[Securable]:
    return [await find_database(actor, name)]


async def _schema(actor: Actor, name: ObjectName) -> list[Securable]:
    return [(await find_schema(actor, name))[2]]


async def _sequence(actor: Actor, name: ObjectName) -> list[Securable]:
    found = await find_sequence(actor.services.catalog, actor.reader, name, actor.database)
    if found is None:
        raise unknown_relation(name)
    return [securable(found)]


async def _type(actor: Actor, name: ObjectName) -> list[Securable]:
    found = await find_type(actor.services, actor.reader, name, actor.database)
    if found is None:
        raise unknown(name)
    return [securable(found)]


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


_FINDERS: dict[TargetKind, Callable[[Actor, ObjectName], Awaitable[list[Securable]]]] = {
    TargetKind.DATABASE: _database,
    TargetKind.SCHEMA: _schema,
    TargetKind.SEQUENCE: _sequence,
    TargetKind.TYPE: _type,
    TargetKind.TABLE: _named,
    TargetKind.TABLES_IN_SCHEMA: _tables,
    TargetKind.SEQUENCES_IN_SCHEMA: _sequences,
    TargetKind.TYPES_IN_SCHEMA: _types,
}


# SHOW


async def show_role_grants(actor: Actor, statement: ShowRoleGrants) -> Result:
    roles, members = statement.roles, statement.members
    rows: list[Row] = [
        (role, member, admin)
        for role, member, admin in (await read_rights(actor.reader)).memberships()
        if (not roles or role in roles) and (not members or member in members)
    ]
    return listing("SHOW GRANTS", "role_name member is_admin:b", rows)


async def show_grants(actor: Actor, statement: ShowGrants) -> Result:
    """The grants on objects, or on everything in the database: admins and owners have all."""
    rights = await read_rights(actor.reader)
    if statement.target is None:
        things = await _everything_in(actor)
    else:
        things = await find_targets(actor, statement.target)
    if things == [SYSTEM]:
        return _system_grants(rights, statement.grantees)
    names: dict[int, str] = {}
    rows: list[Row] = []
    for thing in things:
        kind = "table" if thing.kind is SecurableKind.TABLE else thing.kind.value
        path = await _full_name(actor, thing, names)
        for grantee, privilege, grantable in granted(rights, thing):
            if not statement.grantees or grantee in statement.grantees:
                rows.append((*path, kind, grantee, privilege, grantable))
    columns = (
        "database_name schema_name object_name object_type grantee privilege_type is_grantable:b"
    )
    return listing("SHOW GRANTS", columns, rows)


def granted(rights: Rights, thing: Securable) -> Iterator[tuple[str, str, bool]]:
    """Yields roles and their privileges on an object: admins, its owner, and the grantees."""
    all_of = {ADMIN, ROOT, rights.owner(thing.id)}
    for grantee in sorted(all_of):
        yield grantee, "ALL", True
    for grantee, grant in rights.grants_on(thing.id):
        if grantee not in all_of:
            yield from _spelled(grantee, grant, thing.kind)


def _spelled(grantee: str, grant: Grant, kind: SecurableKind) -> Iterator[tuple[str, str, bool]]:
    """One row a privilege; ALL in one word where that says the same."""
    names = privilege_names(grant.privileges, kind)
    passed_on = set(privilege_names(grant.grantable, kind))
    if "ALL" in names and passed_on and "ALL" not in passed_on:
        names = sorted(str(one.name) for one in Privilege if one & grant.privileges)
    for name in names:
        yield grantee, name, name in passed_on or "ALL" in passed_on


def _system_grants(rights: Rights, grantees: Sequence[str]) -> Result:
    rows: list[Row] = [(ADMIN, "ALL", True), (ROOT, "ALL", True)]
    for grantee, grant in rights.grants_on(SYSTEM.id):
        rows += _spelled(grantee, grant, SecurableKind.SYSTEM)
    kept = [row for row in rows if not grantees or row[0] in grantees]
    return listing("SHOW SYSTEM GRANTS", "grantee privilege_type is_grantable:b", kept)


async def _everything_in(actor: Actor) -> list[Securable]:
    """The current database, its schemas and what is in them."""
    found = await _database(actor, ObjectName((actor.database,), 1))
    for schema in await actor.services.catalog.list_schemas(actor.reader, actor.database):
        place = ObjectName((actor.database, schema), 1)
        for find in (_schema, _tables, _sequences, _types):
            found += await find(actor, place)
    return found


async def _full_name(actor: Actor, thing: Securable, names: dict[int, str]) -> list[str | None]:
    """Database, schema and name of a thing, as far as it has them. `names` are known by id."""
    path: list[str | None] = [thing.name]
    for parent in thing.parents:
        if parent not in names:
            found = await actor.services.catalog.descriptors.read(actor.reader, parent)
            assert found is not None, parent
            names[parent] = found.name
        path.insert(0, names[parent])
    return path + [None] * (3 - len(path))
