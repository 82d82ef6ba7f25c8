"""Statements about changefeeds, their schedules and subscriptions, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from .names import ObjectName, Option


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSelect:
    """The query of CREATE CHANGEFEED … AS: its text, its tree, which nobody may change, and its
    table. Functions that tell of an event are columns of names such as `event_op()` in it."""

    text: str
    tree: exp.Select
    table: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFeed:
    """FOR DATABASE name [INCLUDE TABLES t, … | EXCLUDE TABLES t, …]."""

    name: str
    include: tuple[ObjectName, ...] = ()
    exclude: tuple[ObjectName, ...] = ()
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddTables:
    """ADD t, … [WITH initial_scan | no_initial_scan]."""

    tables: tuple[ObjectName, ...]
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTables:
    tables: tuple[ObjectName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTables:
    """`action` is PAUSE, RESUME or RESCAN."""

    action: str
    tables: tuple[ObjectName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeedOptions:
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetFeedOptions:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowFeedLatency:
    """SHOW CHANGEFEED LATENCY."""

    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowFeedLag:
    """SHOW CHANGEFEED LAG."""

    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterChoice:
    """The dead letters that a statement is about: those of one `table` if it is given, and of
    one `key`, written as the letter shows it."""

    job_id: int
    table: ObjectName | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowDeadLetters:
    """SHOW DEAD LETTERS."""

    chosen: LetterChoice


@dataclass(frozen=True, slots=True)
class RetryDeadLetters:
    """RETRY DEAD LETTERS: sends them again."""

    chosen: LetterChoice


@dataclass(frozen=True, slots=True)
class SkipDeadLetters:
    """SKIP DEAD LETTERS: forgets them."""

    chosen: LetterChoice


LetterStatement = ShowDeadLetters | RetryDeadLetters | SkipDeadLetters

FeedClause = AddTables | DropTables | ControlTables | SetFeedOptions | UnsetFeedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterChangefeed:
    """The clauses in their order; at least one."""

    job_id: int
    clauses: tuple[FeedClause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSubscription:
    name: str
    tables: tuple[ObjectName, ...]
    options: tuple[Option, ...]
    if_not_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSubscription:
    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeSubscription:
    """`upto` is the timestamp as it was written."""

    name: str
    upto: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSubscription:
    """The next `count` rows, or all that are there where it is None; `timeout` is a duration."""

    name: str
    count: int | None
    timeout: Option | None
    position: int


@dataclass(frozen=True, slots=True)
class ShowSubscriptions:
    """SHOW SUBSCRIPTIONS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchedule:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSchedules:
    """SHOW [RUNNING | PAUSED] SCHEDULES, SHOW SCHEDULE id."""

    schedule_id: int | None = None
    paused: bool | None = None


SubscriptionChange = CreateSubscription | DropSubscription | AcknowledgeSubscription
