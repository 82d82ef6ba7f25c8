"""Changefeeds and jobs, as statements ask for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import DatabaseDescriptor, TableDescriptor
from ....catalog.descriptors.names import TableName
from ....catalog.descriptors.system_tables import SYSTEM_DATABASE_ID
from ....catalog.relaxed.logs import find_log
from ....catalog.rights.privileges import SYSTEM, Privilege, securable
from ....catalog.rights.rights import Rights
from ....catalog.rights.users import ROOT
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ....changefeed import (
    FEED_QUOTA,
    ChangefeedStream,
    DatabaseTables,
    FeedRequest,
    KeyspacePart,
    find_tables,
)
from ....changefeed import JOB_KIND as CHANGEFEED_KIND
from ....changefeed.contract.queries import FeedQuery
from ....kvlayer.access import Transaction
from ....kvlayer.clock import Timestamp, format_timestamp
from ....kvlayer.errors import KVError
from ....kvlayer.fibre import in_slices
from ...analyze.feed_queries import feed_query
from ...introspection.tailrace_internal import (
    FEED_JOB_COLUMNS,
    JOB_COLUMNS,
    changefeed_rows,
    job_rows,
)
from ...plan.needs import missing, needs_on
from ...results.as_of import timestamp_of_text
from ...results.errors import from_kv
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.authorization import Actor, current_rights, require
from ...runtime.jobs import JobSummary, sees, sees_schedule
from ...runtime.keyspaces import check_keyspace, replica_resolved
from ...runtime.relations import full_name
from ...runtime.services import Services
from ...syntax.changefeed_statements import DatabaseFeed, FeedSelect
from ...syntax.names import ObjectName, Option
from ...syntax.refusals import unsupported
from ...syntax.statements import (
    AwaitJobs,
    ControlJobs,
    CreateChangefeed,
    ExplainChangefeed,
    JobAction,
    ShowJobs,
    VerifyChangefeed,
)
from ..changer import Changer
from ..ddl.ownership import own_jobs
from ..positions import refuse_twice
from ..query.feed_queries import compile_feed_query
from ..query.result_shape import CHANGEFEED_COLUMNS, EXPLAIN_COLUMNS, VERIFY_COLUMNS
from .replications import replication_jobs, running_replication

TIME_OPTIONS = frozenset({"cursor", "end_time"})


def check_followed(
    statement: str, names: Sequence[ObjectName], tables: Sequence[TableDescriptor]
) -> None:
    """Raises SQLError 42809 for a view, 0A000 for a temporary table, and 42712 for a table that is
    named twice."""
    seen: set[int] = set()
    for name, table in zip(names, tables, strict=True):
        if table.view is not None:
            raise SQLError(
                "42809",
                f'{statement} cannot target view "{name}"',
                hint="A changefeed is of tables: name those that the view reads.",
                position=name.position,
            )
        if table.temporary:
            raise SQLError(
                "0A000",
                f'{statement} cannot target temporary table "{name}"',
                hint="It ends with its session: create the table without TEMPORARY.",
                position=name.position,
            )
        if table.id in seen:
            message = f'table "{name}" specified more than once'
            raise SQLError("42712", message, position=name.position)
        seen.add(table.id)


def feed_options(options: Sequence[Option], at: Timestamp) -> dict[str, str | None]:
    """Options by name, as a feed keeps them: times that are written as for AS OF SYSTEM TIME become
    timestamps, those of a statement at `at`. Raises SQLError 22023."""
    given = {option.name: option.value for option in options}
    for option in options:
        if option.name.lower() in TIME_OPTIONS and option.value is not None:
            try:
                meant = timestamp_of_text(option.value.strip(), option.position, at)
            except SQLError as error:
                raise SQLError(
                    "22023",
                    f"changefeed option {option.name}: {error.message}",
                    position=option.position,
                    hint=error.hint,
                ) from error
            given[option.name] = format_timestamp(meant)
    return given


async def create_changefeed(changer: Changer, statement: CreateChangefeed) -> Result:
    """The job's id, or the rows of a feed without a sink. Does not commit."""
    statement, request = await requested(changer, statement)
    if statement.sink is None:
        stream = await changer.services.changefeeds.stream(request)
        return Result(tag="CREATE CHANGEFEED", columns=CHANGEFEED_COLUMNS, stream=_rows(stream))
    if statement.replication is not None:
        await _check_new(changer.services, statement.replication, statement.sink)
    feeds = changer.services.changefeeds
    if statement.workers is None:
        ids = [
            await feeds.create(changer.transaction, request, statement.sink, user_name=changer.user)
        ]
    else:
        ids = await feeds.create_replication(
            changer.transaction,
            request,
            statement.sink,
            workers=statement.workers,
            user_name=changer.user,
        )
    await own_jobs(changer.transaction, changer.user, ids)
    await changer.need_room(FEED_QUOTA)
    tag = "CREATE CHANGEFEED" if statement.replication is None else "CREATE REPLICATION"
    return listing(tag, typed_columns("job_id:i"), [(job_id,) for job_id in ids])


