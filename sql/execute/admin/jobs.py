"""Jobs, schedules and replications, as statements show and control them. Users see and control
their own, and those of others as VIEWJOB and CONTROLJOB say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.jobs import JobAction, JobNotFound
from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.rights.rights import Rights
from ....catalog.rights.users import ROOT
from ....catalog.rows.key_borders import pretty_key
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ....changefeed import JOB_KIND as CHANGEFEED_KIND
from ....changefeed import DeadLetter, JobSummary, KeyspacePart, shown_key
from ....kvlayer.clock import format_timestamp
from ....kvlayer.span import Span
from ...introspection.tailrace_internal import (
    FEED_JOB_COLUMNS,
    JOB_COLUMNS,
    changefeed_rows,
    job_rows,
)
from ...plan.needs import missing, needs_on
from ...results.results import Result, Row, listing, result_columns
from ...runtime.authorization import Actor, require_on
from ...runtime.services import Services, sees
from ...syntax import changefeed_statements as s
from ...syntax.changefeed_statements import ShowSchedules
from ...syntax.keyspace_statements import ShowReplications
from ...syntax.statements import AwaitJobs, ControlJobs, ShowJobs, VerifyChangefeed
from ..query.result_shape import RETRY_COLUMNS, VERIFY_COLUMNS


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
        raise JobNotFound(statement.job_id)
    if not statement.changefeeds_only:
        return listing("SHOW JOBS", JOB_COLUMNS, job_rows(jobs))
    columns, rows = FEED_JOB_COLUMNS, changefeed_rows(jobs)
    if statement.watched:
        columns += result_columns("watched_tables")
        rows = [(*row, job.watched) for row, job in zip(rows, jobs, strict=True)]
    return listing("SHOW JOBS", columns, rows)


async def await_jobs(services: Services, statement: AwaitJobs, user: str) -> Result:
    """The jobs, when all are over. Raises SQLError 42704 for one that the user does not see."""
    await seen_jobs(services, user, statement.job_ids)
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
        raise _no_schedule(statement.schedule_id)
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
        tasks = await running_tasks(services, statement.replication, user)
        statement = replace(statement, job_ids=tuple(job.id for job in tasks), replication=None)
    if statement.schedules:
        await _check_schedules(services, statement.job_ids, user)
    for job in await controlled_jobs(services, user, statement.job_ids):
        if statement.action is JobAction.RESUME:
            await _check_owner(services, services.rights.current, job)
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
            raise _no_schedule(schedule_id)


def _no_schedule(id: int) -> SQLError:
    message = f"schedule with ID {id} does not exist"
    return SQLError("42704", message, hint="SHOW SCHEDULES lists them.")


async def _check_owner(services: Services, rights: Rights, job: JobSummary) -> None:
    """Whether a feed's owner may still make it: who resumes it does not lend it rights.

    A table that is gone is for the feed itself to tell of. Raises SQLError 42501.
    """
    for table in (await tables_now(services, job.table_ids)).values():
        needs = tuple(needs_on(table, int(Privilege.CHANGEFEED)))
        if not table.dropped and missing(rights, job.owner, needs) is not None:
            raise SQLError(
                "42501",
                f"changefeed {job.id} cannot be resumed: its owner {job.owner} does not have "
                f"CHANGEFEED privilege on relation {table.name}",
                hint=f"GRANT CHANGEFEED ON TABLE {table.name} TO {job.owner}, "
                f"or CANCEL JOB {job.id}.",
            )


async def tables_now(services: Services, ids: Iterable[int]) -> dict[int, TableDescriptor]:
    """Tables as they are now by their ids, as far as there are descriptors of them."""
    at = await services.store.now()
    read_at = services.catalog.descriptors.read_at
    found = [await read_at(table_id, at) for table_id in dict.fromkeys(ids)]
    return {table.id: table for table in found if isinstance(table, TableDescriptor)}


async def verify_changefeed(actor: Actor, statement: VerifyChangefeed) -> Result:
    """A row for each row that differs. Raises SQLError 42501 and 42704 as for PAUSE JOB.

    The result holds keys, so whoever does not own the feed needs SELECT on its tables, too.
    """
    services = actor.services
    job_ids = [statement.job_id]
    if statement.replication is not None:
        tasks = await running_tasks(services, statement.replication, actor.user)
        job_ids = [job.id for job in tasks]
    for job_id in job_ids:
        await check_feed(services, actor.user, job_id, controls=True)
    if not statement.at_resolved:
        now = await services.store.now()
        for job_id in job_ids:  # a replica has resolved the least of what its tasks have
            await services.jobs.wait(job_id, now, seconds=None)
    rows: list[Row] = []
    notes: list[str] = []
    for job_id in job_ids:  # each task compares its own keys
        verified = await services.jobs.verify(job_id, repairs=statement.repairs)
        rows += [(each.shown_table, each.shown_key, each.what) for each in verified.differences]
        notes += verified.notes
    tag, notice = f"VERIFY CHANGEFEED {len(rows)}", "; ".join(notes) or None
    return Result(tag=tag, columns=VERIFY_COLUMNS, rows=rows, row_count=len(rows), notice=notice)


# Rights


async def seen_jobs(services: Services, user: str, ids: Sequence[int]) -> Sequence[JobSummary]:
    """The jobs of these ids. Raises SQLError 42704 where the user sees no such job in SHOW JOBS."""
    rights = services.rights.current
    found = {job.id: job for job in await services.jobs.find(ids)}
    for job_id in ids:
        if job_id not in found or not sees(rights, user, found[job_id].owner):
            raise JobNotFound(job_id)
    return list(found.values())


async def controlled_jobs(
    services: Services, user: str, ids: Sequence[int]
) -> Sequence[JobSummary]:
    """The jobs of these ids that exist. Raises SQLError 42501 and 42704 as for PAUSE JOB."""
    found = {job.id: job for job in await services.jobs.find(ids)}
    for job_id in ids:
        check_control(services.rights.current, user, job_id, found.get(job_id))
    return list(found.values())


async def check_feed(services: Services, user: str, job_id: int, *, controls: bool) -> None:
    """Raises SQLError as `controlled_jobs`, or as `seen_jobs`; and 42501 where another user's
    feed is of tables that this one may not SELECT: what is told of it holds keys."""
    rights = services.rights.current
    find = controlled_jobs if controls else seen_jobs
    for job in await find(services, user, [job_id]):
        if not rights.admin(user) and job.owner not in rights.roles_of(user):
            for table in (await tables_now(services, job.table_ids)).values():
                await require_on(services, user, table, Privilege.SELECT)


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
        raise JobNotFound(job_id)
    if job is not None:
        raise SQLError(
            "42501",
            f"user {user} may not control job {job_id} of {owner}",
            hint="CONTROLJOB is for the jobs of users that are no admins.",
        )


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
    """As `running_replication`, for a user who sees all of its jobs. Raises SQLError 42704."""
    jobs = await running_replication(services, name)
    if not jobs or not all(sees(services.rights.current, user, job.owner) for job in jobs):
        raise SQLError(
            "42704", f'replication "{name}" does not exist', hint="SHOW REPLICATIONS lists them."
        )
    return jobs


def _row(tasks: Sequence[JobSummary]) -> Row:
    """The row of a replication: the least checkpoint of its tasks, and the greatest lag."""
    first, states = tasks[0], [job.state for job in tasks]
    lags = [job.lag_seconds for job in tasks if job.lag_seconds is not None]
    return (
        first.replication,
        min(job.id for job in tasks),
        first.tables,
        first.sink,
        next((state for state in WORST_FIRST if state in states), first.state),
        _checkpoint(tasks),
        max(lags, default=None),
        next(filter(None, (job.error or job.trouble for job in tasks)), None),
    )


def _checkpoint(tasks: Sequence[JobSummary]) -> str | None:
    resolved = [job.resolved for job in tasks if job.resolved is not None]
    return format_timestamp(min(resolved)) if len(resolved) == len(tasks) else None


def _task_row(job: JobSummary) -> Row:
    task, part = job.task, KeyspacePart() if job.task is None else job.task.part
    sending = job.sending
    sends = sending if job.state == "running" else None
    lag = None if sends is None else sends.lag
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
        None if sends is None else sends.rows_per_second,
        None if sending is None else max(0, sending.attempts - 1),
        *((None,) * 3 if lag is None else (lag.store, lag.capture, lag.network)),
        job.error or job.trouble,
    )


# SHOW CHANGEFEED LATENCY and LAG; SHOW, RETRY and SKIP DEAD LETTERS.


async def show_feed_latency(actor: Actor, statement: s.ShowFeedLatency) -> Result:
    """A row for each stage. Raises SQLError 42704, 42501, and 0A000 where another node runs it."""
    services = actor.services
    await check_feed(services, actor.user, statement.job_id, controls=False)
    stages = await services.jobs.latency(statement.job_id)
    held = [stage.holdup.table_id for stage in stages if stage.holdup is not None]
    tables = await tables_now(services, held)
    rows: list[Row] = []
    for stage in stages:
        measured, holdup = stage.measured, stage.holdup
        times = [None] * 4 if measured is None else [
            measured.p50, measured.p95, measured.p99, measured.max
        ]  # fmt: skip
        waiting: Row = (None,) * 5
        if holdup is not None:
            table = tables.get(holdup.table_id)
            waiting = (
                holdup.batches, stage.waited_ms, None if table is None else table.name,
                _shown(holdup.span, table), holdup.why,
            )  # fmt: skip
        rows.append((stage.name, 0 if measured is None else measured.count, *times, *waiting))
    columns = (
        "stage commits:i p50_ms:f p95_ms:f p99_ms:f max_ms:f waiting:i waited_ms:f table_name span "
        "waits_for"
    )
    return listing("SHOW CHANGEFEED LATENCY", columns, rows)


async def show_feed_lag(actor: Actor, statement: s.ShowFeedLag) -> Result:
    """A row for each span of each table. Raises SQLError 42704 and 42501."""
    services = actor.services
    await check_feed(services, actor.user, statement.job_id, controls=False)
    spans = await services.jobs.lag(statement.job_id)
    tables = await tables_now(services, [found.table_id for found in spans])
    rows: list[Row] = [
        (
            found.table_name, found.state, _shown(found.span, tables.get(found.table_id)),
            format_timestamp(found.resolved) if found.resolved else None, found.seconds,
            found.catch_up_seconds,
        )
        for found in spans
    ]  # fmt: skip
    columns = "table_name state span resolved lag_seconds:f catch_up_seconds:f"
    return listing("SHOW CHANGEFEED LAG", columns, rows)


def _shown(span: Span, table: TableDescriptor | None) -> str:
    return f"[{pretty_key(span.start, table)}, {pretty_key(span.end, table)})"


_READERS = (Privilege.SELECT, Privilege.CHANGEFEED)

_LETTER = "table_name key mvcc_timestamp error message message_bytes:i refused:t"


async def tell_dead_letters(actor: Actor, statement: s.LetterStatement) -> Result:
    """Raises SQLError as SHOW CHANGEFEED LAG and VERIFY CHANGEFEED do, and for RETRY where the feed
    takes no rows now."""
    services, user, chosen = actor.services, actor.user, statement.chosen
    shows = isinstance(statement, s.ShowDeadLetters)
    await check_feed(services, user, chosen.job_id, controls=not shows)
    letters = _chosen(await services.jobs.dead_letters(chosen.job_id), chosen)
    await _check_tables(services, user, letters)
    rows: list[Row]
    match statement:
        case s.ShowDeadLetters():
            rows = [
                (
                    letter.table_name, letter.key, format_timestamp(letter.at), letter.error,
                    letter.message, letter.message_bytes, letter.refused,
                )
                for letter in letters
            ]  # fmt: skip
            return listing("SHOW DEAD LETTERS", _LETTER, rows)
        case s.SkipDeadLetters():
            await services.changefeeds.skip_dead_letters(letters)
            return Result(tag=f"SKIP DEAD LETTERS {len(letters)}", row_count=len(letters))
        case _:
            outcomes = await services.jobs.retry_dead_letters(chosen.job_id, letters)
            rows = [
                (letter.table_name, letter.key, format_timestamp(letter.at), outcome)
                for letter, outcome in zip(letters, outcomes, strict=True)
            ]
            return listing(f"RETRY DEAD LETTERS {len(rows)}", RETRY_COLUMNS, rows)


async def _check_tables(services: Services, user: str, letters: Sequence[DeadLetter]) -> None:
    """Raises SQLError 42501 where the user may not read the tables of the letters as they are now,
    the owner of the feed too: letters hold rows, and outlive the feed, its right to a table, and
    the table, which is then for admins."""
    rights = services.rights.current
    if rights.admin(user):
        return
    names = {letter.table_id: letter.table_name for letter in letters}
    tables = await tables_now(services, names)
    for table_id, name in names.items():
        table = tables.get(table_id)
        if (
            table is None
            or table.dropped
            or not any(rights.allow(user, table, each) for each in _READERS)
        ):
            raise SQLError(
                "42501",
                f"user {user} has neither SELECT nor CHANGEFEED privilege on relation {name}",
                detail="Dead letters hold its rows.",
                hint="TABLE chooses the letters of another table.",
            )


def _chosen(letters: Sequence[DeadLetter], chosen: s.LetterChoice) -> list[DeadLetter]:
    """A table may be named by the end of its full name."""
    named = None if chosen.table is None else list(chosen.table.parts)
    return [
        letter
        for letter in letters
        if (named is None or letter.table_name.split(".")[-len(named) :] == named)
        and chosen.key in (None, letter.key)
    ]
