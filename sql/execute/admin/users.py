"""CREATE, ALTER and DROP of users and roles, and all other changes of rights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....catalog.jobs.job_store import cancel_jobs_of
from ....catalog.rights.privileges import ALL_OF, SYSTEM, Privilege, SecurableKind, privilege_names
from ....catalog.rights.rights import (
    Grant,
    add_member,
    add_privileges,
    put_grant,
    read_rights,
    remove_member,
    remove_privileges,
)
from ....catalog.rights.users import (
    ADMIN,
    ROOT,
    User,
    Verifier,
    alter_user,
    create_user,
    drop_user,
    find_user,
    list_users,
    make_verifier,
    unknown_user,
)
from ....catalog.rights.web_sessions import remove_web_sessions
from ....catalog.values.errors import SQLError
from ....changefeed import JOB_KIND, SCHEDULE_KIND
from ....kvlayer.access import Transaction
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.implicit import alone, in_opened
from ...runtime.relations import LeaseScope
from ...runtime.services import Services
from ...runtime.transactions import OpenTransaction
from ...syntax.rights_statements import (
    AlterUser,
    CreateUser,
    DropUser,
    RightsChange,
    RoleOptions,
    ShowUsers,
)
from .grants import change_rights, give_feeds_things, what_depends_on

DEPENDENTS_SHOWN = 100
"""Dependencies that an error lists, as PostgreSQL does."""

FEED_KINDS = (JOB_KIND, SCHEDULE_KIND)
"""Jobs that go on with the rights of their owner, and so end with the owner."""

UserChange = CreateUser | AlterUser | DropUser


async def change_user(
    services: Services,
    statement: UserChange | RightsChange,
    opened: OpenTransaction | None,
    user: str,
    database: str,
) -> Result:
    """Carries a statement out in the open transaction, or in one of its own.

    By itself it returns when this node goes by the rights that it has changed.
    """

    async def work(transaction: Transaction, scope: LeaseScope) -> Result:
        return await _change(Actor(services, user, database, transaction), statement)

    if opened is not None:
        opened.refuse_read_only("a change of users and rights")
        return await in_opened(opened, work)
    result, at, _ = await alone(services, work)
    await services.rights.catch_up(at)
    return result


async def _change(actor: Actor, statement: UserChange | RightsChange) -> Result:
    """Does not commit."""
    match statement:
        case CreateUser():
            return await _create(actor, statement)
        case AlterUser():
            return await _alter(actor, statement)
        case DropUser():
            return await _drop(actor, statement)
        case _:
            return await change_rights(actor, statement)


async def _create(actor: Actor, statement: CreateUser) -> Result:
    await actor.need_system(Privilege.CREATEROLE)
    name, options = statement.name, statement.options
    login = statement.login if options.login is None else options.login
    user = User(name, _verifier(actor, options), login)
    if not await create_user(actor.reader, user, if_not_exists=statement.if_not_exists):
        return Result(tag="CREATE ROLE", notice=f'role "{name}" already exists, skipping')
    await _set_options(actor, name, options)
    return Result(tag="CREATE ROLE")


async def _alter(actor: Actor, statement: AlterUser) -> Result:
    name, options = statement.name, statement.options
    user = await find_user(actor.reader, name)
    if user is None:
        if statement.if_exists:
            return Result(tag="ALTER ROLE", notice=f'role "{name}" does not exist, skipping')
        raise unknown_user(name)
    own_password = name == actor.user and options == RoleOptions(
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
    await alter_user(actor.reader, user)
    await _set_options(actor, name, options)
    return Result(tag="ALTER ROLE")


async def _drop(actor: Actor, statement: DropUser) -> Result:
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
                hint=f"REASSIGN OWNED BY {name} TO another role, then DROP OWNED BY {name}.",
            )
        if not await drop_user(actor.reader, name, if_exists=statement.if_exists):
            missing.append(name)
            continue
        await put_grant(actor.reader, SYSTEM.id, name, Grant())
        await give_feeds_things(actor.reader, [name], ROOT)
        await remove_web_sessions(actor.reader, name)
        await cancel_jobs_of(actor.reader, name, FEED_KINDS)
        for role, member, _ in (await actor.rights()).memberships():
            if name in (role, member) and (role, member) != (ADMIN, ROOT):
                await remove_member(actor.reader, role, member)
    skipped = ", ".join(f'role "{name}" does not exist, skipping' for name in missing)
    return Result(tag="DROP ROLE", notice=skipped or None)


async def _check_admin_over(actor: Actor, name: str) -> None:
    if (await actor.rights()).admin(name):
        await actor.need_admin("change admins")


def _verifier(actor: Actor, options: RoleOptions) -> Verifier | None:
    if options.password is None:
        return None
    return make_verifier(options.password, actor.services.store.random)


async def _set_options(actor: Actor, name: str, options: RoleOptions) -> None:
    """Options other than the password are system privileges and memberships."""
    granted, revoked = _bits(options.granted), _bits(options.revoked)
    lacking = granted & ~(await actor.rights()).grantable(actor.user, SYSTEM)
    if lacking:
        names = ", ".join(privilege_names(lacking, SecurableKind.SYSTEM))
        raise SQLError("42501", f"user {actor.user} may not give {names}")
    if granted:
        await add_privileges(actor.reader, SYSTEM.id, name, granted)
    if revoked:
        await remove_privileges(actor.reader, SYSTEM.id, name, revoked)
    for role in options.in_roles:
        rights = await actor.rights()
        if await find_user(actor.reader, role) is None:
            raise unknown_user(role)
        if role == ADMIN or not rights.may_pass_on(actor.user, role):
            await actor.need_admin(f"make members of {role}")
        await add_member(actor.reader, rights, role, name, admin=False)


def _bits(names: Iterable[str]) -> int:
    return sum({int(Privilege[name]) for name in names})


async def show_users(actor: Actor, statement: ShowUsers) -> Result:
    """SHOW USERS and SHOW ROLES."""
    rights = await read_rights(actor.reader)
    memberships = rights.memberships()
    rows: list[Row] = []
    for user in await list_users(actor.reader):
        held = rights.grant(SYSTEM.id, user.name).privileges & ALL_OF[SecurableKind.SYSTEM]
        options = [str(one.name) for one in Privilege if one & held]
        if not user.login:
            options.append("NOLOGIN")
        roles = [role for role, member, _ in memberships if member == user.name]
        has_password = "yes" if user.verifier is not None else "no"
        rows.append((user.name, ", ".join(sorted(options)), ", ".join(roles), has_password))
    return listing("SHOW ROLES", "username options member_of has_password", rows)
