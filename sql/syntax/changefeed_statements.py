"""Statements about changefeeds, schedules, subscriptions and external connections, as the parser
hands them on."""

from __future__ import annotations

from dataclasses import field

from sqlglot import exp

from .statement import CatalogStatement, NamedStatement, ObjectName, Option, Statement, Syntax


class FeedSelect(Syntax):
    """The query of CREATE CHANGEFEED … AS: its text, its tree, which nobody may change, and its
    table. Functions that tell of an event are columns of names such as `event_op()` in it."""

    text: str
    tree: exp.Select
    table: ObjectName


class DatabaseFeed(Syntax):
    grammar = (
        "^ name:database INCLUDE TABLES include:feed_table,…",
        "^ name:database EXCLUDE TABLES exclude:feed_table,…",
        "^ name:database",
    )
    name: str
    include: tuple[ObjectName, ...] = ()
    exclude: tuple[ObjectName, ...] = ()
    position: int


class FeedClause(Syntax):
    """A clause of ALTER CHANGEFEED."""


class AddTables(FeedClause):
    """`options` say whether the tables are scanned."""

    grammar = "ADD [TABLE] tables:table,… [WITH options:option,…]"
    tables: tuple[ObjectName, ...]
    options: tuple[Option, ...]


class DropTables(FeedClause):
    grammar = "DROP [TABLE] tables:table,…"
    tables: tuple[ObjectName, ...]


class SetFeedOptions(FeedClause):
    grammar = "SET options:option,…"
    options: tuple[Option, ...]


class UnsetFeedOptions(FeedClause):
    grammar = "UNSET names:option_name,…"
    names: tuple[str, ...]


class ControlTables(FeedClause):
    grammar = tuple(
        (f"{action} TABLE tables:table,…", {"action": action})
        for action in ("PAUSE", "RESUME", "RESCAN")
    )
    action: str
    tables: tuple[ObjectName, ...]


class ShowFeedLatency(Statement):
    grammar = "SHOW CHANGEFEED LATENCY job_id:job"
    job_id: int


class ShowFeedLag(Statement):
    grammar = "SHOW CHANGEFEED LAG job_id:job"
    job_id: int


class LetterChoice(Syntax):
    """The dead letters that a statement is about: those of one `table` if it is given, and of
    one `key`, written as the letter shows it."""

    grammar = "FOR CHANGEFEED job_id:job [TABLE table:table] [KEY key:letter]"
    job_id: int
    table: ObjectName | None = None
    key: str | None = None


class LetterStatement(Statement):
    """A statement about dead letters."""

    chosen: LetterChoice


class ShowDeadLetters(LetterStatement):
    grammar = "SHOW DEAD LETTERS chosen:letters"


class RetryDeadLetters(LetterStatement):
    """Sends them again."""

    grammar = "RETRY DEAD LETTERS chosen:letters"


class SkipDeadLetters(LetterStatement):
    """Forgets them."""

    grammar = "SKIP DEAD LETTERS chosen:letters"


class AlterChangefeed(CatalogStatement):
    """The clauses in their order; at least one."""

    grammar = "ALTER CHANGEFEED job_id:job clauses:feed_clauses"
    job_id: int
    clauses: tuple[FeedClause, ...]


class SubscriptionChange(CatalogStatement, NamedStatement):
    """A change of a subscription."""


class CreateSubscription(SubscriptionChange):
    grammar = (
        "CREATE SUBSCRIPTION if_not_exists:[IF NOT EXISTS] ^ name:subscription "
        "FOR tables:feed_table,… [options:with]"
    )
    tables: tuple[ObjectName, ...]
    options: tuple[Option, ...]
    if_not_exists: bool


class DropSubscription(SubscriptionChange):
    grammar = "DROP SUBSCRIPTION if_exists:[IF EXISTS] ^ name:subscription"
    if_exists: bool


class AcknowledgeSubscription(SubscriptionChange):
    """`upto` is the timestamp as it was written."""

    grammar = "ACKNOWLEDGE SUBSCRIPTION ^ name:subscription UP TO upto:value"
    upto: str


class FetchSubscription(NamedStatement):
    """The next `count` rows, or all that are there where it is None."""

    grammar = (
        "FETCH [NEXT] [FROM/IN] SUBSCRIPTION ^ name:subscription [options:with]",
        ("FETCH ALL [FROM/IN] SUBSCRIPTION ^ name:subscription [options:with]", {"count": None}),
        "FETCH count:portion [FROM/IN] SUBSCRIPTION ^ name:subscription [options:with]",
    )
    count: int | None = 1
    options: tuple[Option, ...]


class ShowSubscriptions(Statement):
    grammar = "SHOW SUBSCRIPTIONS"


_SCHEDULED = (
    "FOR CHANGEFEED [_:scheduled_query] tables:feed_table,… INTO sink:sink [options:with] "
    "RECURRING crontab:crontab [WITH SCHEDULE OPTIONS schedule_options:option,…]"
)


class CreateSchedule(CatalogStatement):
    """A changefeed of the tables into the sink at each time of the crontab. Where it has no
    `label`, it is called by when it was made."""

    grammar = (
        f"CREATE SCHEDULE if_not_exists:[IF NOT EXISTS] ^ label:label {_SCHEDULED}",
        f"CREATE SCHEDULE ^ {_SCHEDULED}",
    )
    label: str | None = None
    if_not_exists: bool = False
    tables: tuple[ObjectName, ...]
    sink: str
    options: tuple[Option, ...]
    crontab: str
    schedule_options: tuple[Option, ...]
    position: int


class ShowSchedules(Statement):
    grammar = (
        "SHOW SCHEDULES [FOR CHANGEFEED]",
        ("SHOW RUNNING SCHEDULES [FOR CHANGEFEED]", {"paused": False}),
        ("SHOW PAUSED SCHEDULES [FOR CHANGEFEED]", {"paused": True}),
        "SHOW SCHEDULE schedule_id:schedule_id",
    )
    schedule_id: int | None = None
    paused: bool | None = None


class ConnectionChange(CatalogStatement, NamedStatement):
    """A change of an external connection."""


class CreateConnection(ConnectionChange):
    grammar = "CREATE EXTERNAL CONNECTION ^ name:connection AS uri:sink_uri"
    uri: str = field(repr=False)


class AlterConnection(ConnectionChange):
    grammar = (
        "ALTER EXTERNAL CONNECTION ^ name:connection ( AS uri:sink_uri | OWNER TO owner:role )"
    )
    uri: str | None = field(repr=False)
    owner: str | None


class DropConnection(ConnectionChange):
    grammar = "DROP EXTERNAL CONNECTION ^ name:connection"


class ShowConnections(Statement):
    grammar = "SHOW EXTERNAL CONNECTIONS"
