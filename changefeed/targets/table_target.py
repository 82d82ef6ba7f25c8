"""Tables as targets of a feed."""

from __future__ import annotations

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.clock import Timestamp
from ...kvlayer.keys import index_prefix, table_span
from ...kvlayer.span import Span
from ...schemafeed.feed import SchemaFeed, TableUnknown
from .target import Versions

FIRST_INDEX_ID = 1
"""A table that has had no other index has all its keys in this one."""


class TableTarget:
    """A table, all its indexes: a swap of the primary index needs no other subscription."""

    def __init__(self, table_id: int, descriptors: DescriptorStore) -> None:
        self.id = table_id
        self.span = table_span(table_id)
        self._descriptors = descriptors

    def schema_over(self, descriptors: SchemaFeed) -> SchemaFeed:
        return descriptors

    async def descriptor_at(self, at: Timestamp) -> TableDescriptor:
        table = await self._descriptors.read_at(self.id, at)
        if not isinstance(table, TableDescriptor) or table.dropped:
            raise TableUnknown(self.id, at)
        return table

    def rows_span(self, descriptor: TableDescriptor) -> Span:
        return descriptor.primary_span

    def select(self, versions: Versions, descriptor: TableDescriptor) -> Versions:
        if descriptor.next_index_id <= FIRST_INDEX_ID + 1:
            return versions
        prefix = index_prefix(descriptor.id, descriptor.primary_index_id)
        inside = [place for place, key in enumerate(versions.keys) if key.startswith(prefix)]
        return versions if len(inside) == len(versions.keys) else versions.pick(inside)

    def present(self, versions: Versions, descriptor: TableDescriptor) -> Versions:
        return versions

    def __repr__(self) -> str:
        return f"<TableTarget {self.id}>"
