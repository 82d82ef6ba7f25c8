"""Jobs as rows: what SHOW JOBS and SHOW CHANGEFEED JOBS print, and tables of the same in FROM.

`SELECT … FROM [SHOW CHANGEFEED JOBS]` reads `tailrace_internal.changefeed_jobs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.rights.rights import read_rights
from ...kvlayer.clock import format_timestamp
from ..results.as_of import datetime_of
from ..results.results import FLOAT8, INT8, STRING, TIMESTAMPTZ, Row
from ..runtime.introspection_context import IntrospectionContext
from ..runtime.jobs import JobSummary, sees
from .virtual_table import VirtualTable, virtual_columns

JOB_COLUMNS = virtual_columns(
    job_id=INT8,
    job_type=STRING,
    description=STRING,
    status=STRING,
    running_status=STRING,
    created=TIMESTAMPTZ,
    started=TIMESTAMPTZ,
    finished=TIMESTAMPTZ,
    modified=TIMESTAMPTZ,
    error=STRING,
)

FEED_JOB_COLUMNS = virtual_columns(
    job_id=INT8,
    description=STRING,
    user_name=STRING,
    status=STRING,
    running_status=STRING,
    created=TIMESTAMPTZ,
    started=TIMESTAMPTZ,
    finished=TIMESTAMPTZ,
    modified=TIMESTAMPTZ,
    high_water_timestamp=STRING,
    readable_high_water_timestamptz=TIMESTAMPTZ,
    error=STRING,
    sink_uri=STRING,
    full_table_names=STRING,
    topics=STRING,
    format=STRING,
    lag_seconds=FLOAT8,
    catch_up_seconds=FLOAT8,
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


async def _jobs(context: IntrospectionContext) -> Sequence[Row]:
    return job_rows(await _seen(context, changefeeds_only=False))


async def _changefeed_jobs(context: IntrospectionContext) -> Sequence[Row]:
    return changefeed_rows(await _seen(context, changefeeds_only=True))


async def _seen(context: IntrospectionContext, *, changefeeds_only: bool) -> Sequence[JobSummary]:
    rights = await read_rights(context.reader)
    jobs = await context.services.jobs.list(changefeeds_only=changefeeds_only)
    return [job for job in jobs if sees(rights, context.user, job)]


JOBS = (
    VirtualTable(id=-108, schema="tailrace_internal", name="jobs", columns=JOB_COLUMNS, rows=_jobs),
    VirtualTable(
        id=-109,
        schema="tailrace_internal",
        name="changefeed_jobs",
        columns=FEED_JOB_COLUMNS,
        rows=_changefeed_jobs,
    ),
)
