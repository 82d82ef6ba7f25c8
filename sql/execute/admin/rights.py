"""Users, roles and rights: CREATE, ALTER and DROP of users and roles, GRANT, REVOKE and owners."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from ....catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....catalog.jobs.job_store import cancel_jobs_of
from ....catalog.rights import users
from ....catalog.rights.privileges import (
    ALL_OF,
    GRANTABLE_ON,
    SYSTEM,
    Privilege,
    Securable,
    SecurableKind,
    securable,
)
from ....catalog.rights.rights import (
    Grant,
    add_member,
    add_privileges,
    put_grant,
    remove_member,
    remove_privileges,
    set_owner,
)
from ....catalog.rights.users import ADMIN, PUBLIC, ROOT
from ....catalog.rights.web_sessions import remove_web_sessions
from ....catalog.values.errors import SQLError
from ....changefeed import JOB_KIND, SCHEDULE_KIND, give_connections, give_subscriptions
from ....changefeed.jobs.places import give_places
from ...results.results import Result
from ...runtime.authorization import Actor
from ...runtime.relations import find_sequence, find_table, find_type, unknown_relation
from ...syntax import rights_statements as s
from ...syntax.statement import ObjectName, at
from ..changer import Skipped
from ..ddl.enum_types import unknown

DEPENDENTS_SHOWN = 100
"""Dependencies that an error lists, as PostgreSQL does."""

FEED_KINDS = (JOB_KIND, SCHEDULE_KIND)
"""Jobs that go on with the rights of their owner, and so end with the owner."""


async def create_role(actor: Actor, statement: s.CreateUser) -> None:
    await actor.need_system(Privilege.CREATEROLE)
    name, options = statement.name, statement.options
    login = statement.login if options.login is None else options.login
    user = users.User(name, _verifier(actor, options), login)
    if not await users.create_user(actor.reader, user, if_not_exists=statement.if_not_exists):
        raise Skipped(f'role "{name}" already exists')
    await _set_options(actor, name, options)


async def alter_role(actor: Actor, statement: s.AlterUser) -> None:
    name, options = statement.name, statement.options
    user = await users.find_user(actor.reader, name)
    if user is None:
        raise users.unknown_user(name)
    own_password = name == actor.user and options == s.RoleOptions(
        password=options.password, password_given=True
    )
    if not own_password:
        await actor.need_system(Privilege.CREATEROLE)
        await _check_admin_over(actor, name)
    if name == ADMIN or (name == ROOT and options.login is False):
        raise SQLError("42501", f"cannot edit {name} role")
    if options.password_given:
        user = replace(user, verifier=_verifier(actor, options))
    if options.login is not None:
        user = replace(user, login=options.login)
    if options.password_given or not user.login:
        await remove_web_sessions(actor.reader, name)
    await users.alter_user(actor.reader, user)
    await _set_options(actor, name, options)


async def drop_roles(actor: Actor, statement: s.DropUser) -> str | None:
    await actor.need_system(Privilege.CREATEROLE)
    missing = []
    for name in statement.names:
        await _check_admin_over(actor, name)
        reasons = await what_depends_on(actor, name)
        if reasons:
            more = len(reasons) - DEPENDENTS_SHOWN
            detail = "; ".join(reasons[:DEPENDENTS_SHOWN]) + (f"; and {more} more" * (more > 0))
            raise SQLError(
                "2BP01",
                f'role "{name}" cannot be dropped because {reasons[0]}',
                detail=f"{detail[:1].upper()}{detail[1:]}.",
                hint="ALTER … OWNER TO another role gives away what it owns, REVOKE takes back "
                "what it was granted.",
            )
        if not await users.drop_user(actor.reader, name, if_exists=statement.if_exists):
            missing.append(name)
            continue
        await put_grant(actor.reader, SYSTEM.id, name, Grant())
        for give in (give_places, give_subscriptions, give_connections):
            await give(actor.reader, name, ROOT)
        await remove_web_sessions(actor.reader, name)
        await cancel_jobs_of(actor.reader, name, FEED_KINDS)
        for role, member in (await actor.rights()).memberships():
            if name in (role, member) and (role, member) != (ADMIN, ROOT):
                await remove_member(actor.reader, role, member)
    return ", ".join(f'role "{name}" does not exist, skipping' for name in missing) or None


async def _check_admin_over(actor: Actor, name: str) -> None:
    if (await actor.rights()).admin(name):
        await actor.need_admin("change admins")


def _verifier(actor: Actor, options: s.RoleOptions) -> users.Verifier | None:
    if options.password is None:
        return None
    return users.make_verifier(options.password, actor.services.store.random)


async def _set_options(actor: Actor, name: str, options: s.RoleOptions) -> None:
    """Options other than the password are system privileges."""
    if options.granted:
        await actor.need_admin("give system privileges")
        await add_privileges(actor.reader, SYSTEM.id, name, _bits(options.granted))
    if options.revoked:
        await remove_privileges(actor.reader, SYSTEM.id, name, _bits(options.revoked))


def _bits(names: Iterable[str]) -> int:
    return sum({int(Privilege[name]) for name in names})


# Rights


async def _check_roles(actor: Actor, names: Iterable[str], *, public: bool = True) -> None:
    for name in names:
        if name == PUBLIC and not public:
            raise SQLError("0LP01", f'"{PUBLIC}" is everybody, and no role')
        await users.require_role(actor.reader, name)


def privileges_of(names: Sequence[s.PrivilegeName], kind: SecurableKind) -> int:
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


async def grant_privileges(actor: Actor, statement: s.GrantPrivileges) -> Result:
    kind, _ = _TARGETS[statement.target.kind]
    privileges = privileges_of(statement.privileges, kind)
    await _check_roles(actor, statement.grantees)
    if statement.revoke and any(given.name == "ALL" for given in statement.privileges):
        privileges |= GRANTABLE_ON[kind]
    change = remove_privileges if statement.revoke else add_privileges
    for thing in await _find_targets(actor, statement.target):
        if thing.kind is not kind:
            position = statement.target.names[0].position
            message = f'"{thing.name}" is a sequence'
            raise SQLError("42809", message, position=position, hint="Write ON SEQUENCE.")
        await _check_owner(actor, thing)
        for grantee in statement.grantees:
            if statement.revoke and grantee in (ROOT, ADMIN):
                raise SQLError("42501", f"the privileges of {grantee} cannot be revoked")
            await change(actor.reader, thing.id, grantee, privileges)
    return Result(tag="REVOKE" if statement.revoke else "GRANT")


async def _check_owner(actor: Actor, thing: Securable) -> None:
    """Raises SQLError 42501 where the user does not own a thing; the system is the admins'."""
    if thing.kind is SecurableKind.SYSTEM:
        await actor.need_admin("give system privileges")
    elif not (await actor.rights()).owns(actor.user, thing.id):
        raise SQLError("42501", f"must be owner of {thing.kind.value} {thing.name}")


