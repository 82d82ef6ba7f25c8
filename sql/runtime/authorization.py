"""Authorization: every statement is checked here before it does anything.

A statement *needs* privileges on things. Of queries and DML the needs follow from the statement and
the tables that its names stand for, and are kept beside its plan; what is compared for each run is
the rights of that moment, so a REVOKE needs no plan to be thrown away. Other statements say which
names they are about, and are asked about those in the transaction that they run in; and whatever a
statement has made, altered or dropped in the catalog is looked at once more before it commits, so
that no statement can be forgotten.

Messages are CockroachDB's: `user ada does not have SELECT privilege on relation orders`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import Descriptor, SchemaDescriptor, TableDescriptor
from ...catalog.descriptors.temporary_schema import TEMPORARY_PREFIX
from ...catalog.rights.privileges import SYSTEM, Privilege, Securable, SecurableKind, securable
from ...catalog.rights.quotas import RowQuota
from ...catalog.rights.rights import Rights, read_rights
from ...catalog.rights.rights_watcher import RightsWatcher
from ...catalog.rights.users import ROOT, find_user
from ...catalog.store.catalog_changes import CatalogChanges
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ..plan.needs import Need, Needs, missing, needs_on, refused
from ..results.results import Result
from ..syntax.rights_statements import ActAs
from ..variables.variables import IS_SUPERUSER, SESSION_USER, SessionVariables, Variable, show_bool
from .services import Services
from .transactions import OpenTransaction


async def current_rights(services: Services, reader: Transaction | None) -> Rights:
    """The rights that hold now; of a transaction that changes rights, those that it sees."""
    if reader is not None and changes_rights(reader):
        with reader.tracking(False):
            return await read_rights(reader)
    return services.rights.current


def changes_rights(transaction: Transaction) -> bool:
    """Whether its commit will change anybody's rights."""
    return any(
        isinstance(check, CatalogChanges) and check.rights_changed
        for check in transaction.commit_checks
    )


async def require(
    services: Services, user: str, needs: Needs, reader: Transaction | None = None
) -> None:
    """Raises SQLError 42501 where a need is not met."""
    if user == ROOT or not needs:
        return
    rights = services.rights.current
    if reader is not None and reader.commit_checks:
        rights = await current_rights(services, reader)
    if rights.known_met(user, needs):
        return
    lacking = missing(rights, user, needs)
    if lacking is not None:
        raise await _refusal(services, lacking.holder(user, rights), lacking)
    rights.note_met(user, needs)


async def require_on(services: Services, user: str, table: TableDescriptor, needs: int) -> None:
    """Raises SQLError 42501 where a user lacks one of the privileges on a table."""
    await require(services, user, tuple(needs_on(table, needs)))


async def _refusal(services: Services, user: str, need: Need) -> SQLError:
    name = need.object.name
    if not name:
        at = await services.store.now()
        found = await services.catalog.descriptors.read_at(need.object.id, at)
        name = found.name if isinstance(found, SchemaDescriptor) else str(need.object.id)
    return refused(user, need.privileges, need.object.kind, name)


@dataclass(frozen=True, slots=True)
class Actor:
    """A user and where it stands, about to run a statement in `reader`."""

    services: Services
    user: str
    database: str
    reader: Transaction

    async def rights(self) -> Rights:
        return await current_rights(self.services, self.reader)

    async def admin(self) -> bool:
        return self.user == ROOT or (await self.rights()).admin(self.user)

    async def need(self, object: Securable, privileges: int) -> None:
        await require(self.services, self.user, (Need(int(privileges), object),), self.reader)

    async def need_descriptor(self, descriptor_id: int, privileges: int) -> None:
        if self.user == ROOT:
            return
        found = await self.services.catalog.descriptors.read(self.reader, descriptor_id)
        assert found is not None, descriptor_id
        await self.need(securable(found), privileges)

    async def need_system(self, *any_of: Privilege) -> None:
        """Requires one of these system privileges. Raises SQLError 42501, which names the first."""
        if self.user == ROOT:
            return
        held = (await self.rights()).held(self.user, SYSTEM)
        if not any(held & privilege for privilege in any_of):
            raise refused(self.user, any_of[0], SecurableKind.SYSTEM, "")

    async def need_room(self, quota: RowQuota) -> None:
        """Checks a quota after the user has made something. Raises SQLError 53400."""
        if not await self.admin():
            settings = self.services.store.settings
            await quota.check(settings, await self.rights(), self.user, self.reader)

    async def need_admin(self, what: str) -> None:
        if not await self.admin():
            raise SQLError("42501", f"only users with the admin role are allowed to {what}")

    async def need_table(self, table: TableDescriptor, privileges: int) -> None:
        await require(self.services, self.user, tuple(needs_on(table, privileges)), self.reader)

    async def need_database(self, name: str, privileges: int) -> None:
        descriptors = self.services.catalog.descriptors
        if self.user == ROOT:
            return
        database_id = await descriptors.lookup(self.reader, 0, 0, name)
        if database_id is not None:
            await self.need(Securable(SecurableKind.DATABASE, database_id, name), privileges)


