"""The turn of a table: its schema changes are made one after the other, each behind its leases."""

from __future__ import annotations

import asyncio

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.errors import RetryableTransaction
from ....kvlayer.settings import declare_duration
from ..changer import Changer

LEASE_WAIT = declare_duration(
    "sql.schema_change.lease_wait_timeout",
    30.0,
    "how long a schema change waits for leases on older versions to end",
)


async def wait_for_room(changer: Changer, table: TableDescriptor) -> None:
    """Returns when a transaction may publish the table's next version: no job is at it, and nobody
    uses an older one, this session least of all.

    Raises RetryableTransaction where a job was at it, for the table is another since, and where an
    earlier statement has used another version; SQLError 55P03 and 55000; LeaseWaitTimeout.
    """
    changer.scope.drop(table)
    if table.schema_change_job is not None:
        await _wait_for_turn(changer, table)
        raise RetryableTransaction(f'table "{table.name}" has just been changed')
    timeout = changer.services.store.settings.get(LEASE_WAIT)
    await changer.services.leases.wait_for_one_version(table.id, timeout=timeout)


async def _wait_for_turn(changer: Changer, table: TableDescriptor) -> None:
    """Waits until the job that changes the table is done with it.

    A transaction that has written rows, or uses other tables, waits for a bounded time alone: the
    job may be waiting for them, and nobody else would see that the two wait for each other.
    """
    bound = changer.services.store.settings.get(LEASE_WAIT)
    waited_for = changer.transaction.write_count > 0 or changer.scope.holds_any
    try:
        async with asyncio.timeout(bound if waited_for else None):
            await changer.services.schema_changes.wait_for_turn(table)
    except TimeoutError:
        raise SQLError(
            "55P03",
            f'table "{table.name}" is still being changed by job {table.schema_change_job} '
            f"after {bound:g} s",
            detail="The job may be waiting for rows that this transaction has written, or for "
            "tables that it uses.",
            hint="End it first, and change the table in a transaction of its own.",
        ) from None
