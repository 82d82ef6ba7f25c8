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
from ..results.results import Row
from ..runtime.introspection_context import IntrospectionContext
from .jobs import FEED_JOB_COLUMNS, JOB_COLUMNS, changefeed_job_rows, job_table_rows
from .pg_catalog.functions import function_texts
from .pg_catalog.relations import definition_rows
from .rights import grant_rows, role_closure_rows
from .schema_changes import schema_change_rows
from .sequences import sequence_value_rows
from .sizes import database_size_rows, size_rows
from .spellings import spelling_rows
from .virtual_table import RowSource, VirtualTable, virtual_tables

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


_TABLES = """
descriptors 1
    id:i name kind database_id:i schema_id:i version:i modification_time:i state locked:b
leases 2
    table_id:i table_name version:i newest_version:i node_id:i session_id since:i expiration:i
    live:b
nodes 3
    node_id:i session_id epoch:i expiration:i live:b
lease_waits 4
    table_id:i waits_for waiting_since:i holder_node_id:i holder_session_id holder_version:i
    held_since:i session_expiration:i
definitions 5
    oid:i class_oid:i definition
functions 6
    oid:i arguments result
sequences 7
    oid:i last_value:i is_called:b
schema_changes 20
    job_id:i table_id:i table_name statement state stage:i stage_count:i doing undoing:b
    rows_done:i waiting_for waiting_since:i
grants 30
    object_id:i kind name full_name grantee privilege grantable:b
role_closure 31
    member member_oid:i role
spellings 40
    kind name oid:i
sizes 41
    oid:i main_bytes:i total_bytes:i
database_sizes 42
    oid:i name bytes:i
"""
_ROWS: dict[str, RowSource] = {
    "descriptors": _descriptors,
    "leases": _leases,
    "nodes": _nodes,
    "lease_waits": _lease_waits,
    "definitions": definition_rows,
    "functions": function_texts,
    "sequences": sequence_value_rows,
    "schema_changes": schema_change_rows,
    "grants": grant_rows,
    "role_closure": role_closure_rows,
    "spellings": spelling_rows,
    "sizes": size_rows,
    "database_sizes": database_size_rows,
}

TAILRACE_INTERNAL = (
    *virtual_tables(SCHEMA, -100, _TABLES, _ROWS),
    VirtualTable(-108, SCHEMA, "jobs", JOB_COLUMNS, job_table_rows),
    VirtualTable(-109, SCHEMA, "changefeed_jobs", FEED_JOB_COLUMNS, changefeed_job_rows),
)
