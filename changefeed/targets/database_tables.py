"""The tables of a database that a feed of the whole database follows."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ...catalog.descriptors.descriptor import Descriptor, TableDescriptor
from ...catalog.descriptors.names import TableName
from ...catalog.descriptors.system_tables import DESCRIPTOR
from ...catalog.store.descriptor_store import DescriptorReader, DescriptorStore


class DatabaseTables(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a database by their full names: those that are to be included, whether they
    exist or not, or else all but the excluded ones.

    The feed follows the database's descriptors as it follows a table's rows: `id` and `span` are
    those of that part of its frontier.
    """

    id: int
    name: str
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    span = DESCRIPTOR.primary_span

    def takes(self, name: str) -> bool:
        """Whether a table of that full name is among them."""
        return name not in self.exclude if self.include is None else name in self.include

    def with_table(self, name: str) -> DatabaseTables:
        """The same, and that one is among them."""
        if self.include is not None and name not in self.include:
            return msgspec.structs.replace(self, include=(*self.include, name))
        left = tuple(each for each in self.exclude if each != name)
        return msgspec.structs.replace(self, exclude=left)

    def without_table(self, name: str) -> DatabaseTables:
        """The same, and that one is not among them."""
        if not self.takes(name):
            return self
        if self.include is not None:
            left = tuple(each for each in self.include if each != name)
            return msgspec.structs.replace(self, include=left)
        return msgspec.structs.replace(self, exclude=(*self.exclude, name))

    def holds(self, descriptor: Descriptor) -> bool:
        """Whether it is of a table in the database, by whatever name, that has rows of its own."""
        return (
            isinstance(descriptor, TableDescriptor)
            and descriptor.database_id == self.id
            and descriptor.view is None
            and descriptor.keyspace is None
            and not descriptor.temporary
        )

    async def name_of(
        self, descriptors: DescriptorStore, reader: DescriptorReader, table: TableDescriptor
    ) -> str:
        """The full name of a table of the database."""
        schema = await descriptors.read(reader, table.schema_id)
        assert schema is not None, table
        return str(TableName(self.name, schema.name, table.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """A table of a database, and its full name."""

    table: TableDescriptor
    name: str


async def find_tables(
    tables: DatabaseTables, descriptors: DescriptorStore, reader: DescriptorReader
) -> list[FoundTable]:
    """The feed's tables that are there, by schema and name."""
    found: list[FoundTable] = []
    for _, schema_id in await descriptors.children(reader, tables.id, 0):
        for _, table_id in await descriptors.children(reader, tables.id, schema_id):
            table = await descriptors.read(reader, table_id)
            if table is None or not tables.holds(table):
                continue
            assert isinstance(table, TableDescriptor), table
            name = await tables.name_of(descriptors, reader, table)
            if tables.takes(name):
                found.append(FoundTable(table=table, name=name))
    return found
