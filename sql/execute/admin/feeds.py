"""Changefeeds and their schedules, as statements make and alter them, and REBALANCE REPLICATION."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from .... import changefeed
from ....catalog.descriptors.descriptor import DatabaseDescriptor, TableDescriptor
from ....catalog.descriptors.names import TableName
from ....catalog.descriptors.system_tables import SYSTEM_DATABASE_ID
from ....catalog.relaxed.logs import find_log
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import Timestamp, format_timestamp, unix_us
from ....kvlayer.errors import KVError
from ....kvlayer.process.fibre import in_slices
from ...analyze.feed_queries import feed_query
from ...results.as_of import timestamp_of_text
from ...results.errors import from_kv
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.keyspaces import check_keyspace, replica_resolved
from ...runtime.relations import full_name, is_sequence
from ...runtime.services import Services
from ...syntax import changefeed_statements as s
from ...syntax.keyspace_statements import RebalanceReplication
from ...syntax.statement import ObjectName, Option, refuse_twice
from ...syntax.statements import CreateChangefeed, ExplainChangefeed
from ...syntax.trees import unsupported
from ..changer import Changer, own_jobs
from ..query.feed_queries import compile_feed_query
from ..query.result_shape import (
    ALTERED_COLUMNS,
    CHANGEFEED_COLUMNS,
    EXPLAIN_COLUMNS,
    SCHEDULE_COLUMNS,
)
from .jobs import check_control, controlled_jobs, running_replication, running_tasks

TIME_OPTIONS = frozenset({"cursor", "end_time"})


def _check_followed(
    statement: str, names: Sequence[ObjectName], tables: Sequence[TableDescriptor]
) -> None:
    """Raises SQLError 42809 for a sequence or a view, 0A000 for a temporary table, and 42712 for a
    table that is named twice."""
    seen: set[int] = set()
    for name, table in zip(names, tables, strict=True):
        refused = None
        if is_sequence(table):
            hint = "A changefeed is of tables: values that are drawn are seen in their rows."
            refused = "42809", "sequence", hint
        elif table.view is not None:
            hint = "A changefeed is of tables: name those that the view reads."
            refused = "42809", "view", hint
        elif table.temporary:
            hint = "It ends with its session: create the table without TEMPORARY."
            refused = "0A000", "temporary table", hint
        if refused is not None:
            sqlstate, what, hint = refused
            message = f'{statement} cannot target {what} "{name}"'
            raise SQLError(sqlstate, message, hint=hint, position=name.position)
        if table.id in seen:
            message = f'table "{name}" specified more than once'
            raise SQLError("42712", message, position=name.position)
        seen.add(table.id)


def _feed_options(options: Sequence[Option], at: Timestamp) -> dict[str, str | None]:
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
    await changer.need_room(changefeed.FEED_QUOTA)
    tag = "CREATE CHANGEFEED" if statement.replication is None else "CREATE REPLICATION"
    return listing(tag, "job_id:i", [(job_id,) for job_id in ids])


async def explain_changefeed(changer: Changer, explained: ExplainChangefeed) -> Result:
    """Returns what the feed would do, or sample messages; the caller rolls the transaction back.
    Needs the rights of CREATE CHANGEFEED, and SELECT for messages."""
    refuse_twice(explained.changefeed.options)
    statement, request = await requested(changer, explained.changefeed)
    facts = await changer.services.changefeeds.explain(changer.transaction, request, statement.sink)
    if explained.sample is None:
        return listing("EXPLAIN", EXPLAIN_COLUMNS, list(facts))
    for table in request.tables:
        await changer.need_table(table, Privilege.SELECT)
    rows = await changer.services.changefeeds.sample(request, explained.sample)
    return listing("EXPLAIN", CHANGEFEED_COLUMNS, list(rows))


async def requested(
    changer: Changer, statement: CreateChangefeed, told: str = "CREATE CHANGEFEED"
) -> tuple[CreateChangefeed, changefeed.FeedRequest]:
    """The statement with the tables that it means, found. Raises SQLError, in which it is called
    `told`."""
    at = changer.transaction.read_timestamp
    if statement.whole_database is not None:
        return statement, await _of_database(changer, statement, statement.whole_database, at)
    if statement.relaxed_log is not None:
        statement = await _of_log(changer, statement, statement.relaxed_log)
    part, resolved = None, None
    relations = await changer.resolve(statement.tables, keyspaces=statement.keyspace is not None)
    if statement.keyspace is not None:
        keyspace = relations[statement.keyspace.name.parts]
        check_keyspace(keyspace, statement.keyspace.name)
        resolved = await replica_resolved(changer.services.store, keyspace, statement.keyspace.name)
        part = changefeed.KeyspacePart(
            statement.keyspace.start,
            statement.keyspace.end,
            replica=resolved is not None
            or (keyspace.keyspace is not None and keyspace.keyspace.replica),
        )
    tables = [relations[name.parts] for name in statement.tables]
    for table in tables:
        await (_need_readable if statement.sink is None else _need_changefeed)(changer, table)
    _check_followed(told, statement.tables, tables)
    select = statement.query
    query = None if select is None else await in_slices(lambda: feed_query(select, tables[0]))
    if select is not None:  # what is wrong with it is said with its author's positions
        await compile_feed_query(select, tables[0], tables[0], changer.services.analytics)
    request = changefeed.FeedRequest(
        tables=tables,
        names=[str(full_name(name, changer.database)) for name in statement.tables],
        options=_feed_options(statement.options, at),
        at=at,
        user=changer.user,
        replication=statement.replication,
        keyspace=part,
        resolved=resolved,
        query=query,
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


async def _of_database(
    actor: Actor, statement: CreateChangefeed, named: s.DatabaseFeed, at: Timestamp
) -> changefeed.FeedRequest:
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
    tables = changefeed.DatabaseTables(
        id=database_id,
        name=named.name,
        include=_full_names(named.include, named.name) or None,
        exclude=_full_names(named.exclude, named.name),
    )
    found = await changefeed.find_tables(tables, descriptors, reader)
    return changefeed.FeedRequest(
        tables=[each.table for each in found],
        names=[each.name for each in found],
        options=_feed_options(statement.options, at),
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


async def _of_log(changer: Changer, statement: CreateChangefeed, name: str) -> CreateChangefeed:
    """The statement for the log's tables. Into a sink that takes whole transactions it shows
    nothing else, for nothing else is a state of the store that the log is of."""
    log = await find_log(changer.transaction, name)
    found = [await changer.table(table_id) for table_id in log.table_ids]
    tables = [ObjectName(await changer.parts(table), 1) for table in found]
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


async def _rows(stream: changefeed.ChangefeedStream) -> AsyncGenerator[Row, None]:
    """The rows; what the store says in their midst, in the words of SQL."""
    async with stream:
        try:
            async for row in stream:
                yield row
        except KVError as error:
            raise from_kv(error) from error


async def _need_changefeed(actor: Actor, table: TableDescriptor) -> None:
    try:
        await actor.need_table(table, Privilege.CHANGEFEED)
    except SQLError as error:
        raise SQLError(
            "42501",
            f'user "{actor.user}" requires the CHANGEFEED privilege on all target tables '
            "to be able to run an enterprise changefeed",
            detail=f"{error.message}.",
        ) from error


async def _need_readable(actor: Actor, table: TableDescriptor) -> None:
    """CHANGEFEED or SELECT, as for a feed to a client. Raises SQLError 42501."""
    try:
        await actor.need_table(table, Privilege.CHANGEFEED)
    except SQLError:
        await actor.need_table(table, Privilege.SELECT)


# Schedules


async def create_schedule(changer: Changer, statement: s.CreateSchedule) -> Result:
    """Needs the rights that CREATE CHANGEFEED needs. Does not commit. Raises SQLError."""
    services, transaction = changer.services, changer.transaction
    refuse_twice(statement.options)
    refuse_twice(statement.schedule_options)
    label = statement.label
    if statement.if_not_exists and any(
        each.label == label for each in await services.jobs.schedules()
    ):
        return listing("CREATE SCHEDULE", SCHEDULE_COLUMNS, [])
    feed = CreateChangefeed(tables=statement.tables, sink=statement.sink, options=statement.options)
    _, request = await requested(changer, feed)
    now = unix_us(request.at) / 1e6
    label = label or f"CHANGEFEED {datetime.fromtimestamp(int(now), UTC):%Y-%m-%d %H:%M:%S}"
    given = {option.name: option.value for option in statement.schedule_options}
    schedule_id, first_run = await services.changefeeds.create_schedule(
        transaction,
        request,
        statement.sink,
        label=label,
        crontab=statement.crontab,
        options=changefeed.parse_schedule_options(given, now),
    )
    await own_jobs(transaction, changer.user, [schedule_id])
    await changer.need_room(changefeed.SCHEDULE_QUOTA)
    row: Row = (schedule_id, label, "ACTIVE", first_run, statement.crontab)
    return listing("CREATE SCHEDULE", SCHEDULE_COLUMNS, [row])


# ALTER CHANGEFEED and REBALANCE REPLICATION


SCAN_OPTIONS = {
    ("initial_scan", None): True,
    ("initial_scan", "yes"): True,
    ("initial_scan", "no"): False,
    ("no_initial_scan", None): False,
}


async def alter_changefeed(changer: Changer, statement: s.AlterChangefeed) -> Result:
    """The job's id and its new description. Does not commit."""
    await controlled_jobs(changer.services, changer.user, [statement.job_id])
    alterations: list[changefeed.Alteration] = []
    for clause in statement.clauses:
        alterations += await _alterations(changer, clause)
    description = await changer.services.changefeeds.alter(
        changer.transaction, statement.job_id, alterations, at=changer.transaction.read_timestamp
    )
    return listing("ALTER CHANGEFEED", ALTERED_COLUMNS, [(statement.job_id, description)])