# Membership.


async def grant_roles(actor: Actor, statement: s.GrantRoles) -> Result:
    await _check_roles(actor, (*statement.roles, *statement.members), public=False)
    await actor.need_system(Privilege.CREATEROLE)
    for role in statement.roles:
        await _check_admin_over(actor, role)
        for member in statement.members:
            if not statement.revoke:
                await add_member(actor.reader, await actor.rights(), role, member)
            elif (role, member) == (ADMIN, ROOT):
                raise SQLError("42501", "root is always a member of admin")
            else:
                await remove_member(actor.reader, role, member)
    return Result(tag="REVOKE" if statement.revoke else "GRANT")


# Owners.


async def set_owner_of(actor: Actor, statement: s.SetOwner) -> Result:
    """ALTER TABLE takes a sequence, too, as pg_dump writes it."""
    target = s.GrantTarget(kind=statement.kind, names=(statement.name,))
    (thing,) = await _find_targets(actor, target)
    await _check_owner(actor, thing)
    await check_new_owner(actor, statement.owner)
    await set_owner(actor.reader, await actor.rights(), thing.id, statement.owner)
    return Result(tag=f"ALTER {statement.kind.name}")


async def check_new_owner(actor: Actor, role: str) -> None:
    """Raises SQLError for a role to which the actor may not give things: 0LP01, 42704, or 42501 for
    one that the actor, who is no admin, is no member of."""
    await _check_roles(actor, [role], public=False)
    rights = await actor.rights()
    if not rights.admin(actor.user) and role not in rights.roles_of(actor.user):
        raise SQLError("42501", f"must be member of role {role}")


