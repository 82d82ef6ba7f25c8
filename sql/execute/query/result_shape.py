"""The columns of a statement's result: known before it runs, and kept to afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ...introspection.tailrace_internal import JOB_COLUMNS
from ...lower.transpile import AnalyticSelect
from ...plan.plans import Plan, SelectPlan, WithPlan
from ...results.results import ArrowQuery, QueryEvaluator, ResultColumn, result_columns
from ...syntax import changefeed_statements as feeds
from ...syntax import statements
from ...syntax.keyspace_statements import BackupKeyspace, RebalanceReplication, RestoreKeyspace
from ...syntax.statement import Statement
from .evaluator_errors import asked_of_duckdb


def plain_columns(plan: Plan) -> tuple[ResultColumn, ...] | None:
    """The columns of a plan's result, where they are known without DuckDB."""
    if isinstance(plan, WithPlan):
        return plain_columns(plan.main)
    if isinstance(plan, SelectPlan):
        return None if plan.native is None else plan.native.names
    return plan.returning.columns


async def columns_of(
    select: AnalyticSelect,
    analytics: QueryEvaluator,
    tables: Sequence[TableDescriptor] | None = None,
) -> tuple[ResultColumn, ...]:
    """The columns of a query as DuckDB tells them, which runs nothing. Raises SQLError, which
    suggests columns of the `tables` that its author knows."""
    empty = {
        # Without rows, of any types: `empty_table` knows no lists of UUIDs.
        scan.registered: pa.Table.from_batches([], schema=scan.arrow_schema)
        for scan in select.scans
    }
    with asked_of_duckdb(select, tables):
        parameters = [None] * len(select.parameters)
        query = ArrowQuery(select.sql, empty, parameters, select.declared)
        return await analytics.describe(query)


def check_columns_same(
    described: Sequence[ResultColumn] | None, found: Sequence[ResultColumn] | None
) -> None:
    """Raises SQLError 0A000 where a client was told of other columns than there are now. Drivers
    prepare the statement again for that routine alone."""
    if described is None or found is None or described is found:
        return
    before, now = ([(each.name, each.type.kind) for each in told] for told in (described, found))
    if before != now:
        raise SQLError(
            "0A000",
            "cached plan must not change result type",
            detail="The schema has changed since the statement was prepared.",
            hint="Prepare the statement again.",
            routine="RevalidateCachedQuery",
        )


def known_columns(statement: Statement | None) -> tuple[ResultColumn, ...] | None:
    """The columns of a statement that no plan is made for; None where only a run can tell."""
    match statement:
        case statements.CreateChangefeed(sink=sink) if sink is not None:
            return result_columns("job_id:i")
        case statements.ExplainChangefeed(sample=sample) if sample is None:
            return EXPLAIN_COLUMNS
        case statements.SplitAt() | statements.UnsplitAt() | statements.ReadMirror():
            return None
    known = _KNOWN.get(type(statement))
    return known or (None if type(statement).__name__.startswith("Show") else ())


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

_KNOWN: dict[type, tuple[ResultColumn, ...]] = {
    statements.CreateChangefeed: CHANGEFEED_COLUMNS,
    feeds.FetchSubscription: CHANGEFEED_COLUMNS,
    statements.ExplainChangefeed: CHANGEFEED_COLUMNS,
    feeds.AlterChangefeed: ALTERED_COLUMNS,
    RebalanceReplication: ALTERED_COLUMNS,
    statements.AwaitJobs: JOB_COLUMNS,
    statements.VerifyChangefeed: VERIFY_COLUMNS,
    feeds.CreateSchedule: SCHEDULE_COLUMNS,
    feeds.RetryDeadLetters: RETRY_COLUMNS,
    BackupKeyspace: BACKUP_COLUMNS,
    RestoreKeyspace: BACKUP_COLUMNS,
    statements.Explain: EXPLAIN_COLUMNS,
}
