"""The actor of a statement that changes the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...catalog.descriptors.descriptor import Descriptor, TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import Transaction
from ..analyze.binder import Relations
from ..runtime.authorization import Actor
from ..runtime.relations import LeaseScope, find_table, resolve_all, unknown_relation
from ..syntax.names import ObjectName

D = TypeVar("D", bound=Descriptor)


@dataclass(frozen=True, slots=True)
class Changer(Actor):
    """An actor whose statement changes the catalog in a transaction, which the statement does not
    commit. `scope` holds the leases on tables that the transaction uses."""

    scope: LeaseScope

    @property
    def transaction(self) -> Transaction:
        return self.reader

    @property
    def descriptors(self) -> DescriptorStore:
        return self.services.catalog.descriptors

    async def find(
        self,
        name: ObjectName,
        *,
        views: bool = False,
        keyspaces: bool = False,
        if_exists: bool = False,
    ) -> TableDescriptor | None:
        """The table behind a name, as `find_table` finds it."""
        return await find_table(
            self.services,
            self.reader,
            name,
            self.database,
            views=views,
            keyspaces=keyspaces,
            if_exists=if_exists,
        )

    async def found(self, name: ObjectName) -> TableDescriptor:
        """The table behind a name. Raises SQLError 42P01."""
        table = await self.find(name)
        if table is None:
            raise unknown_relation(name)
        return table

    async def table(self, table_id: int) -> TableDescriptor:
        """The table of an id, which is there."""
        table = await self.descriptors.read(self.reader, table_id)
        assert isinstance(table, TableDescriptor), (table_id, table)
        return table

    async def resolve(self, names: Sequence[ObjectName], *, keyspaces: bool = False) -> Relations:
        """The tables behind names, leased, as `resolve_all` resolves them."""
        return await resolve_all(
            self.services,
            self.reader,
            names,
            self.database,
            self.scope,
            self.reader.read_timestamp,
            self.reader,
            keyspaces=keyspaces,
        )

    async def publish_next(self, changed: D) -> D:
        """Publishes what a descriptor has become as its next version."""
        version = self.descriptors.next_version(self.reader, changed)
        published = replace(changed, version=version)
        await self.descriptors.publish(self.reader, published)
        return published
