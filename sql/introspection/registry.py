"""Virtual tables: how a name finds one, and how its rows are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.errors import SQLError
from ...kvlayer.txn import Transaction
from ..runtime.services import Services
from ..variables.variables import SessionVariables
from . import information_schema, rights, tailrace_internal, type_rows
from .pg_catalog import empty_tables, functions, namespaces, relations, session_tables
from .virtual_table import PG_CATALOG, SCHEMAS, IntrospectionContext, virtual_tables

DECLARING = (
    *(information_schema, rights, tailrace_internal, type_rows),
    *(empty_tables, functions, namespaces, relations, session_tables),
)
"""The modules that are imported for the virtual tables that they declare."""

_BY_ID = {table.id: table for table in virtual_tables()}
assert len(_BY_ID) == sum(len(schema.tables) for schema in SCHEMAS), "ids are unique"


def find_virtual(parts: Sequence[str]) -> TableDescriptor | None:
    """The table of a name as written; None where the name is not of a virtual schema. A name alone
    is one of pg_catalog, which is searched before `public`, as in PostgreSQL.

    Raises SQLError 42P01 for a table that such a schema lacks.
    """
    if len(parts) == 1:
        table = PG_CATALOG.tables.get(parts[0])
        return None if table is None else table.descriptor
    name = parts[-1]
    for schema in SCHEMAS:
        if schema.name == parts[-2]:
            if name not in schema.tables:
                raise SQLError(
                    "42P01",
                    f'relation "{".".join(parts)}" does not exist',
                    hint=f"Tables of {schema.name}: {', '.join(schema.tables)}.",
                )
            return schema.tables[name].descriptor
    return None


@dataclass(frozen=True, slots=True)
class Introspection:
    """Implements `VirtualRows` with a node's services."""

    services: Services
    database: str
    user: str
    variables: SessionVariables = field(default_factory=SessionVariables)

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        return await _BY_ID[descriptor.id].read(
            IntrospectionContext(self.services, self.user, self.database, reader, self.variables)
        )
