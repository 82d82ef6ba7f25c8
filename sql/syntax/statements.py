"""Statements as the parser hands them on: frozen values with positions, no behaviour.

A position is the one-based character of the statement text at which the thing begins, as Postgres
counts it. What sqlglot parsed (queries, expressions) stays a sqlglot tree; its identifiers carry
their own offsets.
"""

from __future__ import annotations

from enum import Enum

from sqlglot import exp

from ...catalog.jobs import JobAction
from ...kvlayer.transaction_modes import LockMode, WhenLocked
from .changefeed_statements import DatabaseFeed, FeedSelect
from .keyspace_statements import KeyspaceFeed
from .schema_statements import ColumnDefinition, TableConstraint
from .statement import (
    DDL,
    AsOf,
    CatalogStatement,
    DropObjects,
    NamedStatement,
    ObjectName,
    Option,
    Statement,
    Syntax,
    TypeName,
)


class CreateDatabase(DDL):
    grammar = "CREATE DATABASE if_not_exists:[IF NOT EXISTS] name:database"
    name: str
    if_not_exists: bool


class CreateTable(DDL):
    """`primary_key` are the columns of the key, empty without one, and `primary_name` what it is
    called; `elements` are the other constraints and indexes of the table."""

    table: ObjectName
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    if_not_exists: bool
    parameters: tuple[Option, ...]
    primary_name: str | None = None
    elements: tuple[TableConstraint, ...] = ()
    temporary: bool = False


class CreateTableAs(DDL):
    table: ObjectName
    query: Query
    if_not_exists: bool
    parameters: tuple[Option, ...]
    temporary: bool = False


class DropTable(DropObjects):
    grammar = "DROP TABLE if_exists:[IF EXISTS] names:table,… [cascade:CASCADE | RESTRICT]"


class ShowDatabases(Statement):
    grammar = "SHOW DATABASES"


class ShowTables(Statement):
    grammar = "SHOW TABLES [FROM database:database]"
    database: str | None


class ShowColumns(Statement):
    grammar = "SHOW COLUMNS FROM [TABLE] table:table"
    table: ObjectName


class ShowCreateTable(Statement):
    grammar = "SHOW CREATE [TABLE/VIEW] table:table"
    table: ObjectName


class SplitAt(Statement):
    """`rows` are the borders: some values of the key's first columns each."""

    grammar = "ALTER TABLE table:table SPLIT AT [_:border_query] rows:borders [_:expiration]"
    table: ObjectName
    rows: tuple[tuple[exp.Expr, ...], ...]


class UnsplitAt(Statement):
    """`rows` as in SPLIT AT; None for ALL."""

    grammar = "ALTER TABLE table:table UNSPLIT ( ALL | AT rows:borders )"
    table: ObjectName
    rows: tuple[tuple[exp.Expr, ...], ...] | None


class ShowRanges(Statement):
    grammar = "SHOW RANGES FROM TABLE table:table details:[WITH DETAILS]"
    table: ObjectName
    details: bool


class InsertMode(Enum):
    INSERT = "INSERT"
    UPSERT = "UPSERT"


class OnConflict(Syntax):
    """The ON CONFLICT clause.

    `columns` or `constraint` name the unique index that it is about; both are None for each of the
    table's. `updates` tells DO UPDATE from DO NOTHING, which has no `assignments` and no `where`.
    """

    columns: tuple[exp.Identifier, ...] | None
    constraint: exp.Identifier | None
    updates: bool
    assignments: tuple[tuple[exp.Column, exp.Expr], ...] = ()
    where: exp.Expr | None = None
    position: int | None = None


class Insert(Statement):
    """`columns` is None where the statement names none; `source` is None for DEFAULT VALUES."""

    table: ObjectName
    columns: tuple[exp.Identifier, ...] | None
    source: exp.Expr | None
    mode: InsertMode
    returning: tuple[exp.Expr, ...]
    alias: str | None = None
    conflict: OnConflict | None = None
    overriding: bool = False


class Update(Statement):
    table: ObjectName
    alias: str | None
    assignments: tuple[tuple[exp.Column, exp.Expr], ...]
    where: exp.Expr | None
    returning: tuple[exp.Expr, ...]
    sources: tuple[exp.Expr, ...] = ()
    ctes: tuple[exp.CTE, ...] = ()


class Delete(Statement):
    """`sources` are the tables of USING, of an UPDATE those of FROM; `ctes` the WITH before it."""

    table: ObjectName
    alias: str | None
    where: exp.Expr | None
    returning: tuple[exp.Expr, ...]
    sources: tuple[exp.Expr, ...] = ()
    ctes: tuple[exp.CTE, ...] = ()


