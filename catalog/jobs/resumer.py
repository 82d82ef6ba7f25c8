"""What a kind of job must offer to be run, and what it is given."""

from __future__ import annotations

from typing import Protocol

from .job_store import JobStore
from .record import JobRecord


class JobContext:
    """One claim of a job, as its resumer sees it. Every write is refused once the claim is lost."""

    def __init__(self, jobs: JobStore, job: JobRecord, progress: bytes | None) -> None:
        self._jobs = jobs
        self.job = job
        self.progress = progress
        self.moved = False
        self.status: str | None = job.error

    @property
    def epoch(self) -> int:
        """The fence: a transactional sink checks it too."""
        return self.job.epoch

    async def save_progress(self, progress: bytes) -> None:
        """Makes `progress` what the next claim begins with. Raises JobFenced."""
        await self._jobs.save_progress(self.job.id, progress, self.job.epoch)
        if progress != self.progress:
            self.moved = True
        self.progress = progress

    async def set_status(self, status: str | None) -> None:
        """What the job has to say. Raises JobFenced."""
        if status != self.status:
            await self._jobs.set_status(self.job, status)
            self.status = status


class Resumer(Protocol):
    """How jobs of one kind are run.

    Either may be called any number of times, on any node, always from the saved progress. They are
    cancelled when the job is paused or canceled, when the claim is lost, and at shutdown: what is
    to happen then belongs into `finally`, and `on_cancel` runs afterwards.
    """

    async def resume(self, context: JobContext) -> None:
        """Works until the job is done. To return is to succeed; to raise is to fail, or with an
        error that can be retried, to be called again after a pause."""
        ...

    async def on_cancel(self, context: JobContext) -> None:
        """Cleans up after a job that was canceled."""
        ...
