"""The owner and the first grants of a new object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import Descriptor
from ....catalog.jobs.record import JobRecord, job_key
from ....catalog.rights.privileges import securable
from ....catalog.rights.rights import (
    add_privileges,
    forget_object,
    initial_grants,
    read_rights,
    set_owner,
)
from ....catalog.rights.users import PUBLIC, ROOT
from ....catalog.store.catalog_changes import CatalogChanges
from ....kvlayer.access import Transaction


async def settle_rights(transaction: Transaction, user: str, before: Sequence[Descriptor]) -> None:
    """Gives the objects that a statement has made to its user, and forgets those that it has
    dropped. `before` are the versions that the transaction had published before the statement."""
    if not transaction.commit_checks:
        return
    changes = CatalogChanges.of(transaction)
    for descriptor in changes.published:
        if any(descriptor is earlier for earlier in before):
            continue
        if descriptor.dropped:
            with transaction.tracking(False):
                rights = await read_rights(transaction)
            await forget_object(transaction, rights, descriptor.id)
        elif changes.created(descriptor.id):
            await _endow(transaction, user, descriptor)


async def _endow(transaction: Transaction, user: str, descriptor: Descriptor) -> None:
    made = securable(descriptor)
    privileges = initial_grants(made.kind, made.name)
    if privileges:
        await add_privileges(transaction, made.id, PUBLIC, privileges)
    if user != ROOT:
        with transaction.tracking(False):
            rights = await read_rights(transaction)
        await set_owner(transaction, rights, made.id, user)


async def own_jobs(transaction: Transaction, user: str, job_ids: Sequence[int]) -> None:
    """Notes whose jobs these are, which begin with the transaction."""
    if user == ROOT:
        return
    changes = CatalogChanges.of(transaction)
    for job_id in job_ids:
        key = job_key(job_id)
        body = await transaction.get(key)
        assert body is not None, job_id
        job = JobRecord.decode(key, body)
        if job.owner is None:
            await changes.put_bookkeeping(*replace(job, owner=user).encode())
