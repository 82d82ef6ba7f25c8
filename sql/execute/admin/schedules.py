"""CREATE SCHEDULE and SHOW SCHEDULES; PAUSE, RESUME and DROP are those of jobs (`feeds`)."""

from __future__ import annotations

from datetime import UTC, datetime

from ....catalog.values.errors import SQLError
from ....changefeed import SCHEDULE_QUOTA, parse_schedule_options
from ....kvlayer.clock import unix_us
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.authorization import Actor
from ...runtime.jobs import sees_schedule
from ...syntax.changefeed_statements import CreateSchedule, ShowSchedules
from ...syntax.statements import CreateChangefeed
from ..changer import Changer
from ..ddl.ownership import own_jobs
from ..positions import refuse_twice
from ..query.result_shape import SCHEDULE_COLUMNS
from .feeds import requested

_COLUMNS = typed_columns(
    "id:i label schedule_status next_run:t state recurrence running_job_id:i owner created:t "
    "command"
)


async def create_schedule(changer: Changer, statement: CreateSchedule) -> Result:
    """Needs the rights that CREATE CHANGEFEED needs. Does not commit. Raises SQLError."""
    services, transaction = changer.services, changer.transaction
    refuse_twice(statement.options)
    refuse_twice(statement.schedule_options)
    label = statement.label
    if statement.if_not_exists and any(
        each.label == label for each in await services.jobs.schedules()
    ):
        return _created([])
    changefeed = CreateChangefeed(
        tables=statement.tables, sink=statement.sink, options=statement.options
    )
    _, request = await requested(changer, changefeed)
    now = unix_us(request.at) / 1e6
    label = label or f"CHANGEFEED {datetime.fromtimestamp(int(now), UTC):%Y-%m-%d %H:%M:%S}"
    given = {option.name: option.value for option in statement.schedule_options}
    schedule_id, first_run = await services.changefeeds.create_schedule(
        transaction,
        request,
        statement.sink,
        label=label,
        crontab=statement.crontab,
        options=parse_schedule_options(given, now),
    )
    await own_jobs(transaction, changer.user, [schedule_id])
    await changer.need_room(SCHEDULE_QUOTA)
    row: Row = (schedule_id, label, "ACTIVE", first_run, statement.crontab)
    return _created([row])


def _created(rows: list[Row]) -> Result:
    return Result(tag="CREATE SCHEDULE", columns=SCHEDULE_COLUMNS, rows=rows, row_count=len(rows))


async def show_schedules(actor: Actor, statement: ShowSchedules) -> Result:
    """Lists the user's own schedules; all of them with VIEWJOB or CONTROLJOB."""
    rights = await actor.rights()
    found = [
        each
        for each in await actor.services.jobs.schedules()
        if sees_schedule(rights, actor.user, each)
        and statement.paused in (None, each.paused)
        and statement.schedule_id in (None, each.id)
    ]
    if statement.schedule_id is not None and not found:
        raise SQLError("42704", f"schedule with ID {statement.schedule_id} does not exist")
    rows: list[Row] = [
        (
            each.id,
            each.label,
            "PAUSED" if each.paused else "ACTIVE",
            each.next_run,
            each.error or None,
            each.crontab,
            each.run or None,
            each.owner,
            each.created,
            each.description,
        )
        for each in found
    ]
    return listing("SHOW SCHEDULES", _COLUMNS, rows)
