"""The grammar of schedules."""

from __future__ import annotations

from ...syntax.changefeed_statements import CreateSchedule, ShowSchedules
from ...syntax.refusals import unsupported
from ...syntax.statements import ControlJobs, JobAction
from ..cursor import Cursor, LexemeKind
from .feeds import feed_tables, job_ids, with_options


def create_schedule(cursor: Cursor) -> CreateSchedule:
    """`[IF NOT EXISTS] [label] FOR CHANGEFEED [TABLE] table, … INTO 'uri' [WITH option, …]
    RECURRING 'crontab' [WITH SCHEDULE OPTIONS option, …]`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    position, label = cursor.position, _label(cursor)
    if label is None and if_not_exists:
        cursor.fail(expected="the schedule's label")
    cursor.expect_words("for", "changefeed")
    if cursor.at_words("into") or cursor.at_words("with"):
        raise unsupported(
            "schedules of CDC queries", cursor.position, "FOR CHANGEFEED TABLE … names the tables."
        )
    tables = feed_tables(cursor)
    cursor.expect_words("into")
    sink = cursor.string("the sink's URI")
    options = with_options(cursor)
    cursor.expect_words("recurring")
    crontab = cursor.string("a crontab")
    scheduled = cursor.accept_words("with", "schedule", "options")
    schedule_options = cursor.listed(cursor.option) if scheduled else ()
    return CreateSchedule(
        label=label,
        if_not_exists=if_not_exists,
        tables=tables,
        sink=sink,
        options=options,
        crontab=crontab,
        schedule_options=schedule_options,
        position=position,
    )


def _label(cursor: Cursor) -> str | None:
    if cursor.at_words("for"):
        return None
    if cursor.current.kind is LexemeKind.STRING:
        return cursor.string("the schedule's label")
    return cursor.identifier("the schedule's label")


SCHEDULE_ACTIONS = {
    "pause": JobAction.PAUSE,
    "resume": JobAction.RESUME,
    "drop": JobAction.CANCEL,
}


def control_schedules(cursor: Cursor, action: JobAction) -> ControlJobs:
    """`id, …` or `query`."""
    ids, query = job_ids(cursor, "a schedule's id")
    return ControlJobs(action=action, job_ids=ids, query=query, schedules=True)


def show_schedules(cursor: Cursor, paused: bool | None = None) -> ShowSchedules:
    cursor.accept_words("for", "changefeed")
    return ShowSchedules(paused=paused)


def show_schedule(cursor: Cursor) -> ShowSchedules:
    schedule_id = cursor.integer("a schedule's id")
    return ShowSchedules(schedule_id=schedule_id)
