"""SHOW of what is no catalog's: sessions, jobs, feeds, settings and the schemas of a database."""

from __future__ import annotations

from ...syntax import changefeed_statements as c
from ...syntax import statements as s
from ...syntax.connection_statements import ShowConnections
from ...syntax.keyspace_statements import ShowKeyspaceRanges, ShowKeyspaces, ShowReplications
from ...syntax.relaxed_statements import ShowRelaxedLogs
from ...syntax.user_statements import ShowUsers
from ..cursor import Cursor, Unmatched
from ..kinds import define, define_rules, dotted, refused
from ..rules import Row, Rules

define_rules(
    "shown_ranges",
    Rules(
        ("TABLE table:table", s.RangesOf, {"index": None}),
        ("INDEX table:table @ index:index", s.RangesOf),
    ),
)
define_rules(
    "letters",
    Rules(("FOR CHANGEFEED job_id:job [TABLE table:table] [KEY key:letter]", c.LetterChoice)),
)

_LONGER = frozenset(
    """
    changefeed cluster columns create dead external job paused ranges relaxed replication running
    schedule system transaction
    """.split()  # noqa: SIM905 (a list of words is read as such)
)


def _shown(cursor: Cursor) -> str:
    """A variable's name, which no word is that something else has to stand behind."""
    if cursor.keys[cursor.index] in _LONGER:
        raise Unmatched
    return dotted(cursor, "what to show")


define("shown", _shown)
_CONSTRAINTS = (
    "pg_constraint lists them, pg_get_constraintdef(oid) says what each is, and SHOW CREATE "
    "TABLE all of a table's."
)
_CATALOGS = {
    "SCHEMAS": "information_schema.schemata lists them.",
    "SEQUENCES": "pg_sequences lists them, with their last values.",
    "TYPES": "pg_type lists them, and pg_enum their labels.",
    "ENUMS": "pg_type lists them, and pg_enum their labels.",
    **dict.fromkeys(("INDEXES", "INDEX", "KEYS"), "pg_indexes lists them."),
    **dict.fromkeys(("CONSTRAINTS", "CONSTRAINT"), _CONSTRAINTS),
    **dict.fromkeys(
        ("GRANTS", "SYSTEM GRANTS"),
        "tailrace_internal.grants lists them, and pg_auth_members the members of roles.",
    ),
}
"""What SHOW does not tell, with where it stands."""

SHOWS: tuple[Row, ...] = (
    ("SHOW DATABASES", s.ShowDatabases),
    ("SHOW TABLES [FROM database:database]", s.ShowTables),
    ("SHOW COLUMNS FROM [TABLE] table:table", s.ShowColumns),
    ("SHOW CREATE view:VIEW table:view", s.ShowCreateTable),
    ("SHOW CREATE [TABLE] table:table", s.ShowCreateTable),
    ("SHOW RANGES FROM of:shown_ranges details:[WITH DETAILS]", s.ShowRanges),
    ("SHOW RANGES FROM KEYSPACE name:keyspace", ShowKeyspaceRanges),
    ("SHOW [CLUSTER/LOCAL/ALL] SESSIONS", s.ShowSessions),
    ("SHOW [CLUSTER/LOCAL/ALL] QUERIES/STATEMENTS", s.ShowQueries),
    ("SHOW USERS/ROLES", ShowUsers),
    ("SHOW JOBS/JOB WHEN COMPLETE ( query:query | job_ids:job,… )", s.AwaitJobs),
    ("SHOW JOBS", s.ShowJobs),
    ("SHOW JOB job_id:job", s.ShowJobs),
    (
        "SHOW CHANGEFEED ( JOBS | JOB job_id:job ) watched:[WITH WATCHED_TABLES]",
        s.ShowJobs,
        {"changefeeds_only": True},
    ),
    ("SHOW CHANGEFEED LATENCY job_id:job", c.ShowFeedLatency),
    ("SHOW CHANGEFEED LAG job_id:job", c.ShowFeedLag),
    ("SHOW DEAD LETTERS chosen:letters", c.ShowDeadLetters),
    ("RETRY DEAD LETTERS chosen:letters", c.RetryDeadLetters),
    ("SKIP DEAD LETTERS chosen:letters", c.SkipDeadLetters),
    ("SHOW SCHEDULES [FOR CHANGEFEED]", c.ShowSchedules),
    ("SHOW RUNNING SCHEDULES [FOR CHANGEFEED]", c.ShowSchedules, {"paused": False}),
    ("SHOW PAUSED SCHEDULES [FOR CHANGEFEED]", c.ShowSchedules, {"paused": True}),
    ("SHOW SCHEDULE schedule_id:schedule_id", c.ShowSchedules),
    ("SHOW SUBSCRIPTIONS", c.ShowSubscriptions),
    ("SHOW EXTERNAL CONNECTIONS", ShowConnections),
    ("SHOW EXTERNAL CONNECTION name:connection", ShowConnections),
    ("SHOW RELAXED LOGS", ShowRelaxedLogs),
    ("SHOW KEYSPACES", ShowKeyspaces),
    ("SHOW REPLICATIONS", ShowReplications),
    ("SHOW REPLICATION tasks_of:replication TASKS", ShowReplications),
    ("SHOW [ALL] CLUSTER SETTINGS ^", s.ShowClusterSettings, {"name": None}),
    ("SHOW CLUSTER SETTING ^ ( ALL | name:setting )", s.ShowClusterSettings),
    *(
        (f"SHOW TRANSACTION ^ {words}", s.ShowSession, {"name": f"transaction_{name}"})
        for words, name in (("ISOLATION LEVEL", "isolation"), ("STATUS", "status"))
    ),
    *(
        (f"SHOW {words} ^ _:rest", refused(f"SHOW {words}", hint))
        for words, hint in _CATALOGS.items()
    ),
    ("SHOW ^ ALL", s.ShowSession, {"name": "all"}),
    ("SHOW ^ TIME ZONE", s.ShowSession, {"name": "timezone"}),
    ("SHOW ^ name:shown", s.ShowSession),
)  # fmt: skip
