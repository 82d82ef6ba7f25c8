"""Reservations: what a feed has to itself at its target, from the moment it is created.

A mirror's file says which job owns which of its tables, but only once that job has opened it. Until
then the job's own row stands for it: whoever creates a feed reads the rows of all jobs in the
creating transaction, and so one of two transactions that would create feeds into one new mirror
table does not commit.

What a file says holds for as long as that job lives (`lives`), and a protected timestamp for as
long as a job names it (`release_orphans`): who could not be told of the end of a job finds out.
"""

from __future__ import annotations

import asyncio

from ...catalog.descriptors.system_tables import JOBS
from ...catalog.jobs import JobNotFound
from ...catalog.jobs.job_store import JobStore
from ...catalog.jobs.record import JobRecord
from ...catalog.jobs.states import JobState
from ...catalog.rights.quotas import owned_rows
from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess, committed
from ...kvlayer.errors import RetryableTransaction
from ...kvlayer.txn import Transaction
from .details import ChangefeedDetails, UnknownFormat, decode_details
from .services import ChangefeedServices

JOB_KIND = "CHANGEFEED"

FEED_QUOTA = owned_rows(
    "changefeeds and tasks of replications",
    "changefeed.jobs",
    500,
    2_000,
    remedy="CANCEL JOB",
    table=JOBS,
    kind=JOB_KIND,
)
PROTECTION_OWNER = "changefeed"
"""What the records of feeds' protected timestamps say of who needs them."""

CANCEL_SECONDS_MAX = 10.0
"""The time that a feed which is being canceled has to leave its place to the next."""

LOOK_SECONDS = 0.02
"""The time between two looks at a job that is being canceled."""


async def check_free(
    services: ChangefeedServices,
    transaction: Transaction,
    details: ChangefeedDetails,
    *,
    job_id: int | None = None,
) -> None:
    """Raises SQLError 55000 where another feed than `job_id` has what this one would have to
    itself.

    A feed that is being canceled is waited for. Then the transaction, which has read it as it was
    before, is to be run again: raises RetryableTransaction.
    """
    wanted = await _reserved(services, transaction, details)
    if not wanted:
        return
    with transaction.tracking(True):  # whatever its isolation: it commits only if this holds then
        rows = await transaction.scan(JOBS.primary_span)
    for key, body in rows:
        job = JobRecord.decode(key, body)
        if job.kind != JOB_KIND or job.id == job_id:
            continue
        taken = wanted & await _reserved_by(services, transaction, job, details)
        if not taken:
            continue
        remedy = f"run CANCEL JOB {job.id}"
        if job.state is JobState.CANCEL_REQUESTED:
            if await _ends(services.store, job.id):
                raise RetryableTransaction(f"changefeed job {job.id} has just been canceled")
            remedy = f"wait until SHOW JOB {job.id} says that it is canceled"
        raise SQLError(
            "55000",
            f"{min(taken)} belongs to changefeed job {job.id}",
            hint=f"Choose another, or {remedy}.",
        )


async def _ends(store: StoreAccess, job_id: int) -> bool:
    """Waits until the job is over. False when it is not within `CANCEL_SECONDS_MAX`."""
    try:
        async with asyncio.timeout(CANCEL_SECONDS_MAX):
            while await lives(store, job_id):
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        return False
    return True


async def lives(store: StoreAccess, job_id: int) -> bool:
    """Whether a changefeed's job may still run. One that does not never will again."""
    try:
        return not (await JobStore(store).get(job_id)).state.final
    except JobNotFound:
        return False


async def release_orphans(services: ChangefeedServices) -> int:
    """Releases the protected timestamps of feeds whose jobs are over; says how many there were.

    Records and jobs are read in one serializable transaction: a feed that is being created has
    both or neither. Raises UnknownFormat where a job does not tell which record it needs.
    """
    async with committed(services.store) as transaction:
        found = await services.protections.read_all(transaction)
        owned = {record.id for record in found if record.owner == PROTECTION_OWNER}
        if owned:
            for key, body in await transaction.scan(JOBS.primary_span):
                owned -= _protections_of(JobRecord.decode(key, body))
        for record_id in owned:
            await services.protections.release(transaction, record_id)
    return len(owned)


def _protections_of(job: JobRecord) -> set[bytes]:
    """The records that a feed's job still needs, if it is one."""
    if job.kind != JOB_KIND or job.state.final:
        return set()
    return set(decode_details(job.payload).protections)


async def _reserved_by(
    services: ChangefeedServices,
    transaction: Transaction,
    job: JobRecord,
    asking: ChangefeedDetails,
) -> frozenset[str]:
    """The reservation of a job that the asking one conflicts with, if any. A path is another file
    on another node, and the tasks of a replication share its target."""
    try:
        details = decode_details(job.payload)
        local = services.kinds.kind_of(details.sink_uri).local
        here = details.node_id == asking.node_id or not local
        if here and not details.together_with(asking):
            return await _reserved(services, transaction, details)
    except (UnknownFormat, SQLError):
        pass  # it cannot run here as things stand, and what it has made its file tells
    return frozenset()


async def _reserved(
    services: ChangefeedServices, transaction: Transaction, details: ChangefeedDetails
) -> frozenset[str]:
    """By the names that the tables have now: a feed that has not begun takes those."""
    tables = [
        await services.descriptors.read(transaction, target.table_id)
        for target in details.targets
        if not (target.refused or target.state.final)
    ]
    names = [table.name for table in tables if table is not None]
    return services.kinds.kind_of(details.sink_uri).reserved(details.sink_uri, names)