async def explain_changefeed(changer: Changer, explained: ExplainChangefeed) -> Result:
    """Returns what the feed would do, or sample messages; the caller rolls the transaction back.
    Needs the rights of CREATE CHANGEFEED, and SELECT for messages."""
    refuse_twice(explained.changefeed.options)
    statement, request = await requested(changer, explained.changefeed)
    facts = await changer.services.changefeeds.explain(changer.transaction, request, statement.sink)
    if explained.sample is None:
        rows: Sequence[Row] = facts
        return Result(tag="EXPLAIN", columns=EXPLAIN_COLUMNS, rows=list(rows), row_count=len(rows))
    for table in request.tables:
        await changer.need_table(table, Privilege.SELECT)
    rows = await changer.services.changefeeds.sample(request, explained.sample)
    return Result(tag="EXPLAIN", columns=CHANGEFEED_COLUMNS, rows=list(rows), row_count=len(rows))


async def requested(
    changer: Changer, statement: CreateChangefeed
) -> tuple[CreateChangefeed, FeedRequest]:
    """The statement with the tables that it means, found. Raises SQLError."""
    at = changer.transaction.read_timestamp
    if statement.whole_database is not None:
        return statement, await _of_database(changer, statement, statement.whole_database, at)
    if statement.relaxed_log is not None:
        statement = await _of_log(
            changer.services, statement, statement.relaxed_log, changer.transaction
        )
    part, resolved = None, None
    relations = await changer.resolve(statement.tables, keyspaces=statement.keyspace is not None)
    if statement.keyspace is not None:
        keyspace = relations[statement.keyspace.name.parts]
        check_keyspace(keyspace, statement.keyspace.name)
        resolved = await replica_resolved(changer.services.store, keyspace, statement.keyspace.name)
        part = KeyspacePart(
            statement.keyspace.start,
            statement.keyspace.end,
            replica=resolved is not None
            or (keyspace.keyspace is not None and keyspace.keyspace.replica),
        )
    tables = [relations[name.parts] for name in statement.tables]
    await _check_rights(changer, statement, tables)
    check_followed("CREATE CHANGEFEED", statement.tables, tables)
    request = FeedRequest(
        tables=tables,
        names=[str(full_name(name, changer.database)) for name in statement.tables],
        options=feed_options(statement.options, at),
        at=at,
        user=changer.user,
        replication=statement.replication,
        keyspace=part,
        resolved=resolved,
        query=None
        if statement.query is None
        else await _query(changer.services, statement.query, tables[0]),
    )
    return statement, request


async def _check_new(services: Services, name: str, sink: str) -> None:
    """Raises SQLError where there is a replication of that name, or the sink is no replica."""
    if not sink.lower().startswith(("tailrace://", "spark+tailrace://", "external://")):
        raise SQLError(
            "22023",
            "a replication goes into a keyspace of another store",
            hint="Write INTO 'tailrace://user:password@host:port/keyspace'.",
        )
    if await running_replication(services, name):
        raise SQLError("42710", f'replication "{name}" already exists')


async def _query(services: Services, select: FeedSelect, table: TableDescriptor) -> FeedQuery:
    """The query of a feed. What is wrong with it is said with its author's positions."""
    query = await in_slices(lambda: feed_query(select, table))
    await compile_feed_query(select, table, table, services.analytics)
    return query


async def _of_database(
    actor: Actor, statement: CreateChangefeed, named: DatabaseFeed, at: Timestamp
) -> FeedRequest:
    """The request for a database's tables, such as come later too: so it needs CHANGEFEED on the
    database, which holds for all of them."""
    descriptors, reader = actor.services.catalog.descriptors, actor.reader
    database_id = await descriptors.lookup(reader, 0, 0, named.name)
    if database_id is None:
        raise SQLError("3D000", f'database "{named.name}" does not exist', position=named.position)
    if database_id == SYSTEM_DATABASE_ID:
        raise unsupported("changefeeds on the system database", named.position)
    if statement.sink is None:
        raise SQLError(
            "0A000",
            "a changefeed of a whole database needs a sink",
            hint="INTO names one. A changefeed to this connection names its tables.",
        )
    database = await descriptors.read(reader, database_id)
    assert isinstance(database, DatabaseDescriptor), database
    await actor.need(securable(database), Privilege.CHANGEFEED)
    tables = DatabaseTables(
        id=database_id,
        name=named.name,
        include=_full_names(named.include, named.name) or None,
        exclude=_full_names(named.exclude, named.name),
    )
    found = await find_tables(tables, descriptors, reader)
    return FeedRequest(
        tables=[each.table for each in found],
        names=[each.name for each in found],
        options=feed_options(statement.options, at),
        at=at,
        user=actor.user,
        whole_database=tables,
    )