async def check_changes(actor: Actor, before: Sequence[Descriptor]) -> None:
    """Looks at what a statement has done to the catalog: `before` is what was published already.

    To make a thing needs CREATE on what it is in, to drop it DROP, and to change it CREATE on it.
    """
    if await actor.admin():
        return
    changes = CatalogChanges.of(actor.reader)
    for descriptor in changes.published:
        if any(descriptor is earlier for earlier in before):
            continue
        if changes.created(descriptor.id):
            await _check_created(actor, changes, descriptor)
        elif descriptor.dropped:
            if not await _owns_parent(actor, descriptor):
                await actor.need(securable(descriptor), Privilege.DROP)
        elif not _only_referenced_less(changes.before(descriptor.id, None), descriptor):
            held = (await actor.rights()).held(actor.user, securable(descriptor))
            if not held & Privilege.DROP:  # with which TRUNCATE alters tables too
                await actor.need(securable(descriptor), Privilege.CREATE)


async def _owns_parent(actor: Actor, descriptor: Descriptor) -> bool:
    """Schemas have no DROP to grant: they go with their owner, or with their database."""
    if not isinstance(descriptor, SchemaDescriptor):
        return False
    rights = await actor.rights()
    held = rights.held(actor.user, Securable(SecurableKind.DATABASE, descriptor.database_id, ""))
    return rights.owns(actor.user, descriptor.id) or bool(held & Privilege.DROP)


async def _check_created(actor: Actor, changes: CatalogChanges, descriptor: Descriptor) -> None:
    parents = securable(descriptor).parents
    if isinstance(descriptor, SchemaDescriptor):
        temporary = descriptor.name.startswith(TEMPORARY_PREFIX)
    else:
        temporary = isinstance(descriptor, TableDescriptor) and descriptor.temporary
    if temporary:
        return  # everybody makes them, in the session's own schema
    if not parents:
        await actor.need_system(Privilege.CREATEDB)
    elif not changes.created(parents[0]):
        await actor.need_descriptor(parents[0], Privilege.CREATE)


def _only_referenced_less(before: Descriptor | None, after: Descriptor) -> bool:
    """Whether a table only has fewer tables with foreign keys to it: one of those was dropped."""
    if not isinstance(before, TableDescriptor) or not isinstance(after, TableDescriptor):
        return False
    return len(after.referenced_by) < len(before.referenced_by)


async def check_database(actor: Actor, name: str) -> None:
    """Whether a session may be in a database. Raises SQLError 3D000 or 42501."""
    if name not in await actor.services.catalog.list_databases(actor.reader):
        raise SQLError("3D000", f'database "{name}" does not exist')
    await actor.need_database(name, Privilege.CONNECT)


# Whose rights a session's statements have: SET ROLE.
#
#     session_user      who the client proved to be; never changes
#     current_user      the session's user, until SET ROLE makes it a role that it is a member of
#
# Rights follow the current user, and what it makes is its own. The role is kept as a session
# variable, so it is undone with the transaction that has set it, SET LOCAL ends with it, and pools
# that say DISCARD ALL hand on a connection that is its login's again. Who loses the membership
# keeps the role until it is set anew, as in PostgreSQL.

NONE = "none"
"""The value of `role` while no role is set."""


def _checked(text: str) -> str:
    """Membership is a thing of the store's, which set_config cannot ask."""
    raise ValueError("SET ROLE sets it.")


ROLE = Variable(
    "role",
    NONE,
    parse=_checked,
    description="the role whose rights the session has, by SET ROLE",
    reset_by_all=False,
)


def begin_as(variables: SessionVariables, login: str, rights: RightsWatcher) -> None:
    """The session of a client that has proved to be `login` begins."""
    variables.begin_at(SESSION_USER, login)
    variables.compute(
        IS_SUPERUSER, lambda: show_bool(rights.current.admin(current_user(variables)))
    )


def current_user(variables: SessionVariables) -> str:
    role = variables.get(ROLE)
    return variables.get(SESSION_USER) if role == NONE else role


async def act_as(
    actor: Actor, statement: ActAs, variables: SessionVariables, opened: OpenTransaction | None
) -> Result:
    """Carries SET ROLE out. Raises SQLError 22023 for an unknown role, 42501 for one that the
    session's user may not act as."""
    name = NONE if statement.name is None else statement.name
    await _check_role(actor, name, variables.get(SESSION_USER), statement.position)
    if statement.local and opened is None:
        return Result(tag="SET", notice="SET LOCAL can only be used in transaction blocks")
    variables.put(ROLE, name, local=statement.local)
    return Result(tag="RESET" if statement.reset else "SET")


async def _check_role(actor: Actor, name: str, user: str, position: int) -> None:
    if name in (NONE, user):
        return
    if await find_user(actor.reader, name) is None:
        raise SQLError("22023", f'role "{name}" does not exist', position=position)
    rights = await actor.rights()
    if not rights.admin(user) and name not in rights.roles_of(user):
        raise SQLError(
            "42501",
            f'permission denied to set role "{name}"',
            detail=f"User {user} is no member of it.",
            position=position,
        )
