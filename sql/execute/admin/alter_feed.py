"""ALTER CHANGEFEED and REBALANCE REPLICATION."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.rights.privileges import Privilege
from ....catalog.rights.users import ROOT
from ....catalog.values.errors import SQLError
from ....changefeed import (
    FEED_QUOTA,
    AddTarget,
    Alteration,
    ControlTarget,
    DropTarget,
    SetOptions,
    TargetAction,
    TargetName,
    UnsetOptions,
)
from ...results.results import Result, listing, typed_columns
from ...runtime.authorization import Actor
from ...runtime.relations import full_name
from ...syntax.changefeed_statements import (
    AddTables,
    AlterChangefeed,
    ControlTables,
    DropTables,
    FeedClause,
    SetFeedOptions,
    UnsetFeedOptions,
)
from ...syntax.keyspace_statements import RebalanceReplication
from ...syntax.names import ObjectName, Option
from ..changer import Changer
from ..ddl.ownership import own_jobs
from ..positions import refuse_twice
from .feeds import check_control
from .replications import running_tasks

ALTERED_COLUMNS = typed_columns("job_id:i job_description")

SCAN_OPTIONS = {
    ("initial_scan", None): True,
    ("initial_scan", "yes"): True,
    ("initial_scan", "no"): False,
    ("no_initial_scan", None): False,
}


async def alter_changefeed(changer: Changer, statement: AlterChangefeed) -> Result:
    """The job's id and its new description. Does not commit."""
    rights = changer.services.rights.current
    if not rights.admin(changer.user):
        found = {job.id: job for job in await changer.services.jobs.find([statement.job_id])}
        check_control(rights, changer.user, statement.job_id, found.get(statement.job_id))
    alterations: list[Alteration] = []
    for clause in statement.clauses:
        alterations += await _alterations(changer, clause)
    description = await changer.services.changefeeds.alter(
        changer.transaction, statement.job_id, alterations, at=changer.transaction.read_timestamp
    )
    return listing("ALTER CHANGEFEED", ALTERED_COLUMNS, [(statement.job_id, description)])


async def rebalance_replication(changer: Changer, statement: RebalanceReplication) -> Result:
    """The ids and descriptions of the tasks whose keys changed. New tasks belong to the
    replication's owner. Does not commit."""
    jobs = await running_tasks(changer.services, statement.name, changer.user)
    for job in jobs:
        if not changer.services.rights.current.admin(changer.user):
            check_control(changer.services.rights.current, changer.user, job.id, job)
    known = {job.id for job in jobs}
    rows = await changer.services.changefeeds.rebalance(changer.transaction, sorted(known))
    await own_jobs(
        changer.transaction, jobs[0].user_name or ROOT, [id for id, _ in rows if id not in known]
    )
    owner = Actor(changer.services, jobs[0].user_name or ROOT, "", changer.transaction)
    await owner.need_room(FEED_QUOTA)
    return listing("REBALANCE REPLICATION", ALTERED_COLUMNS, rows)


async def _alterations(changer: Changer, clause: FeedClause) -> Sequence[Alteration]:
    match clause:
        case AddTables():
            return await _added(changer, clause)
        case DropTables(tables=tables):
            return [DropTarget(await _named(changer, name)) for name in tables]
        case ControlTables(action=action, tables=tables):
            chosen = TargetAction(action)
            return [ControlTarget(chosen, await _named(changer, name)) for name in tables]
        case SetFeedOptions(options=options):
            refuse_twice(options)
            return [SetOptions({option.name: option.value for option in options})]
        case UnsetFeedOptions(names=names):
            return [UnsetOptions(names)]


async def _added(changer: Changer, clause: AddTables) -> Sequence[AddTarget]:
    relations = await changer.resolve(clause.tables)
    scans = _scans(clause.options)
    added: list[AddTarget] = []
    for name in clause.tables:
        table = relations[name.parts]
        if table.view is not None:
            raise SQLError(
                "42809",
                f'ALTER CHANGEFEED cannot target view "{name}"',
                hint="A changefeed is of tables: name those that the view reads.",
                position=name.position,
            )
        try:
            await changer.need_table(table, Privilege.CHANGEFEED)
        except SQLError as error:
            raise SQLError(
                "42501",
                f'user "{changer.user}" requires the CHANGEFEED privilege on all target tables '
                "to be able to run an enterprise changefeed",
                detail=f"{error.message}.",
            ) from error
        added.append(AddTarget(table, str(full_name(name, changer.database)), scans))
    return added


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


async def _named(changer: Changer, name: ObjectName) -> TargetName:
    """Returns a target by the table that has its name now; a dropped table by the name that it
    had."""
    table = await changer.find(name, views=True)
    shown = str(full_name(name, changer.database))
    return TargetName(None if table is None else table.id, shown)