def _full_names(names: Sequence[ObjectName], database: str) -> tuple[str, ...]:
    """Raises SQLError 22023 for a name in another database."""
    found: list[str] = []
    for name in names:
        full = TableName.resolve(name.parts, current_database=database)
        if full.database != database:
            raise SQLError(
                "22023", f'table "{name}" is not in database "{database}"', position=name.position
            )
        found.append(str(full))
    return tuple(dict.fromkeys(found))


async def _of_log(
    services: Services, statement: CreateChangefeed, name: str, transaction: Transaction
) -> CreateChangefeed:
    """The statement for the log's tables. Into a sink that takes whole transactions it shows
    nothing else, for nothing else is a state of the store that the log is of."""
    log = await find_log(transaction, name)
    descriptors, tables = services.catalog.descriptors, []
    for table_id in log.table_ids:
        parts: list[str] = []
        table = await descriptors.read(transaction, table_id)
        assert isinstance(table, TableDescriptor), table_id
        for parent_id in (table.database_id, table.schema_id):
            parent = await descriptors.read(transaction, parent_id)
            assert parent is not None, parent_id
            parts.append(parent.name)
        tables.append(ObjectName((*parts, table.name), 1))
    return replace(statement, tables=tuple(tables), sink=_whole(statement.sink))


def _whole(sink: str | None) -> str | None:
    """A mirror's URI, with the parameter by which it shows whole transactions alone. Raises
    SQLError 22023 where it is to show single rows."""
    if sink is None or not sink.startswith("duckdb:") or "apply=transaction" in sink:
        return sink
    if "apply=" in sink:
        raise SQLError(
            "22023",
            "a mirror of a relaxed log shows whole transactions: apply=transaction",
            hint="Single rows of a change set are no state that the store had.",
        )
    return f"{sink}{'&' if '?' in sink else '?'}apply=transaction"


async def _rows(stream: ChangefeedStream) -> AsyncGenerator[Row, None]:
    """The rows; what the store says in their midst, in the words of SQL."""
    async with stream:
        try:
            async for row in stream:
                yield row
        except KVError as error:
            raise from_kv(error) from error


async def _check_rights(
    actor: Actor, statement: CreateChangefeed, tables: Sequence[TableDescriptor]
) -> None:
    """A feed into a sink needs CHANGEFEED on every table; for one to the client SELECT will do."""
    for table in tables:
        try:
            await actor.need_table(table, Privilege.CHANGEFEED)
        except SQLError as error:
            if statement.sink is not None:
                raise SQLError(
                    "42501",
                    f'user "{actor.user}" requires the CHANGEFEED privilege on all target tables '
                    "to be able to run an enterprise changefeed",
                    detail=f"{error.message}.",
                ) from error
            await actor.need_table(table, Privilege.SELECT)


async def list_jobs(
    services: Services, statement: ShowJobs, user: str, opened: Transaction | None
) -> Result:
    """Lists the user's own jobs; all of them with VIEWJOB or CONTROLJOB."""
    if statement.job_id is None:
        jobs = list(await services.jobs.list(changefeeds_only=statement.changefeeds_only))
    else:
        jobs = list(await services.jobs.find([statement.job_id]))
        if statement.changefeeds_only:
            jobs = [job for job in jobs if job.kind == CHANGEFEED_KIND]
    rights = await current_rights(services, opened)
    jobs = [job for job in jobs if sees(rights, user, job)]
    if statement.job_id is not None and not jobs:
        raise SQLError("42704", f"job with ID {statement.job_id} does not exist")
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
        if job_id not in found or not sees(rights, user, found[job_id]):
            raise SQLError("42704", f"job with ID {job_id} does not exist")
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


async def check_sees_job(services: Services, user: str, job_id: int) -> Sequence[JobSummary]:
    """The job of that id. Raises SQLError 42704 where the user sees no such job in SHOW JOBS."""
    rights = services.rights.current
    jobs = await services.jobs.find([job_id])
    if not (rights.admin(user) or any(sees(rights, user, job) for job in jobs)):
        raise SQLError("42704", f"job with ID {job_id} does not exist")
    return jobs


