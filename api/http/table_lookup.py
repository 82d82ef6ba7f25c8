"""The table that a path names."""

from __future__ import annotations

from ...catalog.catalog import unknown_table
from ...catalog.descriptor import TableDescriptor
from ...catalog.names import TableName
from ...kvlayer.clock import Timestamp
from ..node import Node


async def find_table(
    node: Node, table: str, database: str, at: Timestamp | None = None
) -> TableDescriptor:
    """The table as of `at`, or now: by its name, which dots may qualify, or by its id.

    Raises SQLError 42P01, 3D000 or 3F000.
    """
    moment = await node.store.now() if at is None else at
    if table.isdecimal():
        found = await node.services.catalog.descriptors.read_at(int(table), moment)
        if isinstance(found, TableDescriptor) and not found.dropped:
            return found
    name = TableName.resolve(table.split("."), current_database=database)
    descriptor = await node.services.catalog.find(node.store.snapshot(moment), name)
    if descriptor is None:
        raise unknown_table(name)
    return descriptor
