"""Replications: changefeeds into replicas, by their names."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.values.errors import SQLError
from ....changefeed import KeyspacePart, shown_key
from ....kvlayer.clock import format_timestamp
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.jobs import JobSummary, sees
from ...runtime.services import Services
from ...syntax.keyspace_statements import ShowReplications

COLUMNS = "replication_name job_id:i keyspace_name target status checkpoint lag_seconds:f error"

TASK_COLUMNS = """
    task:i job_id:i start_key end_key node_id:i epoch:i status checkpoint lag_seconds:f rows:i
    rows_per_second:f retries:i store_lag_seconds:f capture_lag_seconds:f network_lag_seconds:f
    error"""

WORST_FIRST = ("failed", "cancel-requested", "canceled", "pause-requested", "paused", "pending")
"""States by rank: a replication whose tasks differ shows the first of these that a task is in."""


async def show_replications(actor: Actor, statement: ShowReplications) -> Result:
    """Lists the user's own replications, all of them with VIEWJOB or CONTROLJOB; or the tasks by
    their keys of one that is not over. What only the node that runs a task knows is what it saved
    last, and NULL before that."""
    if statement.tasks_of is not None:
        jobs = await running_tasks(actor.services, statement.tasks_of, actor.user)
        return listing("SHOW REPLICATION TASKS", TASK_COLUMNS, [_task_row(job) for job in jobs])
    rights = await actor.rights()
    together: dict[tuple[str | None, int], list[JobSummary]] = {}
    for job in await replications(actor.services):
        if sees(rights, actor.user, job.owner):
            # A name may be that of another one, which has ended.
            key = job.replication, job.id if job.task is None else int(job.task.created_at)
            together.setdefault(key, []).append(job)
    rows = [_row(tasks) for tasks in together.values()]
    return listing("SHOW REPLICATIONS", COLUMNS, sorted(rows, key=lambda row: (row[0], row[1])))


async def replications(services: Services) -> Sequence[JobSummary]:
    jobs = await services.jobs.list(changefeeds_only=True)
    return [job for job in jobs if job.replication is not None]


async def running_replication(services: Services, name: str) -> Sequence[JobSummary]:
    """The jobs of the replication of that name which is not over, in the order of their keys."""
    found = [
        job
        for job in await replications(services)
        if job.replication == name and job.finished is None
    ]
    return sorted(found, key=lambda job: 0 if job.task is None else job.task.number)


async def running_tasks(services: Services, name: str, user: str) -> Sequence[JobSummary]:
    """The same. Raises SQLError 42704."""
    jobs = await running_replication(services, name)
    if not jobs or not all(sees(services.rights.current, user, job.owner) for job in jobs):
        raise SQLError(
            "42704",
            f'replication "{name}" does not exist',
            hint="SHOW REPLICATIONS lists them.",
        )
    return jobs


async def replication_jobs(services: Services, name: str, user: str) -> Sequence[int]:
    """The jobs of a replication that is not over. Raises SQLError 42704."""
    return [job.id for job in await running_tasks(services, name, user)]


def _row(tasks: Sequence[JobSummary]) -> Row:
    """The row of a replication: the least checkpoint of its tasks, and the greatest lag."""
    first = tasks[0]
    lags = [job.lag_seconds for job in tasks if job.lag_seconds is not None]
    return (
        first.replication,
        min(job.id for job in tasks),
        first.tables,
        first.sink,
        _status([job.state for job in tasks]),
        _checkpoint(tasks),
        max(lags, default=None),
        next(filter(None, (job.error or job.trouble for job in tasks)), None),
    )


def _status(states: Sequence[str]) -> str:
    return next((state for state in WORST_FIRST if state in states), states[0])


def _checkpoint(tasks: Sequence[JobSummary]) -> str | None:
    resolved = [job.resolved for job in tasks if job.resolved is not None]
    return format_timestamp(min(resolved)) if len(resolved) == len(tasks) else None


def _task_row(job: JobSummary) -> Row:
    task, part = job.task, KeyspacePart() if job.task is None else job.task.part
    sending = job.sending
    lag = None if sending is None or job.state != "running" else sending.lag
    return (
        1 if task is None else task.number,
        job.id,
        shown_key(part.start) if part.start else None,
        None if part.end is None else shown_key(part.end),
        job.node_id,
        job.epoch,
        job.state,
        _checkpoint([job]),
        job.lag_seconds,
        None if sending is None else sending.rows,
        None if sending is None or job.state != "running" else sending.rows_per_second,
        None if sending is None else max(0, sending.attempts - 1),
        None if lag is None else lag.store,
        None if lag is None else lag.capture,
        None if lag is None else lag.network,
        job.error or job.trouble,
    )
