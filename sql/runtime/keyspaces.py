"""Raw keyspaces as their users reach them: by name, as far as their rights go, under lease.

    async with keyspaces.opened("sessions", user, Privilege.INSERT) as keyspace:
        await keyspace.put(b"ada", b"signed in")

What is written commits while the lease is good: nothing is written to a keyspace that was dropped.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import DEFAULT_DATABASE
from ...catalog.leases import DescriptorUnavailable
from ...catalog.rights.privileges import Privilege
from ...catalog.rights.users import ROOT
from ...catalog.store.catalog import unknown_table
from ...catalog.store.descriptor_store import DescriptorReader
from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import KVError
from ...kvlayer.raw import RawKeyspace, keyspace_span
from ...kvlayer.replication.leadership import Role
from ...kvlayer.replication.replica import Begin, Look
from ..results.errors import from_kv
from ..syntax.statement import ObjectName
from .authorization import require_on
from .relations import LeaseScope, name_in
from .services import Services


def check_keyspace(table: TableDescriptor, name: ObjectName | str) -> None:
    """Raises SQLError 42809 where the name is that of a table or a view."""
    if table.keyspace is None:
        kind = "table" if table.view is None else "view"
        raise SQLError(
            "42809",
            f'"{name}" is a {kind}, not a keyspace',
            hint="SHOW KEYSPACES lists the keyspaces.",
            position=name.position if isinstance(name, ObjectName) else None,
        )


async def replica_resolved(
    store: StoreAccess, table: TableDescriptor, name: ObjectName
) -> Timestamp | None:
    """Returns the resolved timestamp of a replica; None for a keyspace that is written here. Raises
    SQLError 55000 for a replica that has resolved nothing yet."""
    assert table.keyspace is not None, table
    state = await store.replica(keyspace_span(table.id), Look())
    leads = not table.keyspace.replica if state is None else state.role is Role.LEADING
    if leads:
        return None
    if state is None or not state.resolved:
        raise SQLError(
            "55000",
            f'keyspace "{name}" is a replica that has resolved nothing of its source yet',
            hint="SHOW KEYSPACES tells when it has.",
            position=name.position,
        )
    return state.resolved


KNOWN_NAMES_MAX = 1_000
"""A descriptor each, of which the leases hold most anyway."""


class RawKeyspaces:
    """The raw keyspaces of a node's store."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[tuple[str, str], TableDescriptor] = {}
        """Keyspaces by the name and the database that found them, the latest last. A name is looked
        up anew where the lease is on another version: as with a plan that is kept."""

    @asynccontextmanager
    async def opened(
        self, name: str, *, needs: Privilege, user: str = ROOT, database: str = DEFAULT_DATABASE
    ) -> AsyncGenerator[RawKeyspace, None]:
        """The keyspace of a name, which dots may qualify, where the user has what it `needs`.

        Raises SQLError: 42P01, 3D000, 3F000, 42809 for a table, 42501; and what the store refuses
        within the context.
        """
        services = self._services
        at = await services.store.now()
        scope = LeaseScope(services.leases)
        try:
            table = await self._leased(scope, at, name, database)
            assert table.keyspace is not None, table
            if user != ROOT:
                await require_on(services, user, table, needs)
            resolved: Timestamp | None = None
            order = Begin() if table.keyspace.replica else Look()
            state = await services.store.replica(keyspace_span(table.id), order)
            if state is not None and state.role is not Role.LEADING:
                resolved = state.resolved
            yield RawKeyspace(
                services.store,
                table.id,
                ttl_seconds=table.keyspace.ttl_seconds,
                deadline=scope.deadline,
                resolved=resolved,
            )
        except KVError as error:
            raise from_kv(error) from error
        finally:
            scope.release()

    async def _leased(
        self, scope: LeaseScope, at: Timestamp, name: str, database: str
    ) -> TableDescriptor:
        """The keyspace, leased. Raises SQLError."""
        known = self._known.get((name, database))
        if known is not None:
            try:
                table = await scope.table(known.id, at)
            except DescriptorUnavailable:  # it was dropped
                table = None
            if table is known or table == known:
                return known
            scope.release()
        found = await self._find(self._services.store.snapshot(at), name, database)
        table = await scope.table(found, at)
        check_keyspace(table, name)
        self._known.pop((name, database), None)
        self._known[name, database] = table
        if len(self._known) > KNOWN_NAMES_MAX:
            del self._known[next(iter(self._known))]
        return table

    async def _find(self, reader: DescriptorReader, name: str, database: str) -> int:
        catalog, parts = self._services.catalog, name.split(".")
        given = ObjectName(tuple(part.strip('"') for part in parts), 1)
        wanted = await name_in(catalog, reader, given, database)
        found = await catalog.find(reader, wanted, views=True, keyspaces=True)
        if found is None:
            raise unknown_table(wanted)
        check_keyspace(found, name)
        return found.id
