"""What statements need of virtual tables: to find them by name, to list them, to read one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from .introspection_context import IntrospectedTable, IntrospectionContext


class ReadTable(IntrospectedTable, Protocol):
    """A virtual table that can be read."""

    @property
    def descriptor(self) -> TableDescriptor:
        """As the binder and the planner see it."""
        ...

    async def read(self, context: IntrospectionContext) -> pa.Table:
        """Its rows, made now."""
        ...


class VirtualTables(Protocol):
    """Virtual tables by schema and name. Every database has them all."""

    def find(self, parts: Sequence[str]) -> TableDescriptor | None:
        """The table of a name as written; None where the name is not of a virtual schema.

        Raises SQLError 42P01 for a table that such a schema lacks.
        """
        ...

    def of(self, descriptor: TableDescriptor) -> ReadTable: ...

    def __iter__(self) -> Iterator[ReadTable]: ...
