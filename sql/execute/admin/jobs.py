"""Jobs and schedules, as statements show and control them. Users see and control their own, and
those of others as VIEWJOB and CONTROLJOB say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.rights.rights import Rights
from ....catalog.rights.users import ROOT
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ....changefeed import JOB_KIND as CHANGEFEED_KIND
from ...introspection.tailrace_internal import (
    FEED_JOB_COLUMNS,
    JOB_COLUMNS,
    changefeed_rows,
    job_rows,
)
from ...plan.needs import missing, needs_on
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.authorization import Actor, require
from ...runtime.jobs import JobSummary, sees
from ...runtime.services import Services
from ...syntax.changefeed_statements import ShowSchedules
from ...syntax.statements import AwaitJobs, ControlJobs, JobAction, ShowJobs, VerifyChangefeed
from ..query.result_shape import VERIFY_COLUMNS
from .replications import replication_jobs


def _unknown(job_id: int) -> SQLError:
    return SQLError("42704", f"job with ID {job_id} does not exist")


async def show_jobs(actor: Actor, statement: ShowJobs) -> Result:
    """Raises SQLError 42704 for a job that is not there, or is not shown to the user."""
    services, rights = actor.services, await actor.rights()
    if statement.job_id is None:
        jobs = await services.jobs.list(changefeeds_only=statement.changefeeds_only)
    else:
        jobs = await services.jobs.find([statement.job_id])
        if statement.changefeeds_only:
            jobs = [job for job in jobs if job.kind == CHANGEFEED_KIND]
    jobs = [job for job in jobs if sees(rights, actor.user, job.owner)]
    if statement.job_id is not None and not jobs:
        raise _unknown(statement.job_id)
    if not statement.changefeeds_only:
        return listing("SHOW JOBS", JOB_COLUMNS, job_rows(jobs))
    columns, rows = FEED_JOB_COLUMNS, changefeed_rows(jobs)
    if statement.watched:
        columns = columns | typed_columns("watched_tables")
        rows = [(*row, job.watched) for row, job in zip(rows, jobs, strict=True)]
    return listing("SHOW JOBS", columns, rows)


async def await_jobs(services: Services, statement: AwaitJobs, user: str) -> Result:
    """The jobs, when all of them are over. Raises SQLError 42704 for one that the user does not
    see."""
    rights = services.rights.current
    found = {job.id: job for job in await services.jobs.find(statement.job_ids)}
    for job_id in statement.job_ids:
        if job_id not in found or not sees(rights, user, found[job_id].owner):
            raise _unknown(job_id)
    await services.jobs.completed(statement.job_ids)
    rows = job_rows(await services.jobs.find(statement.job_ids))
    return listing("SHOW JOBS", JOB_COLUMNS, rows)


def named_jobs(found: Result) -> tuple[int, ...]:
    """The jobs that the query of PAUSE JOBS (SELECT …) and its kin finds, each once.

    Raises SQLError 42601 and 42804 where it does not return ids of jobs.
    """
    if len(found.columns) != 1:
        raise SQLError("42601", "the query must return one column, the ids of jobs")
    ids = dict.fromkeys(row[0] for row in found.fetch_rows() if row[0] is not None)
    if found.columns[0].type.kind is not TypeKind.INT8:
        name = found.columns[0].type.sql_name
        raise SQLError("42804", f"the query must return the ids of jobs, not {name}")
    return tuple(job_id for job_id in ids if isinstance(job_id, int))


async def show_schedules(actor: Actor, statement: ShowSchedules) -> Result:
    rights = await actor.rights()
    found = [
        each
        for each in await actor.services.jobs.schedules()
        if sees(rights, actor.user, each.owner)
        and statement.paused in (None, each.paused)
        and statement.schedule_id in (None, each.id)
    ]
    if statement.schedule_id is not None and not found:
        raise SQLError("42704", f"schedule with ID {statement.schedule_id} does not exist")
    rows: list[Row] = [
        (
            each.id, each.label, "PAUSED" if each.paused else "ACTIVE", each.next_run,
            each.error or None, each.crontab, each.run or None, each.owner, each.created,
            each.description,
        )
        for each in found
    ]  # fmt: skip
    columns = (
        "id:i label schedule_status next_run:t state recurrence running_job_id:i owner created:t "
        "command"
    )
    return listing("SHOW SCHEDULES", columns, rows)


# Control


async def control_jobs(services: Services, statement: ControlJobs, user: str) -> Result:
    """Raises SQLError 42501 for a job of another user, where CONTROLJOB is missing."""
    if statement.replication is not None:
        found = await replication_jobs(services, statement.replication, user)
        statement = replace(statement, job_ids=tuple(found), replication=None)
    rights = services.rights.current
    if statement.schedules:
        await _check_schedules(services, statement.job_ids, user)
    resumes = statement.action is JobAction.RESUME
    if resumes or not rights.admin(user):
        jobs = {job.id: job for job in await services.jobs.find(statement.job_ids)}
        for job_id in statement.job_ids:
            check_control(rights, user, job_id, jobs.get(job_id))
            if resumes and job_id in jobs:
                await _check_owner(services, rights, jobs[job_id])
    for job_id in statement.job_ids:
        await services.jobs.control(job_id, statement.action)
    count, tag = len(statement.job_ids), f"{statement.action.value} JOBS"
    if statement.schedules:
        dropped = statement.action is JobAction.CANCEL
        tag = "DROP SCHEDULES" if dropped else f"{statement.action.value} SCHEDULES"
    return Result(tag=f"{tag} {count}", row_count=count)


async def _check_schedules(services: Services, ids: Sequence[int], user: str) -> None:
    """Raises SQLError 42704 where one is no schedule, or one that the user does not see."""
    rights = services.rights.current
    found = {each.id: each for each in await services.jobs.schedules()}
    for schedule_id in ids:
        schedule = found.get(schedule_id)
        if schedule is None or not sees(rights, user, schedule.owner):
            raise SQLError(
                "42704",
                f"schedule with ID {schedule_id} does not exist",
                hint="SHOW SCHEDULES lists them.",
            )


async def _check_owner(services: Services, rights: Rights, job: JobSummary) -> None:
    """Whether a feed's owner may still make it: who resumes it does not lend it rights.

    A table that is gone is for the feed itself to tell of. Raises SQLError 42501.
    """
    for table in await _tables_of(services, job):
        needs = tuple(needs_on(table, int(Privilege.CHANGEFEED)))
        if not table.dropped and missing(rights, job.owner, needs) is not None:
            raise SQLError(
                "42501",
                f"changefeed {job.id} cannot be resumed: its owner {job.owner} does not have "
                f"CHANGEFEED privilege on relation {table.name}",
                hint=f"GRANT CHANGEFEED ON TABLE {table.name} TO {job.owner}, "
                f"or CANCEL JOB {job.id}.",
            )


async def _tables_of(services: Services, job: JobSummary) -> list[TableDescriptor]:
    """The tables of a feed as they are now, as far as there is a descriptor of them."""
    at = await services.store.now()
    read_at = services.catalog.descriptors.read_at
    found = [await read_at(table_id, at) for table_id in job.table_ids]
    return [table for table in found if isinstance(table, TableDescriptor)]


async def verify_changefeed(actor: Actor, statement: VerifyChangefeed) -> Result:
    """A row for each row that differs. Raises SQLError 42501 and 42704 as for PAUSE JOB.

    The result holds keys, so whoever does not own the feed needs SELECT on its tables, too.
    """
    services = actor.services
    job_ids: Sequence[int] = [statement.job_id]
    if statement.replication is not None:
        job_ids = await replication_jobs(services, statement.replication, actor.user)
    rows: list[Row] = []
    notes: list[str] = []
    for job_id in job_ids:  # each task compares its own keys
        await check_controls_feed(services, actor.user, job_id)
        verified = await services.jobs.verify(
            job_id, at_resolved=statement.at_resolved, repairs=statement.repairs
        )
        rows += [(each.shown_table, each.shown_key, each.what) for each in verified.differences]
        notes += verified.notes
    found = listing(f"VERIFY CHANGEFEED {len(rows)}", VERIFY_COLUMNS, rows)
    return replace(found, notice="; ".join(notes) or None)


# Rights


async def check_sees_job(services: Services, user: str, job_id: int) -> Sequence[JobSummary]:
    """The job of that id. Raises SQLError 42704 where the user sees no such job in SHOW JOBS."""
    rights = services.rights.current
    jobs = await services.jobs.find([job_id])
    if not (rights.admin(user) or any(sees(rights, user, job.owner) for job in jobs)):
        raise _unknown(job_id)
    return jobs


async def check_reads_feed(services: Services, user: str, job_id: int) -> None:
    """Raises SQLError 42704 where the user sees no such job in SHOW JOBS, and 42501 as
    `_check_keys`."""
    await _check_keys(services, user, await check_sees_job(services, user, job_id))


async def check_controls(services: Services, user: str, job_id: int) -> Sequence[JobSummary]:
    """The job of that id, of which admins need not ask. Raises SQLError 42501 and 42704 as for
    PAUSE JOB."""
    rights = services.rights.current
    if rights.admin(user):
        return ()
    jobs = await services.jobs.find([job_id])
    check_control(rights, user, job_id, jobs[0] if jobs else None)
    return jobs


async def check_controls_feed(services: Services, user: str, job_id: int) -> None:
    """Raises SQLError as `check_controls`, and 42501 as `_check_keys`."""
    await _check_keys(services, user, await check_controls(services, user, job_id))


async def _check_keys(services: Services, user: str, jobs: Sequence[JobSummary]) -> None:
    """Raises SQLError 42501 where another user's feed is of tables that this one may not SELECT:
    what is told of it holds keys."""
    rights = services.rights.current
    for job in jobs:
        if not rights.admin(user) and job.owner not in rights.roles_of(user):
            for table in await _tables_of(services, job):
                await require(services, user, tuple(needs_on(table, int(Privilege.SELECT))))


def check_control(rights: Rights, user: str, job_id: int, job: JobSummary | None) -> None:
    """Raises SQLError 42501 for a job that the user may not control, and the error of a missing
    job for one that the user may not see. Of a job that is not there the registry tells admins."""
    held = rights.held(user, SYSTEM)
    owner = ROOT if job is None else job.owner
    if rights.admin(user) or (job is not None and owner in rights.roles_of(user)):
        return
    if job is not None and held & Privilege.CONTROLJOB and not rights.admin(owner):
        return
    if not held & (Privilege.CONTROLJOB | Privilege.VIEWJOB):
        raise _unknown(job_id)
    if job is not None:
        raise SQLError(
            "42501",
            f"user {user} may not control job {job_id} of {owner}",
            hint="CONTROLJOB is for the jobs of users that are no admins.",
        )
