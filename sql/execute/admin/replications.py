"""Replications: changefeeds into replicas, by their names."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.values.errors import SQLError
from ....kvlayer.clock import format_timestamp
from ...results.results import FLOAT8, INT8, STRING, Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.jobs import JobSummary, sees
from ...runtime.services import Services

COLUMNS = [
    ("replication_name", STRING),
    ("job_id", INT8),
    ("keyspace_name", STRING),
    ("target", STRING),
    ("status", STRING),
    ("checkpoint", STRING),
    ("lag_seconds", FLOAT8),
    ("error", STRING),
]


async def show_replications(actor: Actor) -> Result:
    """One's own; all of them for who has VIEWJOB or CONTROLJOB."""
    rights = await actor.rights()
    jobs = await replications(actor.services)
    rows = [_row(job) for job in jobs if sees(rights, actor.user, job)]
    return listing("SHOW REPLICATIONS", COLUMNS, sorted(rows, key=lambda row: (row[0], row[1])))


async def replications(services: Services) -> Sequence[JobSummary]:
    jobs = await services.jobs.list(changefeeds_only=True)
    return [job for job in jobs if job.replication is not None]


async def running_replication(services: Services, name: str) -> JobSummary | None:
    """The replication of that name which is not over."""
    return next(
        (
            job
            for job in await replications(services)
            if job.replication == name and job.finished is None
        ),
        None,
    )


async def replication_job(services: Services, name: str, user: str) -> int:
    """The job of a replication that is not over. Raises SQLError 42704."""
    job = await running_replication(services, name)
    if job is None or not sees(services.rights.current, user, job):
        raise SQLError(
            "42704",
            f'replication "{name}" does not exist',
            hint="SHOW REPLICATIONS lists them.",
        )
    return job.id


def _row(job: JobSummary) -> Row:
    checkpoint = None if job.resolved is None else format_timestamp(job.resolved)
    return (
        job.replication,
        job.id,
        job.tables,
        job.sink,
        job.state,
        checkpoint,
        job.lag_seconds,
        job.error or job.trouble,
    )
