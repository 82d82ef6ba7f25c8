"""The table that a path names."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.names import TableName
from ...catalog.rights.privileges import Privilege
from ...catalog.store.catalog import unknown_table
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp
from ..node import Node
from .access import user_of, worker_of


async def moment(node: Node, at: int | None) -> Timestamp:
    """The timestamp asked for, or now. Raises HTTPException 422 for one in the future."""
    now = await node.store.now()
    if at is not None and at > now:
        raise HTTPException(422, f"timestamp {at} is in the future: the store is at {now}")
    return now if at is None else Timestamp(at)


async def find_table(
    node: Node,
    table: str,
    database: str,
    at: Timestamp | None = None,
    *,
    user: str,
    privileges: Privilege = Privilege.SELECT,
) -> TableDescriptor:
    """The table as of `at`, or now: by its name, which dots may qualify, or by its id.

    Raises SQLError 42P01, 3D000 or 3F000, and 42501 where the user lacks `privileges` on it.
    """
    found = await _find(node, table, database, at)
    await check_table(node, found, user, privileges)
    return found


async def check_table(
    node: Node,
    table: TableDescriptor,
    user: str,
    privileges: Privilege = Privilege.SELECT,
) -> None:
    """Raises SQLError 42501."""
    await node.require(user, table, privileges)


async def find_readable(
    node: Node, table: str, database: str, at: Timestamp, request: Request
) -> TableDescriptor:
    """The table or keyspace, where the request may read all of it: see `check_readable`."""
    found = await _find(node, table, database, at, keyspaces=True)
    await check_readable(node, found, request)
    return found


async def check_readable(node: Node, table: TableDescriptor, request: Request) -> None:
    """Users need SELECT. A program that writes a feed's rows has the feed's table, by the right of
    its owner to the feed. Raises SQLError 42501."""
    worker = worker_of(request)
    if worker is None:
        await check_table(node, table, user_of(request))
        return
    if table.id != worker.table_id:
        raise SQLError("42501", "the token is for the export of another table")
    await check_table(node, table, worker.user, Privilege.CHANGEFEED)


async def _find(
    node: Node,
    table: str,
    database: str,
    at: Timestamp | None = None,
    *,
    keyspaces: bool = False,
) -> TableDescriptor:
    when = await node.store.now() if at is None else at
    if table.isdecimal():
        found = await node.services.catalog.descriptors.read_at(int(table), when)
        if isinstance(found, TableDescriptor) and not found.dropped:
            return found
    name = TableName.resolve(table.split("."), current_database=database)
    descriptor = await node.services.catalog.find(
        node.store.snapshot(when), name, keyspaces=keyspaces
    )
    if descriptor is None:
        raise unknown_table(name)
    return descriptor
