"""The columns of a statement's result: known before it runs, and kept to afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...introspection.tailrace_internal import JOB_COLUMNS
from ...plan.plans import Plan, SelectPlan, WithPlan
from ...results.results import ResultColumn, result_columns
from ...syntax.changefeed_statements import (
    AlterChangefeed,
    CreateSchedule,
    FetchSubscription,
    RetryDeadLetters,
)
from ...syntax.keyspace_statements import BackupKeyspace, RebalanceReplication, RestoreKeyspace
from ...syntax.statements import (
    AwaitJobs,
    CreateChangefeed,
    Explain,
    ExplainChangefeed,
    SplitAt,
    Statement,
    UnsplitAt,
    VerifyChangefeed,
)


def plain_columns(plan: Plan) -> tuple[ResultColumn, ...] | None:
    """The columns of a plan's result, where they are known without DuckDB."""
    if isinstance(plan, WithPlan):
        return plain_columns(plan.main)
    if isinstance(plan, SelectPlan):
        return None if plan.native is None else plan.native.names
    return plan.returning.columns if plan.returning.query is None else None


BYTES = ColumnType(TypeKind.BYTES)


def check_columns_same(
    described: Sequence[ResultColumn] | None, found: Sequence[ResultColumn] | None
) -> None:
    """Raises SQLError 0A000 where a client was told of other columns than there are now."""
    if described is None or found is None or described is found:
        return
    if [_shape(column) for column in described] != [_shape(column) for column in found]:
        raise SQLError(
            "0A000",
            "cached plan must not change result type",
            detail="The schema has changed since the statement was prepared.",
            hint="Prepare the statement again.",
        )


def _shape(column: ResultColumn) -> tuple[str, TypeKind]:
    return column.name, column.type.kind


def known_columns(statement: Statement | None) -> tuple[ResultColumn, ...] | None:
    """The columns of a statement that no plan is made for; None where only a run can tell."""
    match statement:
        case CreateChangefeed(sink=None) | FetchSubscription():
            return CHANGEFEED_COLUMNS
        case CreateChangefeed():
            return result_columns("job_id:i")
        case ExplainChangefeed(sample=sample):
            return EXPLAIN_COLUMNS if sample is None else CHANGEFEED_COLUMNS
        case AlterChangefeed() | RebalanceReplication():
            return ALTERED_COLUMNS
        case AwaitJobs():
            return tuple(ResultColumn(name, type) for name, type in JOB_COLUMNS.items())
        case VerifyChangefeed():
            return VERIFY_COLUMNS
        case CreateSchedule():
            return SCHEDULE_COLUMNS
        case RetryDeadLetters():
            return RETRY_COLUMNS
        case BackupKeyspace() | RestoreKeyspace():
            return BACKUP_COLUMNS
        case Explain():
            return EXPLAIN_COLUMNS
        case SplitAt() | UnsplitAt():
            return None
    return None if type(statement).__name__.startswith("Show") else ()


EXPLAIN_COLUMNS = result_columns("property value")
"""Columns of EXPLAIN, with ANALYZE too: the statement's own rows are not shown."""

ALTERED_COLUMNS = result_columns("job_id:i job_description")
"""Columns of ALTER CHANGEFEED and REBALANCE REPLICATION: each job with its new description."""

VERIFY_COLUMNS = result_columns("table_name key difference")
"""Columns of VERIFY CHANGEFEED, a row for each row that differs."""

SCHEDULE_COLUMNS = result_columns("schedule_id:i label status first_run:t schedule_expr")
"""Columns of CREATE SCHEDULE."""

RETRY_COLUMNS = result_columns("table_name key mvcc_timestamp outcome")
"""Columns of RETRY DEAD LETTERS, a row for each letter."""

BACKUP_COLUMNS = result_columns("checkpoint rows:i files:i")
"""Columns of BACKUP and RESTORE: the backup's timestamp and its size."""

CHANGEFEED_COLUMNS = result_columns("table key:y value:y")
"""Columns that a changefeed without a sink streams; key and value are JSON."""
