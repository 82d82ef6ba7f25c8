"""The schema `tailrace_internal`: descriptors, leases, nodes, and who waits for whom.

    SELECT * FROM tailrace_internal.leases WHERE table_name = 'orders'
    SELECT * FROM tailrace_internal.lease_waits      -- schema changes that wait, on this node

Timestamps are the store's own (INT8), as `AS OF SYSTEM TIME $1` takes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import DESCRIPTOR
from ...catalog.leases import LeaseRow, SessionRow
from ...catalog.leases.rows import LEASES, SESSIONS
from ...catalog.leases.waits import held_since
from ...catalog.store.descriptor_store import decode_stored
from ...kvlayer.clock import MAX_TIMESTAMP
from ..results.results import BOOL, INT8, STRING, Row
from ..runtime.introspection_context import IntrospectionContext
from .pg_catalog.functions import function_texts
from .pg_catalog.relations import definition_rows
from .sequences import sequence_value_rows
from .virtual_table import VirtualTable, virtual_columns

SCHEMA = "tailrace_internal"


async def _descriptors(context: IntrospectionContext) -> Sequence[Row]:
    rows: list[Row] = []
    for key, _ in await context.reader.scan(DESCRIPTOR.primary_span):
        stored = await context.reader.get_with_timestamp(key)
        assert stored is not None, "one transaction reads alike"
        descriptor = decode_stored(key, *stored)
        table = descriptor if isinstance(descriptor, TableDescriptor) else None
        rows.append(
            (
                descriptor.id,
                descriptor.name,
                type(descriptor).__name__.removesuffix("Descriptor").lower(),
                descriptor.parent_id,
                descriptor.parent_schema_id,
                descriptor.version,
                int(descriptor.modification_time),
                descriptor.state.value,
                None if table is None else table.locked,
            )
        )
    return rows


async def _leases(context: IntrospectionContext) -> Sequence[Row]:
    """A lease ends with its session, or earlier where it has an end of its own."""
    reader = context.reader
    sessions = await _sessions(context)
    ends = {row.session_id: row.expiration for row in sessions}
    names: dict[int, tuple[str, int]] = {}
    rows: list[Row] = []
    for key, body in await reader.scan(LEASES):
        lease = LeaseRow.decode(key, body)
        if lease.descriptor_id not in names:
            names[lease.descriptor_id] = await _newest(context, lease.descriptor_id)
        name, newest = names[lease.descriptor_id]
        stored = await reader.get_with_timestamp(key)
        assert stored is not None, "one transaction reads alike"
        end = min(lease.expiration, ends.get(lease.session_id, 0))
        rows.append(
            (
                lease.descriptor_id,
                name,
                lease.version,
                newest,
                lease.node_id,
                lease.session_id,
                int(await held_since(context.services.store, lease, stored[1])),
                None if end == MAX_TIMESTAMP else int(end),
                end > reader.read_timestamp,
            )
        )
    return rows


async def _newest(context: IntrospectionContext, descriptor_id: int) -> tuple[str, int]:
    found = await context.services.catalog.descriptors.read(context.reader, descriptor_id)
    assert found is not None, descriptor_id
    return found.name, found.version


async def _sessions(context: IntrospectionContext) -> list[SessionRow]:
    return [SessionRow.decode(*row) for row in await context.reader.scan(SESSIONS)]


async def _nodes(context: IntrospectionContext) -> Sequence[Row]:
    at = context.reader.read_timestamp
    return [
        (row.node_id, row.session_id, row.epoch, int(row.expiration), row.alive_at(at))
        for row in await _sessions(context)
    ]


async def _lease_waits(context: IntrospectionContext) -> Sequence[Row]:
    return [
        (
            wait.descriptor_id,
            wait.kind.value,
            int(wait.since),
            holder.node_id,
            holder.session_id,
            holder.version,
            int(holder.since),
            int(holder.session_expiration),
        )
        for wait in context.services.leases.waits.under_way()
        for holder in wait.holders
    ]


TAILRACE_INTERNAL = (
    VirtualTable(
        id=-101,
        schema=SCHEMA,
        name="descriptors",
        columns=virtual_columns(
            id=INT8,
            name=STRING,
            kind=STRING,
            database_id=INT8,
            schema_id=INT8,
            version=INT8,
            modification_time=INT8,
            state=STRING,
            locked=BOOL,
        ),
        rows=_descriptors,
    ),
    VirtualTable(
        id=-102,
        schema=SCHEMA,
        name="leases",
        columns=virtual_columns(
            table_id=INT8,
            table_name=STRING,
            version=INT8,
            newest_version=INT8,
            node_id=INT8,
            session_id=STRING,
            since=INT8,
            expiration=INT8,
            live=BOOL,
        ),
        rows=_leases,
    ),
    VirtualTable(
        id=-103,
        schema=SCHEMA,
        name="nodes",
        columns=virtual_columns(
            node_id=INT8, session_id=STRING, epoch=INT8, expiration=INT8, live=BOOL
        ),
        rows=_nodes,
    ),
    VirtualTable(
        id=-104,
        schema=SCHEMA,
        name="lease_waits",
        columns=virtual_columns(
            table_id=INT8,
            waits_for=STRING,
            waiting_since=INT8,
            holder_node_id=INT8,
            holder_session_id=STRING,
            holder_version=INT8,
            held_since=INT8,
            session_expiration=INT8,
        ),
        rows=_lease_waits,
    ),
    VirtualTable(
        id=-105,
        schema=SCHEMA,
        name="definitions",
        columns=virtual_columns(oid=INT8, class_oid=INT8, definition=STRING),
        rows=definition_rows,
    ),
    VirtualTable(
        id=-106,
        schema=SCHEMA,
        name="functions",
        columns=virtual_columns(oid=INT8, arguments=STRING, result=STRING),
        rows=function_texts,
    ),
    VirtualTable(
        id=-107,
        schema=SCHEMA,
        name="sequences",
        columns=virtual_columns(oid=INT8, last_value=INT8, is_called=BOOL),
        rows=sequence_value_rows,
    ),
)
