"""The interface of a kind of job, and the context that its runs are given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ...kvlayer.access import Evaluation, Transaction
from ...kvlayer.clock import ZERO, Timestamp
from .job_store import JobStore
from .record import JobRecord, encode_progress


class JobContext:
    """One claim of a job, as its resumer sees it. Every write is refused once the claim is lost."""

    def __init__(self, jobs: JobStore, job: JobRecord, progress: bytes | None) -> None:
        self._jobs = jobs
        self.job = job
        self.progress = progress
        self.moved = False
        self.lost = False
        """Whether somebody else may have the claim, as far as this node has heard."""
        self.status: str | None = job.error
        self._payload_at = ZERO
        """When the claim itself has changed the payload last."""
        self._changed = asyncio.Event()

    @property
    def epoch(self) -> int:
        """The fence: a transactional sink checks it too."""
        return self.job.epoch

    @property
    def payload(self) -> bytes:
        """The job's payload, as far as this node has heard."""
        return self.job.payload

    def note_payload(self, payload: bytes, at: Timestamp) -> None:
        """The payload as of a row that was written at `at`. A row may come late: one from before
        the claim's own last change says nothing."""
        if at >= self._payload_at and payload != self.job.payload:
            self.job = replace(self.job, payload=payload)
            self._changed.set()
            self._changed = asyncio.Event()

    async def payload_changed(self, known: bytes) -> bytes:
        """The payload, once it is another than `known`."""
        while self.payload == known:
            await self._changed.wait()
        return self.payload

    async def change_payload(self, change: Callable[[bytes], bytes]) -> bytes:
        """Changes what the job is to do, from what it is by then. Raises JobFenced."""
        changed, at = await self._jobs.change_payload(self.job, change)
        self.note_payload(changed.payload, at)
        self._payload_at = max(self._payload_at, at)
        return changed.payload

    async def save_progress(self, progress: bytes) -> None:
        """Makes `progress` what the next claim begins with. Raises JobFenced."""
        await self._jobs.save_progress(self.job.id, progress, self.job.epoch)
        if progress != self.progress:
            self.moved = True
        self.progress = progress

    async def reload_progress(self) -> bytes | None:
        """Reads the saved progress anew: an attempt that was cancelled may have saved more than it
        knew."""
        self.progress = await self._jobs.progress(self.job.id)
        return self.progress

    async def progress_row(self, transaction: Transaction, progress: bytes) -> tuple[bytes, bytes]:
        """Key and body of the row that saves `progress`, for the transaction to write.

        The transaction then commits only under the claim. Raises JobFenced.
        """
        await self._jobs.check_claim(transaction, self.job)
        self.moved = True
        return encode_progress(self.job.id, progress, self.job.epoch)

    def check_claim(self, evaluation: Evaluation) -> None:
        """Makes a one-phase step write only under the claim. Raises JobFenced."""
        self._jobs.check_claim_at(evaluation, self.job)

    async def set_status(self, status: str | None) -> None:
        """Reports the job's status. Raises JobFenced."""
        if status != self.status:
            await self._jobs.set_status(self.job, status)
            self.status = status


class Resumer(Protocol):
    """The implementation of one kind of job.

    Either may be called any number of times, on any node, always from the saved progress. They are
    cancelled when the job is paused or canceled, when the claim is lost (`JobContext.lost`), and at
    shutdown: what is to happen then belongs into `finally`, and `on_cancel` runs afterwards.
    """

    async def resume(self, context: JobContext) -> None:
        """Works until the job is done. To return is to succeed; to raise is to fail, or with an
        error that can be retried, to be called again after a pause."""
        ...

    async def on_cancel(self, context: JobContext) -> None:
        """Cleans up after a job that was canceled."""
        ...
