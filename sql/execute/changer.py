"""The actor of a statement that changes the catalog: what it finds, makes and owns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...catalog.descriptors.descriptor import Descriptor, TableDescriptor
from ...catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ...catalog.descriptors.names import TableName
from ...catalog.descriptors.system_tables import DESCRIPTOR
from ...catalog.jobs.record import JobRecord, job_key
from ...catalog.rights.privileges import Privilege, securable
from ...catalog.rights.rights import (
    add_privileges,
    forget_object,
    initial_grants,
    read_rights,
    set_owner,
)
from ...catalog.rights.users import PUBLIC, ROOT
from ...catalog.store.catalog_changes import CatalogChanges
from ...catalog.store.descriptor_store import DescriptorStore, decode_stored
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ...kvlayer.clock import ZERO
from ...kvlayer.errors import RetryableTransaction
from ...kvlayer.settings import declare_duration
from ..analyze.binder import Relations
from ..runtime import relations
from ..runtime.authorization import Actor
from ..syntax.statement import DropObjects, ObjectName, at

D = TypeVar("D", bound=Descriptor)
F = TypeVar("F", TableDescriptor, SequenceDescriptor, TypeDescriptor)

LEASE_WAIT = declare_duration(
    "sql.schema_change.lease_wait_timeout",
    30.0,
    "how long a schema change waits for leases on older versions to end",
)


class Skipped(Exception):
    """IF EXISTS or IF NOT EXISTS leaves nothing to do: the text says why."""


def skipped(error: SQLError, whether: bool) -> SQLError | Skipped:
    """Returns the error, or Skipped with its words where IF [NOT] EXISTS was said."""
    return Skipped(error.message) if whether else error


@dataclass(frozen=True, slots=True)
class Changer(Actor):
    """An actor whose statement changes the catalog in a transaction, which the statement does not
    commit. `scope` holds the leases on tables that the transaction uses."""

    scope: relations.LeaseScope

    @property
    def transaction(self) -> Transaction:
        return self.reader

    @property
    def descriptors(self) -> DescriptorStore:
        return self.services.catalog.descriptors

    async def find(self, name: ObjectName, **kinds: bool) -> TableDescriptor | None:
        """The table behind a name, as `find_table` finds it."""
        return await relations.find_table(self.services, self.reader, name, self.database, **kinds)

    async def found(
        self, name: ObjectName, *, views: bool = False, if_exists: bool = False
    ) -> TableDescriptor:
        """As `find`, of a table that the statement changes. Raises SQLError 42P01, or Skipped where
        it is asked for `if_exists`; 42501 without CREATE on the table."""
        table = await self.find(name, views=views, if_exists=if_exists)
        if table is None:
            raise skipped(relations.unknown_relation(name), if_exists)
        await self.need_table(table, Privilege.CREATE)
        return table

    async def table(self, table_id: int) -> TableDescriptor:
        """The table of an id, which is there."""
        table = await self.descriptors.read(self.reader, table_id)
        assert isinstance(table, TableDescriptor), (table_id, table)
        return table

    async def parts(self, table: TableDescriptor) -> tuple[str, ...]:
        """The database, the schema and the name of a table."""
        inside = []
        for parent in (table.database_id, table.schema_id):
            found = await self.descriptors.read(self.reader, parent)
            assert found is not None, table
            inside.append(found.name)
        return (*inside, table.name)

    async def place_of(self, name: ObjectName) -> tuple[str, tuple[int, int], bool]:
        """The name and the parents of an object to be made, and whether something has the name.
        Raises SQLError as `new_table_name`."""
        full = await new_table_name(self, name)
        parents = await self.descriptors.resolve_schema(self.reader, full.database, full.schema)
        taken = await self.descriptors.lookup(self.reader, *parents, full.name)
        return full.name, parents, taken is not None

    async def resolve(self, names: Sequence[ObjectName], *, keyspaces: bool = False) -> Relations:
        """The tables behind names, leased."""
        reader, at = self.reader, self.reader.read_timestamp
        resolver = relations.Resolver(self.services, self.database, reader, self.scope, at, reader)
        return await resolver.relations(names, keyspaces=keyspaces)

    async def wait_for_room(self, table: TableDescriptor) -> None:
        """Returns when the transaction may publish the table's next version: no job is at it, and
        nobody uses an older one, this session least of all. At once where it has published one.

        Raises RetryableTransaction where a job was at it, for the table is another since, and where
        an earlier statement has used another version; SQLError 55P03 and 55000; LeaseWaitTimeout.
        """
        if table.id in relations.changed_tables(self.reader):
            return
        self.scope.drop(table)
        if table.schema_change_job is not None:
            await self._wait_for_turn(table)
            raise RetryableTransaction(f'table "{table.name}" has just been changed')
        timeout = self.services.store.settings.get(LEASE_WAIT)
        await self.services.leases.wait_for_one_version(table.id, timeout=timeout)

    async def _wait_for_turn(self, table: TableDescriptor) -> None:
        """Waits until the job that changes the table is done with it.

        A transaction that has written rows, or uses other tables, waits for a bounded time alone:
        the job may be waiting for them, and nobody else would see that the two wait for each other.
        """
        bound = self.services.store.settings.get(LEASE_WAIT)
        waited_for = self.reader.write_count > 0 or self.scope.holds_any
        try:
            async with asyncio.timeout(bound if waited_for else None):
                await self.services.schema_changes.wait_for_turn(table)
        except TimeoutError:
            raise SQLError(
                "55P03",
                f'table "{table.name}" is still being changed by job {table.schema_change_job} '
                f"after {bound:g} s",
                detail="The job may be waiting for rows that this transaction has written, or for "
                "tables that it uses.",
                hint="End it first, and change the table in a transaction of its own.",
            ) from None

    async def publish_next(self, changed: D) -> D:
        """Publishes what a descriptor has become as its next version."""
        version = self.descriptors.next_version(self.reader, changed)
        published = replace(changed, version=version)
        await self.descriptors.publish(self.reader, published)
        return published


async def new_table_name(actor: Actor, name: ObjectName, *, temporary: bool = False) -> TableName:
    """The full name of a table to be made: in a schema of this database, or of another one. That of
    a temporary one lies in the session's schema, which is made. Raises SQLError 3D000 and 3F000,
    42501 without CREATE on the schema, and 42P16 for a temporary table in one."""
    services, transaction, database = actor.services, actor.reader, actor.database
    if temporary:  # anybody makes those
        if len(name.parts) > 1:
            message = "cannot create temporary relation in non-temporary schema"
            raise SQLError("42P16", message, position=name.position)
        schema = await relations.make_temporary_schema(services, transaction, database)
        return TableName(database, schema, name.parts[-1])
    full = await relations.name_in(services.catalog, transaction, name, database)
    descriptors = services.catalog.descriptors
    with at(name.position):
        _, schema_id = await descriptors.resolve_schema(transaction, full.database, full.schema)
    await actor.need_descriptor(schema_id, Privilege.CREATE)
    return full


async def all_of(transaction: Transaction, kind: type[D]) -> list[D]:
    """Every object of a kind. The whole of `system.descriptor` is read, so that whoever makes
    another one meanwhile conflicts."""
    rows = await transaction.scan(DESCRIPTOR.primary_span)
    found = [decode_stored(key, body, ZERO) for key, body in rows]
    return [one for one in found if isinstance(one, kind) and not one.dropped]


async def found_of(
    actor: Actor,
    statement: DropObjects,
    find: Callable[[ObjectName], Awaitable[F | None]],
    plural: str,
    unknown: Callable[[ObjectName], SQLError] = relations.unknown_relation,
) -> tuple[list[F], str | None]:
    """The objects that a DROP names, each once, and a notice of those that are not there. Raises
    `unknown` for one of these without IF EXISTS, and SQLError 42501 without DROP on one."""
    found: dict[int, F] = {}
    missing = 0
    for name in statement.names:
        each = await find(name)
        if each is not None:
            await actor.need(securable(each), Privilege.DROP)
            found[each.id] = each
        elif statement.if_exists:
            missing += 1
        else:
            raise unknown(name)
    notice = f"{missing} of the {plural} did not exist, skipping" if missing else None
    return list(found.values()), notice


# The owners of what is made


async def settle_rights(transaction: Transaction, user: str, before: Sequence[Descriptor]) -> None:
    """Gives the objects that a statement has made to its user, and forgets those that it has
    dropped. `before` are the versions that the transaction had published before the statement."""
    if not transaction.commit_checks:
        return
    changes = CatalogChanges.of(transaction)
    for descriptor in changes.published:
        if any(descriptor is earlier for earlier in before):
            continue
        if descriptor.dropped:
            with transaction.tracking(False):
                rights = await read_rights(transaction)
            await forget_object(transaction, rights, descriptor.id)
        elif changes.created(descriptor.id):
            await _endow(transaction, user, descriptor)


async def _endow(transaction: Transaction, user: str, descriptor: Descriptor) -> None:
    made = securable(descriptor)
    privileges = initial_grants(made.kind, made.name)
    if privileges:
        await add_privileges(transaction, made.id, PUBLIC, privileges)
    if user != ROOT:
        with transaction.tracking(False):
            rights = await read_rights(transaction)
        await set_owner(transaction, rights, made.id, user)


async def own_jobs(transaction: Transaction, user: str, job_ids: Sequence[int]) -> None:
    """Notes whose jobs these are, which begin with the transaction."""
    if user == ROOT:
        return
    changes = CatalogChanges.of(transaction)
    for job_id in job_ids:
        key = job_key(job_id)
        body = await transaction.get(key)
        assert body is not None, job_id
        job = JobRecord.decode(key, body)
        if job.owner is None:
            await changes.put_bookkeeping(*replace(job, owner=user).encode())