async def rebalance_replication(changer: Changer, statement: RebalanceReplication) -> Result:
    """The ids and descriptions of the tasks whose keys changed. New tasks belong to the
    replication's owner. Does not commit."""
    services, transaction = changer.services, changer.transaction
    jobs = await running_tasks(services, statement.name, changer.user)
    for job in jobs:
        check_control(services.rights.current, changer.user, job.id, job)
    known, owner = {job.id for job in jobs}, jobs[0].owner
    rows = await services.changefeeds.rebalance(transaction, sorted(known))
    await own_jobs(transaction, owner, [id for id, _ in rows if id not in known])
    await Actor(services, owner, "", transaction).need_room(changefeed.FEED_QUOTA)
    return listing("REBALANCE REPLICATION", ALTERED_COLUMNS, rows)


async def _alterations(changer: Changer, clause: s.FeedClause) -> Sequence[changefeed.Alteration]:
    match clause:
        case s.AddTables():
            return await _added(changer, clause)
        case s.DropTables(tables=tables):
            return [changefeed.DropTarget(await _named(changer, name)) for name in tables]
        case s.ControlTables(action=action, tables=tables):
            chosen = changefeed.TargetAction(action)
            return [
                changefeed.ControlTarget(chosen, await _named(changer, name)) for name in tables
            ]
        case s.SetFeedOptions(options=options):
            refuse_twice(options)
            return [changefeed.SetOptions({option.name: option.value for option in options})]
    assert isinstance(clause, s.UnsetFeedOptions), clause
    return [changefeed.UnsetOptions(clause.names)]


