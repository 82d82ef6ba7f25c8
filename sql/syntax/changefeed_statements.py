"""Statements about changefeeds, their schedules and subscriptions, as the parser hands them on."""

from __future__ import annotations

from sqlglot import exp

from .names import ObjectName, Option
from .statement import NamedStatement, Statement, Syntax


class FeedSelect(Syntax):
    """The query of CREATE CHANGEFEED … AS: its text, its tree, which nobody may change, and its
    table. Functions that tell of an event are columns of names such as `event_op()` in it."""

    text: str
    tree: exp.Select
    table: ObjectName


class DatabaseFeed(Syntax):
    """FOR DATABASE name [INCLUDE TABLES t, … | EXCLUDE TABLES t, …]."""

    name: str
    include: tuple[ObjectName, ...] = ()
    exclude: tuple[ObjectName, ...] = ()
    position: int


class AddTables(Syntax):
    """ADD t, … [WITH initial_scan | no_initial_scan]."""

    tables: tuple[ObjectName, ...]
    options: tuple[Option, ...]


class DropTables(Syntax):
    tables: tuple[ObjectName, ...]


class ControlTables(Syntax):
    """`action` is PAUSE, RESUME or RESCAN."""

    action: str
    tables: tuple[ObjectName, ...]


class SetFeedOptions(Syntax):
    options: tuple[Option, ...]


class UnsetFeedOptions(Syntax):
    names: tuple[str, ...]


class ShowFeedLatency(Statement):
    """SHOW CHANGEFEED LATENCY."""

    job_id: int


class ShowFeedLag(Statement):
    """SHOW CHANGEFEED LAG."""

    job_id: int


class LetterChoice(Syntax):
    """The dead letters that a statement is about: those of one `table` if it is given, and of
    one `key`, written as the letter shows it."""

    job_id: int
    table: ObjectName | None = None
    key: str | None = None


class ShowDeadLetters(Statement):
    """SHOW DEAD LETTERS."""

    chosen: LetterChoice


class RetryDeadLetters(Statement):
    """RETRY DEAD LETTERS: sends them again."""

    chosen: LetterChoice


class SkipDeadLetters(Statement):
    """SKIP DEAD LETTERS: forgets them."""

    chosen: LetterChoice


LetterStatement = ShowDeadLetters | RetryDeadLetters | SkipDeadLetters

FeedClause = AddTables | DropTables | ControlTables | SetFeedOptions | UnsetFeedOptions


class AlterChangefeed(Statement):
    """The clauses in their order; at least one."""

    job_id: int
    clauses: tuple[FeedClause, ...]


class CreateSubscription(NamedStatement):
    tables: tuple[ObjectName, ...]
    options: tuple[Option, ...]
    if_not_exists: bool


class DropSubscription(NamedStatement):
    if_exists: bool


class AcknowledgeSubscription(NamedStatement):
    """`upto` is the timestamp as it was written."""

    upto: str


class FetchSubscription(NamedStatement):
    """The next `count` rows, or all that are there where it is None; `timeout` is a duration."""

    count: int | None
    timeout: Option | None


class ShowSubscriptions(Statement):
    """SHOW SUBSCRIPTIONS."""


class CreateSchedule(Statement):
    """CREATE SCHEDULE: a changefeed of the tables into the sink at each time of the crontab. Where
    it has no `label`, it is called by when it was made."""

    label: str | None
    if_not_exists: bool
    tables: tuple[ObjectName, ...]
    sink: str
    options: tuple[Option, ...]
    crontab: str
    schedule_options: tuple[Option, ...]
    position: int


class ShowSchedules(Statement):
    """SHOW [RUNNING | PAUSED] SCHEDULES, SHOW SCHEDULE id."""

    schedule_id: int | None = None
    paused: bool | None = None


SubscriptionChange = CreateSubscription | DropSubscription | AcknowledgeSubscription
