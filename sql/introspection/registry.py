"""The registry of virtual tables: how a name finds one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.errors import SQLError
from ...kvlayer.txn import Transaction
from ..runtime.services import Services
from ..variables.variables import SessionVariables
from . import information_schema, rights, tailrace_internal, type_rows
from .pg_catalog import empty_tables, functions, namespaces, relations, session_tables
from .virtual_table import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    TAILRACE_INTERNAL,
    IntrospectionContext,
    VirtualTable,
)

DECLARING = (
    *(information_schema, rights, tailrace_internal, type_rows),
    *(empty_tables, functions, namespaces, relations, session_tables),
)
"""The modules that declare virtual tables."""

SEARCHED_FIRST = "pg_catalog"
"""The schema whose tables need no prefix, as in PostgreSQL: it is searched before `public`."""


class VirtualTableRegistry:
    """Virtual tables by schema and name. Every database has them all."""

    def __init__(self, tables: Iterable[VirtualTable]) -> None:
        self._by_name: dict[tuple[str, str], VirtualTable] = {}
        self._by_id: dict[int, VirtualTable] = {}
        for table in tables:
            assert (table.schema, table.name) not in self._by_name, table
            assert table.id not in self._by_id, table
            self._by_name[table.schema, table.name] = table
            self._by_id[table.id] = table
        self.schemas = tuple(sorted({schema for schema, _ in self._by_name}))

    def find(self, parts: Sequence[str]) -> TableDescriptor | None:
        """The table of a name as written; None where the name is not of a virtual schema.

        Raises SQLError 42P01 for a table that such a schema lacks.
        """
        if len(parts) == 1:
            table = self._by_name.get((SEARCHED_FIRST, parts[0]))
            return None if table is None else table.descriptor
        schema, name = parts[-2:]
        if schema not in self.schemas:
            return None
        table = self._by_name.get((schema, name))
        if table is None:
            names = ", ".join(name for of, name in self._by_name if of == schema)
            raise SQLError(
                "42P01",
                f'relation "{".".join(parts)}" does not exist',
                hint=f"Tables of {schema}: {names}.",
            )
        return table.descriptor

    def of(self, descriptor: TableDescriptor) -> VirtualTable:
        return self._by_id[descriptor.id]

    def __iter__(self) -> Iterator[VirtualTable]:
        return iter(self._by_name.values())


def default_tables() -> VirtualTableRegistry:
    assert DECLARING, "they are imported for the tables that they declare"
    schemas = (TAILRACE_INTERNAL, PG_CATALOG, INFORMATION_SCHEMA)
    return VirtualTableRegistry(table for schema in schemas for table in schema.tables)


@dataclass(frozen=True, slots=True)
class Introspection:
    """Implements `VirtualRows` with a node's services."""

    services: Services
    database: str
    user: str
    variables: SessionVariables = field(default_factory=SessionVariables)

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        table = self.services.virtual_tables.of(descriptor)
        assert isinstance(table, VirtualTable), table
        return await table.read(
            IntrospectionContext(self.services, self.user, self.database, reader, self.variables)
        )