async def check_reads_feed(services: Services, user: str, job_id: int) -> None:
    """Raises SQLError 42704 where the user sees no such job in SHOW JOBS, and 42501 as
    `_check_keys`."""
    await _check_keys(services, user, await check_sees_job(services, user, job_id))


async def check_controls_feed(services: Services, user: str, job_id: int) -> None:
    """Raises SQLError 42501 and 42704 as for PAUSE JOB, and 42501 as `_check_keys`."""
    rights = services.rights.current
    if not rights.admin(user):
        jobs = await services.jobs.find([job_id])
        check_control(rights, user, job_id, jobs[0] if jobs else None)
        await _check_keys(services, user, jobs)


async def _check_keys(services: Services, user: str, jobs: Sequence[JobSummary]) -> None:
    """Raises SQLError 42501 where another user's feed is of tables that this one may not SELECT:
    what is told of it holds keys."""
    rights = services.rights.current
    for job in jobs:
        if not rights.admin(user) and (job.user_name or ROOT) not in rights.roles_of(user):
            await _check_tables(services, job, user, Privilege.SELECT)


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
            if not rights.admin(user):
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
        if schedule is None or not sees_schedule(rights, user, schedule):
            raise SQLError(
                "42704",
                f"schedule with ID {schedule_id} does not exist",
                hint="SHOW SCHEDULES lists them.",
            )


async def verify_changefeed(services: Services, statement: VerifyChangefeed, user: str) -> Result:
    """A row for each row that differs. Raises SQLError 42501 and 42704 as for PAUSE JOB.

    The result holds keys, so whoever does not own the feed needs SELECT on its tables, too.
    """
    job_ids: Sequence[int] = [statement.job_id]
    if statement.replication is not None:
        job_ids = await replication_jobs(services, statement.replication, user)
    rows: list[Row] = []
    notes: list[str] = []
    for job_id in job_ids:  # each task compares its own keys
        await check_controls_feed(services, user, job_id)
        verified = await services.jobs.verify(
            job_id, at_resolved=statement.at_resolved, repairs=statement.repairs
        )
        rows += [(each.shown_table, each.shown_key, each.what) for each in verified.differences]
        notes += verified.notes
    return Result(
        tag=f"VERIFY CHANGEFEED {len(rows)}",
        columns=VERIFY_COLUMNS,
        rows=rows,
        row_count=len(rows),
        notice="; ".join(notes) or None,
    )


async def _check_tables(
    services: Services, job: JobSummary, user: str, privilege: Privilege
) -> None:
    """Raises SQLError 42501 where the user lacks it on one of a feed's tables."""
    at = await services.store.now()
    for table_id in job.table_ids:
        table = await services.catalog.descriptors.read_at(table_id, at)
        if isinstance(table, TableDescriptor):
            await require(services, user, tuple(needs_on(table, int(privilege))))


async def _check_owner(services: Services, rights: Rights, job: JobSummary) -> None:
    """Whether a feed's owner may still make it: who resumes it does not lend it rights.

    A table that is gone is for the feed itself to tell of. Raises SQLError 42501.
    """
    owner, at = job.user_name or ROOT, await services.store.now()
    for table_id in job.table_ids:
        table = await services.catalog.descriptors.read_at(table_id, at)
        if not isinstance(table, TableDescriptor) or table.dropped:
            continue
        if missing(rights, owner, tuple(needs_on(table, int(Privilege.CHANGEFEED)))) is not None:
            raise SQLError(
                "42501",
                f"changefeed {job.id} cannot be resumed: its owner {owner} does not have "
                f"CHANGEFEED privilege on relation {table.name}",
                hint=f"GRANT CHANGEFEED ON TABLE {table.name} TO {owner}, or CANCEL JOB {job.id}.",
            )


def check_control(rights: Rights, user: str, job_id: int, job: JobSummary | None) -> None:
    """Raises SQLError 42501 for a job that the user may not control, and the error of a missing
    job for one that the user may not see."""
    held = rights.held(user, SYSTEM)
    owner = ROOT if job is None else job.user_name or ROOT
    if job is not None and owner in rights.roles_of(user):
        return
    if job is not None and held & Privilege.CONTROLJOB and not rights.admin(owner):
        return
    if held & (Privilege.CONTROLJOB | Privilege.VIEWJOB):
        if job is None:
            return  # there is none, and the registry says so
        raise SQLError(
            "42501",
            f"user {user} may not control job {job_id} of {owner}",
            hint="CONTROLJOB is for the jobs of users that are no admins.",
        )
    raise SQLError("42704", f"job with ID {job_id} does not exist")