class RowLock(Syntax):
    """The clauses that lock rows. `tables` are the names or aliases that they are OF; empty means
    all.

    Postgres has four strengths. FOR NO KEY UPDATE is FOR UPDATE here, and FOR KEY SHARE is FOR
    SHARE, as in CockroachDB: a row is locked whole.
    """

    mode: LockMode
    when_locked: WhenLocked
    tables: tuple[str, ...]


class Query(Statement):
    """SELECT, WITH, VALUES or TABLE, less its AS OF clause and its locking clauses."""

    tree: exp.Expr
    as_of: AsOf | None
    lock: RowLock | None = None


class WritingStep(Syntax):
    """A CTE that writes, or locks rows. What it returns the parts behind it read as table
    `$with.name`."""

    name: str
    columns: tuple[str, ...]
    statement: Query | Insert | Update | Delete
    position: int


class WithWrites(Statement):
    """A statement whose WITH writes or locks rows: its first steps lock. All its parts see the rows
    as they were before it, and locked rows as they are."""

    steps: tuple[WritingStep, ...]
    main: Query | Insert | Update | Delete


PlannedStatement = Query | Insert | Update | Delete | WithWrites
"""A query or DML: what the planner makes a plan of."""


class CreateChangefeed(CatalogStatement):
    """`sink` is None for a feed whose rows go to the client.

    With `relaxed_log` the tables are those of that log; with `keyspace` it is the only one, and so
    is that of a `query`. With a name it is a `replication`: its sink is a replica of the keyspace.
    """

    tables: tuple[ObjectName, ...]
    sink: str | None
    options: tuple[Option, ...]
    relaxed_log: str | None = None
    keyspace: KeyspaceFeed | None = None
    replication: str | None = None
    workers: int | None = None
    """The tasks that the replication may have; without, it is one feed."""
    query: FeedSelect | None = None
    whole_database: DatabaseFeed | None = None
    """Then it names no tables: they are those of that database, later ones too."""


class ShowJobs(Statement):
    """SHOW JOBS, SHOW CHANGEFEED JOBS, SHOW [CHANGEFEED] JOB id. With `watched` each feed's tables
    are told with their states."""

    grammar = (
        "SHOW JOBS",
        "SHOW JOB job_id:job",
        (
            "SHOW CHANGEFEED ( JOBS | JOB job_id:job ) watched:[WITH WATCHED_TABLES]",
            {"changefeeds_only": True},
        ),
    )
    changefeeds_only: bool = False
    job_id: int | None = None
    watched: bool = False


_ON_SCHEDULES = {"PAUSE": JobAction.PAUSE, "RESUME": JobAction.RESUME, "DROP": JobAction.CANCEL}


class ControlJobs(Statement):
    """PAUSE, RESUME and CANCEL of the jobs named, of those that `query` finds, or of a
    `replication`'s. With `schedules` the ids are of schedules, and CANCEL drops them."""

    grammar = (
        *(
            (f"{action.name} JOB/JOBS ( query:query | job_ids:job,… )", {"action": action})
            for action in JobAction
        ),
        *(
            (
                f"{verb} SCHEDULE/SCHEDULES ( query:query | job_ids:schedule_id,… )",
                {"action": action, "schedules": True},
            )
            for verb, action in _ON_SCHEDULES.items()
        ),
        *(
            (f"{action.name} REPLICATION replication:replication", {"action": action})
            for action in JobAction
        ),
    )
    action: JobAction
    job_ids: tuple[int, ...] = ()
    query: Query | None = None
    replication: str | None = None
    schedules: bool = False


class AwaitJobs(Statement):
    """The jobs that are named or that `query` finds, when all are over."""

    grammar = "SHOW JOBS/JOB WHEN COMPLETE ( query:query | job_ids:job,… )"
    job_ids: tuple[int, ...]
    query: Query | None = None


class VerifyChangefeed(Statement):
    """Compares a feed's sink with its tables: as of now, or `at_resolved` where the feed stands.
    What differs is sent again with `repairs`."""

    grammar = (
        "VERIFY CHANGEFEED job_id:job at_resolved:[AT RESOLVED] repairs:[REPAIR]",
        "VERIFY REPLICATION replication:replication at_resolved:[AT RESOLVED]",
    )
    job_id: int = 0
    at_resolved: bool
    repairs: bool = False
    replication: str | None = None
    """Instead of the job's id."""


class SetClusterSetting(NamedStatement):
    """The value is its text; None resets to the default."""

    grammar = (
        "SET CLUSTER SETTING ^ name:setting TO/= ( DEFAULT | value:value )",
        "RESET CLUSTER SETTING ^ name:setting",
    )
    value: str | None = None


