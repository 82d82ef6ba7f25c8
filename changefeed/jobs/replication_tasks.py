"""Tasks of a replication: which job sends which keys, and on which node.

A replication with workers is so many changefeeds, each of a part of the keys and each a job that
any node claims. Nothing stands above them, so nothing else can die: together they are the
replication, and its checkpoint is the least of theirs.

    ranges       [a b)[b c)[c d)[d e)[e f)
    2 workers    [a     c)[c           f)      almost equal counts of ranges
    8 workers    [a b)[b c)[c d)[d e)[e f)     at most one a range

The parts are cut when the replication is created, and anew by REBALANCE REPLICATION: a task whose
keys are others goes on from the least that is resolved of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ...catalog.jobs import JobRecord, JobState, JobStateRefused
from ...catalog.jobs.job_store import JobStore
from ...catalog.leases.liveness import living_nodes
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp
from ...kvlayer.raw import user_key
from ...kvlayer.txn import Transaction
from ..targets import KeyspacePart
from .create import protect
from .description import describe
from .details import (
    ChangefeedDetails,
    decode_details,
    decode_progress,
    encode_details,
)
from .services import ChangefeedServices, RangedStore

WORKERS_MAX = 32
"""Each is a job with a feed and connections of its own."""


def cut(
    services: ChangefeedServices, keyspace_id: int, whole: KeyspacePart, workers: int
) -> list[KeyspacePart]:
    """The parts of so many tasks, or of fewer where there are fewer ranges. Raises SQLError on a
    node that does not have the store's ranges."""
    store, span = services.store, whole.span(keyspace_id)
    if not isinstance(store, RangedStore):
        raise SQLError(
            "0A000",
            "keys are dealt to workers on the node that has the store",
            hint="Connect to the node that was started without --join.",
        )
    inside = [found.start for found in store.ranges(span) if found.start > span.start]
    borders = [key for each in inside if (key := _user_key(each)) is not None]
    count = min(workers, len(borders) + 1)
    cuts = [borders[place * (len(borders) + 1) // count - 1] for place in range(1, count)]
    starts: list[bytes] = [whole.start, *cuts]
    ends: list[bytes | None] = [*cuts, whole.end]
    return [
        msgspec.structs.replace(whole, start=start, end=end)
        for start, end in zip(starts, ends, strict=True)
    ]


def _user_key(border: bytes) -> bytes | None:
    try:
        return user_key(border)
    except ValueError:
        return None  # a range may begin between any two keys of the store


async def dealt_nodes(services: ChangefeedServices, count: int) -> list[int]:
    """The nodes where so many tasks are to begin, this one first."""
    others = await living_nodes(services.store) - {services.node_id}
    nodes = [services.node_id, *sorted(others)]
    return [nodes[place % len(nodes)] for place in range(count)]


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a replication, and its job."""

    job: JobRecord
    details: ChangefeedDetails

    @property
    def part(self) -> KeyspacePart:
        (target,) = self.details.targets
        assert target.keyspace is not None, target
        return target.keyspace


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """The changes of a rebalance: descriptions of jobs by their ids, and jobs that are to be
    made."""

    described: dict[int, str]
    added: Sequence[ChangefeedDetails]


async def rebalance(
    services: ChangefeedServices, transaction: Transaction, job_ids: Sequence[int]
) -> Rebalanced:
    """Cuts the parts anew, in `transaction`, for these jobs and for as many more as there are
    workers for. Raises SQLError, and then nothing is changed."""
    tasks = await _tasks(services, transaction, job_ids)
    reached = min([await _reached(services, task) for task in tasks])
    first = tasks[0].details
    assert first.task is not None, first
    (target,) = first.targets
    parts = cut(services, target.table_id, first.task.whole, first.task.workers)
    if len(parts) < len(tasks):
        raise SQLError(
            "55000",
            f'replication "{first.replication}" has {len(tasks)} tasks, and its keys lie in '
            f"{len(parts)} ranges",
            hint="CANCEL REPLICATION and create it again: it goes on where it stands.",
        )
    nodes = await dealt_nodes(services, len(parts))
    described: dict[int, str] = {}
    added: list[ChangefeedDetails] = []
    for place, part in enumerate(parts):
        known = tasks[place] if place < len(tasks) else None
        if known is not None and known.part == part:
            continue
        old = first if known is None else known.details
        details = await _moved(services, transaction, old, part, place + 1, reached)
        if known is None:
            added.append(msgspec.structs.replace(details, node_id=nodes[place]))
            continue
        await services.protections.release(transaction, old.protection_id)
        described[known.job.id] = describe(details)
        await JobStore(services.store).put_payload(
            transaction, known.job, encode_details(details), described[known.job.id]
        )
    return Rebalanced(described, added)


async def _tasks(
    services: ChangefeedServices, transaction: Transaction, job_ids: Sequence[int]
) -> list[Task]:
    """In the order of their keys."""
    jobs, found = JobStore(services.store), []
    with transaction.tracking(True):
        for job_id in job_ids:
            job = await jobs.read(transaction, job_id)
            if job.state.final or job.state is JobState.CANCEL_REQUESTED:
                raise JobStateRefused(job_id, job.state, "be rebalanced")
            found.append(Task(job, decode_details(job.payload)))
    for task in found:
        if task.details.task is None:
            raise SQLError(
                "55000",
                f'replication "{task.details.replication}" has one worker: there is nothing to '
                "rebalance",
                hint="CANCEL REPLICATION and create it WITH (workers = n): it goes on where it "
                "stands.",
            )
    return sorted(found, key=lambda task: task.part.start)


async def _reached(services: ChangefeedServices, task: Task) -> Timestamp:
    """The replica has at least as much: it is told before the job is."""
    saved = await JobStore(services.store).progress(task.job.id)
    resolved = decode_progress(saved).resolved if saved else None
    return resolved or task.details.start_at


async def _moved(
    services: ChangefeedServices,
    transaction: Transaction,
    details: ChangefeedDetails,
    part: KeyspacePart,
    number: int,
    reached: Timestamp,
) -> ChangefeedDetails:
    """The same feed with other keys, of which nothing above `reached` is collected."""
    (target,), task = details.targets, details.task
    assert task is not None, details
    protection_id = await protect(
        services,
        transaction,
        [services.target(target.table_id, part)],
        reached,
        max_age_seconds=details.parsed_options.gc_protect_expires_after,
    )
    return msgspec.structs.replace(
        details,
        targets=(msgspec.structs.replace(target, keyspace=part),),
        task=msgspec.structs.replace(task, number=number),
        protection_id=protection_id,
    )
