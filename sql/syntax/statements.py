"""Statements as the parser hands them on: frozen values with positions, no behaviour.

A position is the one-based character of the statement text at which the thing begins, as Postgres
counts it. What sqlglot parsed (queries, expressions) stays a sqlglot tree; its identifiers carry
their own offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from .as_of_clause import AsOf
from .changefeed_statements import (
    AlterChangefeed,
    CreateSchedule,
    DatabaseFeed,
    FeedSelect,
    FetchSubscription,
    LetterStatement,
    ShowFeedLag,
    ShowFeedLatency,
    ShowSchedules,
    ShowSubscriptions,
    SubscriptionChange,
)
from .conflict_clause import OnConflict, Overriding
from .connection_statements import ConnectionChange, ShowConnections
from .copy_options import CopyOptions
from .cursor_statements import CursorStatement
from .keyspace_statements import (
    BackupKeyspace,
    KeyspaceFeed,
    KeyspaceStatement,
    RebalanceReplication,
    RestoreKeyspace,
    ShowKeyspaceRanges,
    ShowKeyspaces,
    ShowReplications,
)
from .maintenance_statements import Maintain
from .names import ObjectName as ObjectName
from .names import Option as Option
from .names import TypeName as TypeName
from .relaxed_statements import RelaxedStatement, ShowRelaxedLogs
from .rights_statements import RightsStatement
from .row_locks import RowLock
from .schema_statements import (
    ColumnDefinition,
    IndexDefinition,
    SchemaStatement,
    TableConstraint,
)
from .show_statements import Cancel, ShowQueries, ShowSessions
from .transaction_statements import TransactionStatement
from .type_statements import SequenceStatement, TypeStatement
from .user_statements import UserStatement
from .view_statements import ViewStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    name: str
    if_not_exists: bool


class OnCommit(Enum):
    """What a temporary table becomes of at the end of each transaction. The value is its words."""

    PRESERVE = "PRESERVE ROWS"
    DELETE = "DELETE ROWS"
    DROP = "DROP"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """`primary_key` is the table-level constraint, empty without one, and `primary_name` what it is
    called; `elements` are the others."""

    table: ObjectName
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    if_not_exists: bool
    parameters: tuple[Option, ...]
    primary_name: str | None = None
    elements: tuple[TableConstraint | IndexDefinition, ...] = ()
    temporary: OnCommit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableAs:
    """`columns` are the names given for the query's first columns; `with_data` is false where the
    table is to stay empty."""

    table: ObjectName
    columns: tuple[str, ...]
    query: Query
    if_not_exists: bool
    parameters: tuple[Option, ...]
    with_data: bool
    temporary: OnCommit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    names: tuple[ObjectName, ...]
    if_exists: bool
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTableSet:
    """ALTER TABLE … SET (…), and RESET (…) where every value is None."""

    table: ObjectName
    parameters: tuple[Option, ...]
    if_exists: bool
    reset: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesOf:
    """A table's ranges, or those of its index `index`."""

    table: ObjectName
    index: str | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAt:
    """`rows` are the borders: some values of the key's first columns each."""

    of: RangesOf
    rows: tuple[tuple[exp.Expr, ...], ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsplitAt:
    """`rows` as in SPLIT AT; None for ALL."""

    of: RangesOf
    rows: tuple[tuple[exp.Expr, ...], ...] | None
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRanges:
    of: RangesOf
    details: bool


class InsertMode(Enum):
    INSERT = "INSERT"
    UPSERT = "UPSERT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """`columns` is None where the statement names none; `source` is None for DEFAULT VALUES."""

    table: ObjectName
    columns: tuple[exp.Identifier, ...] | None
    source: exp.Expr | None
    mode: InsertMode
    returning: tuple[exp.Expr, ...]
    alias: str | None = None
    conflict: OnConflict | None = None
    overriding: Overriding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    table: ObjectName
    alias: str | None
    assignments: tuple[tuple[exp.Column, exp.Expr], ...]
    where: exp.Expr | None
    returning: tuple[exp.Expr, ...]
    sources: tuple[exp.Expr, ...] = ()
    ctes: tuple[exp.CTE, ...] = ()
    order: exp.Order | None = None
    limit: exp.Limit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """`sources` are the tables of USING, of an UPDATE those of FROM; `ctes` the WITH before it.
    With a `limit` only so many rows are concerned, the first in `order`."""

    table: ObjectName
    alias: str | None
    where: exp.Expr | None
    returning: tuple[exp.Expr, ...]
    sources: tuple[exp.Expr, ...] = ()
    ctes: tuple[exp.CTE, ...] = ()
    order: exp.Order | None = None
    limit: exp.Limit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SELECT, WITH, VALUES or TABLE, less its AS OF clause and its locking clauses."""

    tree: exp.Expr
    as_of: AsOf | None
    locks: tuple[RowLock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingStep:
    """A CTE that writes. What it returns the parts behind it read as table `$with.name`."""

    name: str
    columns: tuple[str, ...]
    statement: Insert | Update | Delete
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WithWrites:
    """A statement whose WITH writes. All its parts see the rows as they were before it."""

    steps: tuple[WritingStep, ...]
    main: Query | Insert | Update | Delete


PlannedStatement = Query | Insert | Update | Delete | WithWrites
"""A query or DML: what the planner makes a plan of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateChangefeed:
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
    """How many tasks the replication may have; without, it is one feed."""
    query: FeedSelect | None = None
    whole_database: DatabaseFeed | None = None
    """Then it names no tables: they are those of that database, later ones too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowJobs:
    """SHOW JOBS, SHOW CHANGEFEED JOBS, SHOW [CHANGEFEED] JOB id. With `watched` each feed's tables
    are told with their states."""

    changefeeds_only: bool
    job_id: int | None
    watched: bool = False


class JobAction(Enum):
    CANCEL = "CANCEL"
    PAUSE = "PAUSE"
    RESUME = "RESUME"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlJobs:
    """PAUSE, RESUME and CANCEL of the jobs named, of those that `query` finds, or of a
    `replication`'s. With `schedules` the ids are of schedules, and CANCEL drops them."""

    action: JobAction
    job_ids: tuple[int, ...]
    query: Query | None = None
    replication: str | None = None
    schedules: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitJobs:
    """SHOW JOBS WHEN COMPLETE: the jobs that are named or that `query` finds, when all are over."""

    job_ids: tuple[int, ...]
    query: Query | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyChangefeed:
    """Compares a feed's sink with its tables: as of now, or `at_resolved` where the feed stands.
    What differs is sent again with `repairs`."""

    job_id: int
    at_resolved: bool
    repairs: bool
    replication: str | None = None
    """Instead of the job's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetClusterSetting:
    """The value is its text; None resets to the default."""

    name: str
    value: str | None
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowClusterSettings:
    """All settings, or the one that is named."""

    name: str | None
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTables:
    database: str | None


@dataclass(frozen=True, slots=True)
class ShowDatabases:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateTable:
    """SHOW CREATE of a table or a view; with `view`, of a view alone."""

    table: ObjectName
    view: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowColumns:
    table: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDatabase:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSession:
    """SHOW name: a fact of the session (`database`)."""

    name: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """EXPLAIN; with ANALYZE the statement is carried out."""

    analyze: bool = False
    statement: Query | Insert | Update | Delete | WithWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainChangefeed:
    """EXPLAIN CHANGEFEED; `sample` is how many messages are asked for, None for facts alone."""

    changefeed: CreateChangefeed
    sample: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """`text` is the inner statement, with blanks in front so that its positions are true."""

    name: str
    types: tuple[TypeName, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutePrepared:
    name: str
    arguments: tuple[exp.Expr, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deallocate:
    """`name` is None for ALL."""

    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """DISCARD, which a pool sends between two clients; `target` is the command tag."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConstraints:
    """When the open transaction looks at foreign keys that are deferrable: all, where none has a
    name here."""

    names: tuple[ObjectName, ...]
    deferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFrom:
    """`columns` is None for all of the table's that are not computed."""

    table: ObjectName
    columns: tuple[str, ...] | None
    options: CopyOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTo:
    """`whole` is the table whose rows `query` reads without naming columns."""

    query: Query
    options: CopyOptions
    whole: ObjectName | None = None


@dataclass(frozen=True, slots=True)
class ReadMirror:
    """A mirror client's query in DuckDB's SQL, checked by the mirror's reader."""

    text: str


Statement = (
    CreateDatabase
    | CreateTable
    | CreateTableAs
    | DropTable
    | AlterTableSet
    | SplitAt
    | UnsplitAt
    | ShowRanges
    | SchemaStatement
    | ExplainChangefeed
    | PlannedStatement
    | TransactionStatement
    | CreateChangefeed
    | AlterChangefeed
    | RebalanceReplication
    | ShowFeedLag
    | LetterStatement
    | CreateSchedule
    | ShowSchedules
    | ShowFeedLatency
    | ShowJobs
    | ControlJobs
    | AwaitJobs
    | VerifyChangefeed
    | SetClusterSetting
    | ShowClusterSettings
    | ShowTables
    | ShowDatabases
    | ShowCreateTable
    | ShowColumns
    | ShowSession
    | UseDatabase
    | Explain
    | Prepare
    | ExecutePrepared
    | Deallocate
    | UserStatement
    | TypeStatement
    | SequenceStatement
    | ViewStatement
    | RelaxedStatement
    | ShowRelaxedLogs
    | KeyspaceStatement
    | ShowKeyspaces
    | ShowKeyspaceRanges
    | ShowReplications
    | BackupKeyspace
    | RestoreKeyspace
    | SubscriptionChange
    | ConnectionChange
    | ShowConnections
    | FetchSubscription
    | ShowSubscriptions
    | RightsStatement
    | ShowQueries
    | ShowSessions
    | Cancel
    | Discard
    | SetConstraints
    | CopyFrom
    | CopyTo
    | CursorStatement
    | Maintain
    | ReadMirror
)
