"""Jobs as rows: what SHOW JOBS and SHOW CHANGEFEED JOBS print, and tables of the same in FROM.

`SELECT … FROM [SHOW CHANGEFEED JOBS]` reads `tailrace_internal.changefeed_jobs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.rights.rights import read_rights
from ...kvlayer.clock import format_timestamp
from ..results.as_of import datetime_of
from ..results.results import Row, typed_columns
from ..runtime.introspection_context import IntrospectionContext
from ..runtime.jobs import JobSummary, sees

JOB_COLUMNS = typed_columns(
    "job_id:i job_type description status running_status created:t started:t finished:t modified:t "
    "error"
)

FEED_JOB_COLUMNS = typed_columns(
    "job_id:i description user_name status running_status created:t started:t finished:t "
    "modified:t high_water_timestamp readable_high_water_timestamptz:t error sink_uri "
    "full_table_names topics format lag_seconds:f catch_up_seconds:f"
)
"""The anchor's columns, and how late each feed is."""


def job_rows(jobs: Sequence[JobSummary]) -> Sequence[Row]:
    """A row of JOB_COLUMNS for each."""
    return [
        (
            job.id,
            job.kind,
            job.description,
            job.state,
            job.running_status,
            job.created,
            job.started,
            job.finished,
            job.modified,
            job.error,
        )
        for job in jobs
    ]


def changefeed_rows(jobs: Sequence[JobSummary]) -> Sequence[Row]:
    """A row of FEED_JOB_COLUMNS for each."""
    return [
        (
            job.id,
            job.description,
            job.user_name,
            job.state,
            job.running_status,
            job.created,
            job.started,
            job.finished,
            job.modified,
            None if job.resolved is None else format_timestamp(job.resolved),
            None if job.resolved is None else datetime_of(job.resolved),
            job.error,
            job.sink,
            job.tables,
            job.topics,
            job.format,
            job.lag_seconds,
            job.catch_up_seconds,
        )
        for job in jobs
    ]


async def job_table_rows(context: IntrospectionContext) -> Sequence[Row]:
    return job_rows(await _seen(context, changefeeds_only=False))


async def changefeed_job_rows(context: IntrospectionContext) -> Sequence[Row]:
    return changefeed_rows(await _seen(context, changefeeds_only=True))


async def _seen(context: IntrospectionContext, *, changefeeds_only: bool) -> Sequence[JobSummary]:
    rights = await read_rights(context.reader)
    jobs = await context.services.jobs.list(changefeeds_only=changefeeds_only)
    return [job for job in jobs if sees(rights, context.user, job)]
