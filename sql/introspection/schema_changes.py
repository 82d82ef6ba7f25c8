"""`tailrace_internal.schema_changes`: which tables are being changed, how far that is, and whom it
waits for. One row per change that is not over."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.descriptors.system_tables import JOBS
from ...catalog.jobs import JobRecord
from ...catalog.jobs.record import decode_progress as decode_saved
from ...catalog.jobs.record import progress_key
from ...catalog.leases.waits import LeaseWait
from ...catalog.schema_change.job import JOB_KIND
from ...catalog.schema_change.payload import SchemaChange, decode_change, decode_progress
from ...catalog.schema_change.status import status_of
from ..results.results import Row
from ..runtime.introspection_context import IntrospectionContext


async def schema_change_rows(context: IntrospectionContext) -> Sequence[Row]:
    waits = {wait.descriptor_id: wait for wait in context.services.leases.waits.under_way()}
    rows: list[Row] = []
    for key, body in await context.reader.scan(JOBS.primary_span):
        job = JobRecord.decode(key, body)
        if job.kind == JOB_KIND:
            change = decode_change(job.payload)
            row = await _row(context, job, change, waits.get(change.table_id))
            if row is not None:
                rows.append(row)
    return rows


async def _row(
    context: IntrospectionContext, job: JobRecord, change: SchemaChange, wait: LeaseWait | None
) -> Row | None:
    """Returns the row of a schema change; None where every stage is done and only the job is to
    finish."""
    saved_at = progress_key(job.id)
    saved = await context.reader.get(saved_at)
    progress = decode_progress(None if saved is None else decode_saved(saved_at, saved), change)
    status = status_of(change, progress)
    if not status.stage_count:
        return None
    table = await context.services.catalog.descriptors.read(context.reader, change.table_id)
    holders = () if wait is None else wait.holders
    waiting_for = "; ".join(map(str, holders)) or job.running_status
    return (
        job.id,
        change.table_id,
        None if table is None else table.name,
        job.description,
        job.state.value,
        status.stage,
        status.stage_count,
        status.doing,
        status.undoing,
        status.row_count,
        waiting_for,
        int(wait.since) if wait is not None and holders else None,
    )
