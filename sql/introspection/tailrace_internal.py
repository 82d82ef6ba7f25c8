"""The schema `tailrace_internal`: leases, nodes, jobs, schema changes and sizes, and
what functions of PostgreSQL look up.

    SELECT * FROM tailrace_internal.leases WHERE table_name = 'orders'
    SELECT * FROM tailrace_internal.lease_waits      -- schema changes that wait, on this node

    pg_relation_size('orders')          the rows of a table, or the entries of an index, in `sizes`
    pg_total_relation_size('orders')    with its indexes
    'orders'::regclass                  a row of `spellings`: class, orders, 104

Timestamps are the store's own (INT8), as `AS OF SYSTEM TIME $1` takes them. Sizes are of all
versions that garbage collection has left, before the engine compresses them; they are NULL where
the store is in another process, and where it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...catalog.descriptors.elements import ElementState
from ...catalog.descriptors.sequence_value import decode_value
from ...catalog.descriptors.system_tables import JOBS
from ...catalog.jobs import JobRecord
from ...catalog.jobs.record import decode_progress as decode_saved
from ...catalog.jobs.record import progress_key
from ...catalog.leases import LeaseRow, SessionRow
from ...catalog.leases.waits import held_since
from ...catalog.rights.privileges import Privilege, securable
from ...catalog.rights.rights import read_rights
from ...catalog.rights.users import ROOT
from ...catalog.schema_change.job import JOB_KIND
from ...catalog.schema_change.payload import decode_change, decode_progress
from ...catalog.schema_change.status import status_of
from ...catalog.store.lease_rows import LEASES, SESSIONS
from ...catalog.values.column_types import Datum
from ...changefeed import JobSummary
from ...kvlayer.clock import MAX_TIMESTAMP, format_timestamp
from ...kvlayer.keys import index_span
from ...kvlayer.ranges import RangedStore
from ...kvlayer.span import Span
from ..analyze.calls.oids import index_oid
from ..results.as_of import datetime_of
from ..results.client_types import ALL_ROWS, user_array_oid, user_type_oid
from ..results.results import Row, result_columns
from ..runtime.services import sees
from . import described
from .pg_catalog.namespaces import namespace_rows
from .pg_catalog.relations import class_rows
from .type_rows import user_types
from .virtual_table import TAILRACE_INTERNAL, IntrospectionContext, Rows


@TAILRACE_INTERNAL.table("""leases 2
    table_id:i table_name version:i newest_version:i node_id:i session_id since:i expiration:i
    live:b""")
async def _leases(context: IntrospectionContext) -> Rows:
    """A lease ends with its session, or earlier where it has an end of its own."""
    reader = context.reader
    sessions = await _sessions(context)
    ends = {row.session_id: row.expiration for row in sessions}
    names: dict[int, tuple[str, int]] = {}
    for key, body in await reader.scan(LEASES):
        lease = LeaseRow.decode(key, body)
        if lease.descriptor_id not in names:
            found = await context.services.catalog.descriptors.read(reader, lease.descriptor_id)
            assert found is not None, lease
            names[lease.descriptor_id] = found.name, found.version
        name, newest = names[lease.descriptor_id]
        stored = await reader.get_with_timestamp(key)
        assert stored is not None, "one transaction reads alike"
        end = min(lease.expiration, ends.get(lease.session_id, 0))
        yield (
            lease.descriptor_id, name, lease.version, newest, lease.node_id, lease.session_id,
            int(await held_since(context.services.store, lease, stored[1])),
            None if end == MAX_TIMESTAMP else int(end), end > reader.read_timestamp,
        )  # fmt: skip


async def _sessions(context: IntrospectionContext) -> list[SessionRow]:
    return [SessionRow.decode(*row) for row in await context.reader.scan(SESSIONS)]


@TAILRACE_INTERNAL.table("nodes 3 node_id:i session_id epoch:i expiration:i live:b")
async def _nodes(context: IntrospectionContext) -> Rows:
    at = context.reader.read_timestamp
    for row in await _sessions(context):
        yield (row.node_id, row.session_id, row.epoch, int(row.expiration), row.alive_at(at))


@TAILRACE_INTERNAL.table("""lease_waits 4
    table_id:i waits_for waiting_since:i holder_node_id:i holder_session_id holder_version:i
    held_since:i session_expiration:i""")
async def _lease_waits(context: IntrospectionContext) -> Rows:
    for wait in context.services.leases.waits.under_way():
        for holder in wait.holders:
            yield (
                wait.descriptor_id, wait.kind.value, int(wait.since), holder.node_id,
                holder.session_id, holder.version, int(holder.since),
                int(holder.session_expiration),
            )  # fmt: skip


_JOBS = """
    job_id:i job_type description status running_status created:t started:t finished:t modified:t
    error"""
_FEED_JOBS = """
    job_id:i description user_name status running_status created:t started:t finished:t modified:t
    high_water_timestamp readable_high_water_timestamptz:t error sink_uri full_table_names topics
    format lag_seconds:f catch_up_seconds:f"""
JOB_COLUMNS, FEED_JOB_COLUMNS = result_columns(_JOBS), result_columns(_FEED_JOBS)
"""What SHOW JOBS and SHOW CHANGEFEED JOBS print, and the columns of the tables of the same rows:
`SELECT … FROM [SHOW CHANGEFEED JOBS]` reads `tailrace_internal.changefeed_jobs`."""


def job_rows(jobs: Sequence[JobSummary]) -> Sequence[Row]:
    """A row of JOB_COLUMNS for each."""
    return [
        (
            job.id, job.kind, job.description, job.state, job.running_status, job.created,
            job.started, job.finished, job.modified, job.error,
        )
        for job in jobs
    ]  # fmt: skip


def changefeed_rows(jobs: Sequence[JobSummary]) -> Sequence[Row]:
    """A row of FEED_JOB_COLUMNS for each."""
    return [
        (
            job.id, job.description, job.user_name, job.state, job.running_status, job.created,
            job.started, job.finished, job.modified,
            None if job.resolved is None else format_timestamp(job.resolved),
            None if job.resolved is None else datetime_of(job.resolved), job.error, job.sink,
            job.tables, job.topics, job.format, job.lag_seconds, job.catch_up_seconds,
        )
        for job in jobs
    ]  # fmt: skip


@TAILRACE_INTERNAL.table(f"jobs 8 {_JOBS}")
async def job_table_rows(context: IntrospectionContext) -> Rows:
    for row in job_rows(await _seen(context, changefeeds_only=False)):
        yield row


@TAILRACE_INTERNAL.table(f"changefeed_jobs 9 {_FEED_JOBS}")
async def changefeed_job_rows(context: IntrospectionContext) -> Rows:
    for row in changefeed_rows(await _seen(context, changefeeds_only=True)):
        yield row


async def _seen(context: IntrospectionContext, *, changefeeds_only: bool) -> Sequence[JobSummary]:
    rights = await read_rights(context.reader)
    jobs = await context.services.jobs.list(changefeeds_only=changefeeds_only)
    return [job for job in jobs if sees(rights, context.user, job.owner)]


@TAILRACE_INTERNAL.table("""schema_changes 20
    job_id:i table_id:i table_name statement state stage:i stage_count:i doing undoing:b
    rows_done:i waiting_for waiting_since:i""")
async def schema_change_rows(context: IntrospectionContext) -> Rows:
    services, reader = context.services, context.reader
    waits = {wait.descriptor_id: wait for wait in services.leases.waits.under_way()}
    for key, body in await reader.scan(JOBS.primary_span):
        job = JobRecord.decode(key, body)
        if job.kind != JOB_KIND:
            continue
        change, saved_at = decode_change(job.payload), progress_key(job.id)
        saved = await reader.get(saved_at)
        progress = decode_progress(None if saved is None else decode_saved(saved_at, saved), change)
        status = status_of(change, progress)
        if not status.stage_count:  # only the job is to finish
            continue
        table = await services.catalog.descriptors.read(reader, change.table_id)
        wait = waits.get(change.table_id)
        holders = () if wait is None else wait.holders
        yield (
            job.id, change.table_id, None if table is None else table.name, job.description,
            job.state.value, status.stage, status.stage_count, status.doing, status.undoing,
            status.row_count, "; ".join(map(str, holders)) or job.running_status,
            int(wait.since) if wait is not None and holders else None,
        )  # fmt: skip


@TAILRACE_INTERNAL.table("sizes 41 oid:i main_bytes:i total_bytes:i")
async def size_rows(context: IntrospectionContext) -> Rows:
    """A row for each table and view, with all its indexes in the total, and for each index."""
    for found in await described.relations(context):
        table = found.table
        if table.view is not None:
            yield (table.id, 0, 0)  # no rows of it are stored
            continue
        main = await _bytes(context, index_span(table.id, table.primary_index.id))
        of_indexes = [
            (index, await _bytes(context, index_span(table.id, index.id)))
            for index in table.indexes
            if index.state is ElementState.PUBLIC
        ]
        yield (table.id, main, _total([main, *(size for _, size in of_indexes)]))
        yield (index_oid(table.id, table.primary_index.id), main, main)
        for index, size in of_indexes:
            yield (index_oid(table.id, index.id), size, size)


@TAILRACE_INTERNAL.table("database_sizes 42 oid:i name bytes:i")
async def database_size_rows(context: IntrospectionContext) -> Rows:
    for name, id in await context.services.catalog.descriptors.children(context.reader, 0, 0):
        within = replace(context, database=name)
        sizes = [
            await _bytes(context, index_span(found.table.id, index.id))
            for found in await described.tables(within)
            for index in (found.table.primary_index, *found.table.indexes)
        ]
        yield (id, name, _total(sizes))


async def _bytes(context: IntrospectionContext, span: Span) -> int | None:
    store = context.services.store
    return await store.span_bytes(span) if isinstance(store, RangedStore) else None


def _total(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


VISIBLE = ("pg_catalog", "public")
"""Schemas whose relations need no prefix."""


@TAILRACE_INTERNAL.table("spellings 40 kind name oid:i")
async def spelling_rows(context: IntrospectionContext) -> Rows:
    namespaces: dict[Datum, str] = {row[0]: str(row[1]) async for row in namespace_rows(context)}
    named: list[Row] = [("namespace", name, oid) for oid, name in namespaces.items()]
    async for row in class_rows(context):
        oid, name, schema = row[0], str(row[1]), namespaces[row[2]]
        named += [("class", spelled, oid) for spelled in _qualified(schema, name)]
        named.append(("class", f"{context.database}.{schema}.{name}", oid))
    named += await _types(context, namespaces)
    numbered = dict.fromkeys((kind, str(oid), oid) for kind, _, oid in named)
    for row in (*named, *numbered):
        yield row


def _qualified(schema: str, name: str) -> Iterator[str]:
    if schema in VISIBLE:
        yield name
    yield f"{schema}.{name}"


async def _types(context: IntrospectionContext, schemas: dict[Datum, str]) -> list[Row]:
    found: list[Row] = []
    for row in ALL_ROWS:
        for word in (*dict.fromkeys((row.name, row.words)), f"pg_catalog.{row.name}"):
            found.append(("type", word, row.oid))
            found += [("type", f"{word}[]", row.array)] if row.array else []
        if not row.array:
            continue
        found += [("type", name, row.array) for name in _qualified("pg_catalog", f"_{row.name}")]
    for type in await user_types(context):
        schema, array = schemas[type.schema_id], user_array_oid(type.id)
        for word in _qualified(schema, type.name):
            found += [("type", word, user_type_oid(type.id)), ("type", f"{word}[]", array)]
        found += [("type", name, array) for name in _qualified(schema, f"_{type.name}")]
    return found


@TAILRACE_INTERNAL.table("sequences 7 oid:i last_value:i is_called:b")
async def sequence_value_rows(context: IntrospectionContext) -> Rows:
    """Rows of a sequence read as a relation, for users with a right on it. A sequence without
    draws has its start value."""
    rights = await read_rights(context.reader)
    for _, found in await described.sequences(context):
        if context.user == ROOT or rights.held(context.user, securable(found)) & _READING:
            body = await context.reader.get(found.key)
            value = (found.options.start, False) if body is None else decode_value(body)
            yield (found.id, *value)


_READING = Privilege.USAGE | Privilege.SELECT
