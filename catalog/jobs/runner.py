"""The runner: carries one claimed job from state to state, for as long as the claim is good."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ...kvlayer.clock import MAX_TIMESTAMP, Timestamp
from ...kvlayer.errors import KVError, StoreClosed
from ...kvlayer.settings import declare_duration
from ..values.session_zone import leave
from .errors import RETRYABLE, JobFenced, JobPaused, RetryableJobError, message_of
from .job_store import JobStore
from .record import JobRecord
from .resumer import JobContext, Resumer
from .states import IllegalTransition, JobEvent, JobState

BACKOFF_MIN = declare_duration(
    "jobs.retry.initial_backoff", 0.25, "the pause after a job's first retryable error"
)
BACKOFF_MAX = declare_duration(
    "jobs.retry.max_backoff", 30.0, "the longest pause between two attempts of a job"
)

STOPPED = RetryableJobError("its work was cancelled from within")


class JobRunner:
    """Runs one job under one claim. `done` is set when there is nothing left to do here."""

    def __init__(self, jobs: JobStore, job: JobRecord, resumer: Resumer, backoff: Backoff) -> None:
        self._jobs = jobs
        self._job = job
        self._resumer = resumer
        self._backoff = backoff
        self._fenced = False
        self._changed = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._context: JobContext | None = None
        self.task = asyncio.create_task(self._run(), name=f"job {job.id}")

    @property
    def epoch(self) -> int:
        return self._job.epoch

    def note(self, job: JobRecord, at: Timestamp) -> None:
        """The job's row as it was from `at` on: a request is carried out, a lost claim ends the
        work.

        Rows may come late: one from before the claim says nothing.
        """
        if job.epoch < self._job.epoch:
            return
        if job.epoch > self._job.epoch or job.claim_session_id is None:
            self.fence()
            return
        self._job = replace(self._job, payload=job.payload)
        if self._context is not None:
            self._context.note_payload(job.payload, at)
        if job.state is not self._job.state:
            self._job = replace(self._job, state=job.state)
            self._interrupt()

    def fence(self) -> None:
        """The claim is lost: stops working, and writes nothing more."""
        self._fenced = True
        if self._context is not None:
            self._context.lost = True
        self._interrupt()

    async def close(self) -> None:
        """Stops working. The claim stands until its session ends."""
        self._fenced = True
        self.task.cancel()
        await asyncio.wait([self.task])

    def _interrupt(self) -> None:
        self._changed.set()
        if self._work is not None:
            self._work.cancel()

    async def _run(self) -> None:
        """Turn by turn, until the job needs this node no more.

        A turn that the store refuses ends the run and leaves the claim: the registry finds a job
        that is claimed here and does not run, and claims it again.
        """
        leave()  # it may have been started by a session's statement, whose zone is not the job's
        try:
            progress = await self._jobs.progress(self._job.id)
            context = self._context = JobContext(self._jobs, self._job, progress)
            while not self._fenced:
                self._changed.clear()
                try:
                    if await self._turn(context):
                        return
                except IllegalTransition:
                    # A request came in between, of which no notice has come yet.
                    self.note(await self._jobs.get(self._job.id), MAX_TIMESTAMP)
        except (JobFenced, KVError):
            return

    async def _turn(self, context: JobContext) -> bool:
        """Does one turn of the job's work in its present state; returns whether that was the
        last."""
        match self._job.state:
            case JobState.PAUSE_REQUESTED:
                await self._jobs.finish(self._job, JobEvent.PAUSE)
                return True
            case JobState.CANCEL_REQUESTED:
                work, done = self._resumer.on_cancel(context), JobEvent.CANCEL
            case JobState.RUNNING:
                work, done = self._resumer.resume(context), JobEvent.SUCCEED
            case state:
                raise AssertionError(f"job {self._job.id} was claimed while {state.value}")
        self._work = asyncio.create_task(work)
        try:
            await asyncio.wait([self._work])
        finally:
            if not self._work.done():
                self._work.cancel()
                await asyncio.wait([self._work])
            if not self._work.cancelled():
                self._work.exception()  # seen, though this runner may be stopped before it tells
        error = STOPPED if self._work.cancelled() else self._work.exception()
        if self._changed.is_set():
            return self._fenced  # whatever it raised on its way out: see to the request
        if error is None:
            await self._jobs.finish(self._job, done)
            return True
        return await self._failed(context, error)

    async def _failed(self, context: JobContext, error: BaseException) -> bool:
        if isinstance(error, JobFenced | StoreClosed):
            raise error
        if isinstance(error, JobPaused):
            await self._jobs.finish(self._job, JobEvent.PAUSE, error=message_of(error))
            return True
        if not isinstance(error, RETRYABLE):
            await self._jobs.finish(self._job, JobEvent.FAIL, error=message_of(error))
            return True
        if context.moved:
            self._backoff.reset()
            context.moved = False
        seconds = self._backoff.next()
        await context.set_status(f"retrying in {seconds:g} s after an error: {message_of(error)}")
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass
        if not self._fenced:
            await context.set_status(None)
        return False


class Backoff:
    """Pauses that double, up to a bound, until something has moved."""

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = shortest
        self._longest = longest
        self._seconds = shortest

    def next(self) -> float:
        """The pause to make now."""
        seconds = min(self._seconds, self._longest)
        self._seconds = min(2 * seconds, self._longest)
        return seconds

    def reset(self) -> None:
        self._seconds = self._shortest
