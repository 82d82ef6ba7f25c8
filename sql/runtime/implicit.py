"""Statements that are transactions by themselves, and are run again where the store asks; and
changes of the catalog, which are that, or statements of the open transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...catalog.store.catalog_changes import tables_changed
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import RetryableTransaction, StoreUnreachable
from ...kvlayer.txn import Transaction
from .relations import LeaseScope
from .services import Services
from .transactions import OpenTransaction

ATTEMPTS_MAX = 10
"""Times that a statement is run before its client hears of conflicts."""

RETRY_SECONDS = 0.002
"""The first pause between two attempts; each later one is twice as long, and all are jittered."""

T = TypeVar("T")


async def pause_before(store: StoreAccess, attempt: int) -> None:
    """Waits a little before attempt number `attempt` + 1, so that who conflicted may end."""
    store.metrics.add("sql_statement_retries_total")
    await asyncio.sleep(RETRY_SECONDS * 2 ** (attempt - 1) * (0.5 + store.random.random()))


async def attempts(services: Services, attempt: Callable[[LeaseScope], Awaitable[T]]) -> T:
    """Returns the result of `attempt`. Each attempt gets a scope of its own, released behind it.

    A store that is away is tried once more, for its connection may just have been lost: each try
    waits for it for seconds.
    """
    away = False
    for number in range(1, ATTEMPTS_MAX + 1):
        scope = LeaseScope(services.leases)
        try:
            return await attempt(scope)
        except RetryableTransaction as error:
            unreachable = isinstance(error, StoreUnreachable)
            if number == ATTEMPTS_MAX or (away and unreachable):
                raise
            away = unreachable
        finally:
            scope.release()
        await pause_before(services.store, number)
    raise AssertionError("the last attempt returns or raises")


async def in_transaction(
    store: StoreAccess,
    scope: LeaseScope,
    work: Callable[[Transaction], Awaitable[T]],
    *,
    lock_timeout: float | None = None,
) -> tuple[T, Timestamp, tuple[int, ...]]:
    """Work in a transaction of its own, committed: its result, when, and which tables changed."""
    transaction = store.begin(lock_timeout=lock_timeout)
    try:
        await transaction.started()
        result = await work(transaction)
        changed = tables_changed(transaction)
        called_ns = store.clock.wall.monotonic_ns()
        await scope.renew(store.clock.last, changed)
        at = await transaction.commit(deadline=scope.deadline, commit_called_ns=called_ns)
    except BaseException:
        await transaction.rollback()
        raise
    return result, at, changed


async def alone(
    services: Services, work: Callable[[Transaction, LeaseScope], Awaitable[T]]
) -> tuple[T, Timestamp, tuple[int, ...]]:
    """Work in a transaction of its own, as `in_transaction`, tried until it is committed."""
    return await attempts(
        services,
        lambda scope: in_transaction(
            services.store, scope, lambda transaction: work(transaction, scope)
        ),
    )


async def in_opened(
    opened: OpenTransaction, work: Callable[[Transaction, LeaseScope], Awaitable[T]]
) -> T:
    """Work as a statement of the open transaction. What it reads is tracked whatever the isolation:
    the invariants of the catalog rest on it."""

    async def tracked() -> T:
        with opened.transaction.tracking(True):
            return await work(opened.transaction, opened.scope)

    return await opened.statement(tracked)