async def _added(changer: Changer, clause: s.AddTables) -> Sequence[changefeed.AddTarget]:
    relations = await changer.resolve(clause.tables)
    tables = [relations[name.parts] for name in clause.tables]
    scans = _scans(clause.options)
    for name, table in zip(clause.tables, tables, strict=True):
        _check_followed("ALTER CHANGEFEED", [name], [table])
        await _need_changefeed(changer, table)
    return [
        changefeed.AddTarget(table, str(full_name(name, changer.database)), scans)
        for name, table in zip(clause.tables, tables, strict=True)
    ]


def _scans(options: Sequence[Option]) -> bool | None:
    """Whether the tables are scanned, where the clause says so."""
    chosen: set[bool] = set()
    for option in options:
        scans = SCAN_OPTIONS.get((option.name, option.value))
        if scans is None:
            raise SQLError(
                "22023",
                f"ADD takes initial_scan, initial_scan = 'no' or no_initial_scan, not "
                f"{option.name}{'' if option.value is None else f' = {option.value!r}'}",
                hint="What is of the whole feed goes behind SET.",
                position=option.position,
            )
        chosen.add(scans)
    if len(chosen) > 1:
        raise SQLError("22023", "initial_scan and no_initial_scan exclude each other")
    return chosen.pop() if chosen else None


async def _named(changer: Changer, name: ObjectName) -> changefeed.TargetName:
    """A target by the table that has its name now; a dropped table by the name that it had."""
    table = await changer.find(name, views=True)
    shown = str(full_name(name, changer.database))
    return changefeed.TargetName(None if table is None else table.id, shown)
