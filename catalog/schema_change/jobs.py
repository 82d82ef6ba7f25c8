"""Schema changes as whoever begins them sees them: a job to write, and to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ...kvlayer.access import StoreAccess, Transaction
from ..descriptors.descriptor import TableDescriptor
from ..jobs.job_store import JobStore
from ..jobs.record import JobRecord
from ..jobs.states import JobState
from ..store.catalog_changes import CatalogChanges
from ..store.descriptor_store import DescriptorStore
from ..values.errors import SQLError
from .job import JOB_KIND, publish_stage
from .payload import decode_change, decode_progress, encode, schema_change
from .stages import Stage, VersionStage
from .targets import Target

POLL_SECONDS_MIN = 0.002
POLL_SECONDS_MAX = 0.05
"""How often a statement looks whether its change is done: its stages take milliseconds."""


class SchemaChanges:
    """Begins schema changes, and waits for them."""

    def __init__(self, store: StoreAccess, descriptors: DescriptorStore) -> None:
        self._store = store
        self._descriptors = descriptors
        self._jobs = JobStore(store)

    async def begin(
        self,
        transaction: Transaction,
        table: TableDescriptor,
        targets: Sequence[Target],
        stages: Sequence[Stage],
        description: str,
        *,
        draft: JobRecord | None = None,
        beside_locked: bool = False,
    ) -> JobRecord | None:
        """Publishes the first stage in the transaction, and writes the job for the others.

        `draft` is the job that this transaction has already written for the table, which is
        written again. Returns the job, or None where one version is all there is to do.
        """
        first = stages[0]
        assert isinstance(first, VersionStage), stages
        changes = CatalogChanges.of(transaction)
        if len(stages) == 1 and draft is None:
            await publish_stage(self._descriptors, transaction, table, targets, first, None)
            return None
        change = schema_change(table, targets, first=1, beside_locked=beside_locked)
        payload = encode(change)
        job = draft or await self._jobs.draft(JOB_KIND, description, payload)
        job = replace(job, description=description, payload=payload)
        await publish_stage(self._descriptors, transaction, table, targets, first, job.id)
        await changes.put_bookkeeping(*job.encode())
        if draft is None:
            changes.jobs.append(job.id)
        return job

    async def wait(self, job_id: int) -> str | None:
        """Returns when the table is as it is to be; a notice, if the job was paused.

        What is left then is to remove data that nobody reads. Raises the SQLError that the change
        failed with, once the table is as it was.
        """
        pause = POLL_SECONDS_MIN
        while True:
            job = await self._jobs.get(job_id)
            if job.kind != JOB_KIND:  # one that begins schema changes of its own
                if job.state is JobState.PAUSED:
                    return f"the change is paused: run RESUME JOB {job_id}"
                if job.state.final:
                    if job.state is not JobState.SUCCEEDED:
                        raise SQLError("XX000", f"job {job_id} failed: {job.error}")
                    return None
                await asyncio.sleep(pause)
                pause = min(2 * pause, POLL_SECONDS_MAX)
                continue
            change = decode_change(job.payload)
            table = await self._descriptors.read_at(change.table_id, await self._store.now())
            if table is None:
                return None  # it was dropped, so long ago that nothing is left of it
            assert isinstance(table, TableDescriptor), (change, table)
            if job.state is JobState.PAUSED:
                return f"the schema change is paused: run RESUME JOB {job_id}"
            if table.schema_change_job != job_id:
                progress = decode_progress(await self._jobs.progress(job_id), change)
                if progress.failure is not None:
                    raise SQLError(*progress.failure)
                return None
            if job.state is JobState.FAILED:
                raise SQLError("XX000", f"schema change job {job_id} failed: {job.error}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS_MAX)

    async def wait_for_turn(self, table: TableDescriptor) -> None:
        """Returns when the job that changes the table is done with it, however it ends.

        Raises SQLError 55000 if that job is paused.
        """
        assert table.schema_change_job is not None, table
        try:
            notice = await self.wait(table.schema_change_job)
        except SQLError:
            return
        if notice is not None:
            raise SQLError(
                "55000",
                f'table "{table.name}" is being changed by job {table.schema_change_job}, which '
                "is paused",
                hint=f"Run RESUME JOB {table.schema_change_job} or CANCEL JOB "
                f"{table.schema_change_job}.",
            )