class ShowClusterSettings(Statement):
    """All settings, or the one that is named."""

    grammar = ("SHOW [ALL] CLUSTER SETTINGS ^", "SHOW CLUSTER SETTING ^ ( ALL | name:setting )")
    name: str | None = None
    position: int


class UseDatabase(Statement):
    grammar = "USE name:database"
    name: str


class ShowSession(NamedStatement):
    """SHOW of a session variable."""


class Explain(Statement):
    """With ANALYZE the statement is carried out."""

    grammar = (
        "EXPLAIN '(' [_:untold] analyze:ANALYZE [',' _:untold] ')' statement:planned",
        "EXPLAIN [analyze:ANALYZE] [_:untold] statement:planned",
    )
    analyze: bool = False
    statement: PlannedStatement


class ExplainChangefeed(Statement):
    """EXPLAIN CHANGEFEED; `sample` is how many messages are asked for, None for facts alone."""

    changefeed: CreateChangefeed
    sample: int | None


class Prepare(Statement):
    """`text` is the inner statement, with blanks in front so that its positions are true."""

    grammar = "PREPARE name:name [types:(parameter_type,…)] AS text:statement_text"
    name: str
    types: tuple[TypeName, ...]
    text: str


class ExecutePrepared(NamedStatement):
    """The arguments are texts; None is NULL."""

    grammar = "EXECUTE ^ name:prepared [arguments:(argument,…)]"
    arguments: tuple[str | None, ...]


class Deallocate(Statement):
    """`name` is None for ALL."""

    grammar = "DEALLOCATE [PREPARE] ( ALL | name:name )"
    name: str | None


class Discard(Statement):
    """DISCARD, which a pool sends between two clients; `target` is the command tag."""

    grammar = (
        *(
            (f"DISCARD {words}", {"target": f"DISCARD {words.partition('/')[0]}"})
            for words in ("ALL", "SEQUENCES", "TEMP/TEMPORARY")
        ),
        ("CLOSE ALL", {"target": "CLOSE CURSOR ALL"}),
        ("UNLISTEN ( * | _:channel )", {"target": "UNLISTEN"}),
    )
    target: str


class SetConstraints(Statement):
    """Has the open transaction check the named deferrable foreign keys now or at its commit: all,
    where no name is given."""

    grammar = "SET CONSTRAINTS ( ALL | names:constraints_name,… ) ( deferred:DEFERRED | IMMEDIATE )"
    names: tuple[ObjectName, ...]
    deferred: bool


class CopyFormat(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


class CopyOptions(Syntax):
    """The form of rows. `header` says that the first line names the columns, and is passed over
    when it is read."""

    format: CopyFormat = CopyFormat.TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'


class CopyFrom(Statement):
    """`columns` is None for all of the table's that are not computed."""

    grammar = (
        "COPY table:table [columns:columns] FROM ( STDIN | _:server_file ) options:copy_options"
    )
    table: ObjectName
    columns: tuple[str, ...] | None
    options: CopyOptions


class CopyTo(Statement):
    grammar = "COPY query:enclosed_query TO ( STDOUT | _:server_file ) options:copy_options"
    query: Query
    options: CopyOptions


class ReadMirror(Statement):
    """A mirror client's query in DuckDB's SQL, checked by the mirror's reader."""

    text: str


_VACUUM = "VACUUM has nothing to do: old versions go by themselves, once gc.ttlseconds have passed"
_ANALYZE = "ANALYZE has nothing to do: plans need no statistics"


class Maintain(Statement):
    """A chore that has nothing to do here, and the tables that it names."""

    grammar = (
        (
            "VACUUM [_:(chore_option,…)] [FULL] [FREEZE] [VERBOSE] [ANALYZE/ANALYSE] "
            "[tables:cleaned,…]",
            {"tag": "VACUUM", "notice": _VACUUM},
        ),
        (
            "ANALYZE/ANALYSE [_:(chore_option,…)] [VERBOSE] [tables:cleaned,…]",
            {"tag": "ANALYZE", "notice": _ANALYZE},
        ),
        ("LOCK [TABLE] tables:locked,… IN ACCESS SHARE MODE [NOWAIT]", {"tag": "LOCK TABLE"}),
    )
    tag: str
    notice: str | None = None
    tables: tuple[ObjectName, ...]


SHOWN = (
    "changefeed jobs", "changefeed lag", "changefeed latency", "cluster settings", "columns",
    "create table", "databases", "jobs", "ranges", "tables", "transaction",
)  # fmt: skip
"""Words that SHOW takes beside variables, suggested for a misspelt name."""