async def what_depends_on(actor: Actor, role: str) -> list[str]:
    """Returns the objects and grants that keep a role from being dropped, a phrase for each."""
    rights = await actor.rights()
    reasons: list[str] = []
    for object_id, grantee, grant in rights.all_grants():
        if grantee != role or object_id == SYSTEM.id:  # what is of the system goes with the role
            continue
        found = await actor.services.catalog.descriptors.read(actor.reader, object_id)
        if found is not None and not found.dropped:
            verb = "owns" if grant.owner else "has privileges on"
            reasons.append(f"it {verb} {_shown(securable(found).kind)} {found.name}")
    return sorted(set(reasons))


# The things that statements name


async def _find_targets(actor: Actor, target: s.GrantTarget) -> list[Securable]:
    """Returns the objects that a statement names. Raises SQLError for one that does not exist."""
    _, find = _TARGETS[target.kind]
    if find is None:
        return [SYSTEM]
    return [thing for name in target.names for thing in await find(actor, name)]


async def _database(actor: Actor, name: ObjectName) -> list[Securable]:
    """A database as an object of grants. Raises SQLError 3D000."""
    database_id = await actor.services.catalog.descriptors.lookup(actor.reader, 0, 0, str(name))
    if database_id is None:
        raise SQLError("3D000", f'database "{name}" does not exist', position=name.position)
    return [Securable(SecurableKind.DATABASE, database_id, str(name))]


async def _schema(actor: Actor, name: ObjectName) -> list[Securable]:
    """A schema as an object of grants. Raises SQLError 3D000 and 3F000."""
    database, schema = (actor.database, *name.parts)[-2:]
    descriptors = actor.services.catalog.descriptors
    with at(name.position):
        parents = await descriptors.resolve_schema(actor.reader, database, schema)
    return [Securable(SecurableKind.SCHEMA, parents[1], schema, (parents[0],))]


async def _tables(actor: Actor, name: ObjectName) -> list[Securable]:
    """The tables, views and keyspaces of a schema."""
    await _schema(actor, name)
    tables = await actor.services.catalog.list_tables(
        actor.reader, *(actor.database, *name.parts)[-2:], views=True, keyspaces=True
    )
    return [securable(table) for table in tables]


async def _sequences(actor: Actor, name: ObjectName) -> list[Securable]:
    """The sequences of a schema."""
    await _schema(actor, name)
    database, schema = (actor.database, *name.parts)[-2:]
    found = await actor.services.catalog.list_objects(actor.reader, database, SequenceDescriptor)
    return [securable(thing) for place, thing in found if place == schema]


async def _object(
    find: Callable[..., Awaitable[SequenceDescriptor | TypeDescriptor | None]],
    unknown: Callable[[ObjectName], SQLError],
    actor: Actor,
    name: ObjectName,
) -> list[Securable]:
    """A sequence or a type."""
    found = await find(actor.services.catalog, actor.reader, name, actor.database)
    if found is None:
        raise unknown(name)
    return [securable(found)]


async def _named(actor: Actor, name: ObjectName) -> list[Securable]:
    """A table, a view or a keyspace; a sequence where there is none."""
    virtual = actor.services.find_virtual(name.parts)
    table = virtual or await find_table(
        actor.services, actor.reader, name, actor.database, views=True, keyspaces=True
    )
    if table is None:
        return await _object(find_sequence, unknown_relation, actor, name)
    if table.id < FIRST_USER_ID:
        raise SQLError(
            "42501",
            f'privileges on "{name}" cannot be changed: it is part of the system',
            position=name.position,
        )
    return [securable(table)]


_Find = Callable[[Actor, ObjectName], Awaitable[list[Securable]]]

_TARGETS: dict[s.TargetKind, tuple[SecurableKind, _Find | None]] = {
    s.TargetKind.DATABASE: (SecurableKind.DATABASE, _database),
    s.TargetKind.SCHEMA: (SecurableKind.SCHEMA, _schema),
    s.TargetKind.SEQUENCE: (
        SecurableKind.SEQUENCE,
        partial(_object, find_sequence, unknown_relation),
    ),
    s.TargetKind.SEQUENCES_IN_SCHEMA: (SecurableKind.SEQUENCE, _sequences),
    s.TargetKind.SYSTEM: (SecurableKind.SYSTEM, None),
    s.TargetKind.TABLE: (SecurableKind.TABLE, _named),
    s.TargetKind.TABLES_IN_SCHEMA: (SecurableKind.TABLE, _tables),
    s.TargetKind.TYPE: (SecurableKind.TYPE, partial(_object, find_type, unknown)),
}
"""The targets of GRANT: the kind of object, and the function that finds it by its name."""
