"""Which statements are refused within a transaction block, and which in one that only reads."""

from __future__ import annotations

from typing import get_args

from ..execute.ddl.ddl import DDL
from ..syntax import statements
from ..syntax.changefeed_statements import (
    AlterChangefeed,
    CreateSchedule,
    RetryDeadLetters,
    SkipDeadLetters,
    SubscriptionChange,
)
from ..syntax.connection_statements import ConnectionChange
from ..syntax.keyspace_statements import BackupKeyspace, RebalanceReplication, RestoreKeyspace
from .session_transactions import SessionTransactions

_NOT_IN_BLOCK: dict[type, str] = {
    statements.SplitAt: "a split of ranges",
    statements.UnsplitAt: "a split of ranges",
    statements.ExplainChangefeed: "EXPLAIN CHANGEFEED",
    statements.AwaitJobs: "SHOW JOBS WHEN COMPLETE",
    statements.VerifyChangefeed: "VERIFY CHANGEFEED",
    RetryDeadLetters: "RETRY DEAD LETTERS",
    SkipDeadLetters: "SKIP DEAD LETTERS",
    BackupKeyspace: "BACKUP",
    RestoreKeyspace: "RESTORE",
    statements.SetClusterSetting: "SET CLUSTER SETTING",
}
_NOT_READ_ONLY: dict[type, str] = {
    statements.Insert: "INSERT",
    statements.Update: "UPDATE",
    statements.Delete: "DELETE",
    statements.WithWrites: "a WITH that writes",
    statements.SplitAt: "ALTER",
    statements.UnsplitAt: "ALTER",
    AlterChangefeed: "ALTER CHANGEFEED",
    RebalanceReplication: "REBALANCE REPLICATION",
    CreateSchedule: "CREATE SCHEDULE",
    **dict.fromkeys(get_args(DDL), "DDL"),
    **dict.fromkeys(get_args(SubscriptionChange), "a change of subscriptions"),
    **dict.fromkeys(get_args(ConnectionChange), "a change of external connections"),
}
"""By the type of the statement, what the error calls it."""


def refuse_where_it_stands(statement: object, transactions: SessionTransactions) -> None:
    """Raises SQLError 25001 in a transaction block, and 25006 where the transaction only reads."""
    name = _NOT_IN_BLOCK.get(type(statement))
    if isinstance(statement, statements.ControlJobs):
        name = f"{statement.action.value} JOB"
    if name is not None:
        transactions.refuse_block(name)
    name = _NOT_READ_ONLY.get(type(statement))
    if name is not None:
        transactions.refuse_read_only(name)
