"""Statements that write to the catalog: in the transaction that is open, or in one of their own.

In the open transaction they are committed with it. Without one they are tried until they commit,
and return when what they began can be seen.
"""

from __future__ import annotations

from ..kvlayer.access import Transaction
from .executor.ddl import DDL, jobs_begun, run_ddl, wait_until_seen
from .executor.feeds import create_changefeed
from .implicit import attempts, in_transaction
from .parser import statements
from .relations import LeaseScope
from .results import Result
from .services import Services
from .transactions import OpenTransaction


async def change_catalog(
    services: Services, statement: DDL, opened: OpenTransaction | None, database: str
) -> Result:
    """DDL. By itself it returns when every node has seen the change, and its job has done it."""
    if opened is not None:

        async def work() -> Result:
            # The catalog's invariants rest on what was read, whatever the isolation.
            with opened.transaction.tracking(True):
                return await run_ddl(
                    services, statement, opened.transaction, opened.scope, database
                )

        return await opened.statement(work)

    async def alone(transaction: Transaction, scope: LeaseScope) -> tuple[Result, tuple[int, ...]]:
        result = await run_ddl(services, statement, transaction, scope, database)
        return result, jobs_begun(transaction)

    (result, jobs), at, changed = await attempts(
        services,
        lambda scope: in_transaction(
            services.store, scope, lambda transaction: alone(transaction, scope)
        ),
    )
    # Behind the attempts: what is committed must not be run again.
    late = await wait_until_seen(services, changed, jobs)
    return Result(tag=result.tag, notice=late or result.notice, commit_timestamp=at)


async def begin_changefeed(
    services: Services,
    statement: statements.CreateChangefeed,
    opened: OpenTransaction | None,
    database: str,
) -> Result:
    """CREATE CHANGEFEED into a sink: its job, which starts when the transaction has committed."""
    if opened is not None:

        async def work() -> Result:
            with opened.transaction.tracking(True):
                return await create_changefeed(
                    services, statement, opened.transaction, opened.scope, database
                )

        return await opened.statement(work)

    result, _, _ = await attempts(
        services,
        lambda scope: in_transaction(
            services.store,
            scope,
            lambda transaction: create_changefeed(
                services, statement, transaction, scope, database
            ),
        ),
    )
    return result


async def stream_changefeed(
    services: Services, statement: statements.CreateChangefeed, database: str
) -> Result:
    """CREATE CHANGEFEED without a sink: its rows are the statement's, for as long as it is read."""
    transaction = services.store.begin(read_only=True)
    await transaction.started()
    scope = LeaseScope(services.leases)
    try:
        return await create_changefeed(services, statement, transaction, scope, database)
    finally:
        scope.release()
        await transaction.rollback()
