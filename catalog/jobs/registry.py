"""The job registry of a node: which jobs there are, and which of them it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from ...kvlayer.access import StoreAccess
from ...kvlayer.errors import (
    ClockStopped,
    LockTimeout,
    OutcomeUnknown,
    RetryableTransaction,
    StoreClosed,
)
from ...kvlayer.events import ValueBatch
from ...kvlayer.log import LogFull
from ...kvlayer.settings import declare_duration
from ...kvlayer.txn import Transaction
from ..leases.incarnation import Incarnation
from ..leases.liveness import LivenessSession
from ..span_follower import follow_spans
from ..system_tables import JOBS
from .job_store import JobStore
from .record import JobRecord
from .resumer import Resumer
from .runner import BACKOFF_MAX, BACKOFF_MIN, Backoff, JobRunner
from .states import JobEvent, JobState

ADOPT_INTERVAL = declare_duration(
    "jobs.registry.interval.adopt",
    1.0,
    "how often a node looks for jobs whose node died (new ones it hears of at once)",
)


class JobRegistry:
    """Creates jobs, carries out requests on them, and runs those that this node can claim.

    A node adopts jobs of the kinds that it has resumers for and that `accepts` lets it have. It
    hears of changes by a feed of `system.jobs`, and looks anyway now and then: the death of a
    session is nobody's write.
    """

    def __init__(
        self,
        store: StoreAccess,
        session: LivenessSession,
        resumers: Mapping[str, Resumer],
        *,
        accepts: Callable[[JobRecord], bool] = lambda _: True,
    ) -> None:
        self._store = store
        self._session = session
        self._resumers = resumers
        self._accepts = accepts
        self._jobs = JobStore(store)
        self._runners: dict[int, JobRunner] = {}
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begins to adopt jobs."""
        assert not self._tasks, "the job registry is started already"
        self._session.on_lost(self._on_session_lost)
        watching = follow_spans(
            self._store,
            [JOBS.primary_span],
            await self._store.now(),
            refresh=self._look_for_work,
            take=self._take,
            restarts="job_watcher_restarts_total",
        )
        self._tasks = [
            asyncio.create_task(watching, name="job watcher"),
            asyncio.create_task(self._adopt_for_ever(), name="job adoption"),
        ]

    async def close(self) -> None:
        """Stops the jobs that run here; whoever has resumers for them goes on."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks = []
        await asyncio.gather(*(runner.close() for runner in self._runners.values()))
        self._runners.clear()

    # What statements ask for.

    async def create(
        self, transaction: Transaction, kind: str, description: str, payload: bytes
    ) -> int:
        """A job that starts when the transaction has committed."""
        return await self._jobs.create(transaction, kind, description, payload)

    async def get(self, job_id: int) -> JobRecord:
        """Raises JobNotFound."""
        return await self._jobs.get(job_id)

    async def list(self) -> list[JobRecord]:
        """All jobs, oldest first."""
        return await self._jobs.list()

    async def modified(self, job_id: int) -> datetime | None:
        """When anything of a job was written last."""
        return await self._jobs.modified(job_id)

    async def progress(self, job_id: int) -> bytes | None:
        """What a job saved last."""
        return await self._jobs.progress(job_id)

    async def request_cancel(self, job_id: int) -> JobRecord:
        """Raises JobNotFound, JobStateRefused; so do the next two."""
        return await self._jobs.request(job_id, JobEvent.REQUEST_CANCEL)

    async def request_pause(self, job_id: int) -> JobRecord:
        return await self._jobs.request(job_id, JobEvent.REQUEST_PAUSE)

    async def request_resume(self, job_id: int) -> JobRecord:
        return await self._jobs.request(job_id, JobEvent.RESUME)

    async def save_progress(self, job_id: int, progress: bytes, epoch: int) -> None:
        """Compare-and-set on the claim's epoch. Raises JobFenced."""
        await self._jobs.save_progress(job_id, progress, epoch)

    async def wait(self, job_id: int, *states: JobState, timeout: float) -> JobRecord:
        """The job, once it is in one of the states. Raises TimeoutError, JobNotFound."""
        async with asyncio.timeout(timeout):
            while True:
                changed = self._changed
                job = await self._jobs.get(job_id)
                if job.state in states:
                    return job
                await changed.wait()

    # Adoption.

    async def _adopt_for_ever(self) -> None:
        while True:
            self._wanted.clear()
            try:
                await self._adopt()
            except (ClockStopped, LockTimeout, LogFull, OutcomeUnknown, RetryableTransaction):
                pass  # the next look finds what this one did not get
            except StoreClosed:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self._store.settings.get(ADOPT_INTERVAL)):
                    await self._wanted.wait()

    async def _adopt(self) -> None:
        """Claims every job that is free, and that this node can run."""
        for job in await self._jobs.list():
            runner = self._runners.get(job.id)
            if runner is not None:
                runner.note(job)  # what the feed told before the runner was there
                continue
            resumer = self._resumers.get(job.kind)
            if resumer is None:
                continue
            if not job.state.claimable or not self._accepts(job):
                continue
            incarnation = self._session.incarnation
            claimed = await self._jobs.claim(job.id, incarnation)
            if claimed is not None and not incarnation.lost:
                self._run(claimed, resumer)

    def _run(self, job: JobRecord, resumer: Resumer) -> None:
        settings = self._store.settings
        backoff = Backoff(settings.get(BACKOFF_MIN), settings.get(BACKOFF_MAX))
        runner = self._runners[job.id] = JobRunner(self._jobs, job, resumer, backoff)
        runner.task.add_done_callback(lambda _: self._ended(job.id, runner))

    def _ended(self, job_id: int, runner: JobRunner) -> None:
        if self._runners.get(job_id) is runner:
            del self._runners[job_id]
        self._wanted.set()

    def _on_session_lost(self, _: Incarnation) -> None:
        """The claims went with the session; what is still free is claimed anew."""
        for runner in self._runners.values():
            runner.fence()
        self._wanted.set()

    async def _look_for_work(self) -> None:
        self._wanted.set()

    async def _take(self, written: ValueBatch) -> None:
        """Tells a job's runner of its change, or looks for work."""
        for key, body in zip(written.keys, written.values, strict=True):
            if body is None:
                continue
            job = JobRecord.decode(key, body)
            runner = self._runners.get(job.id)
            if runner is not None:
                runner.note(job)
            elif job.state.claimable:
                self._wanted.set()
        self._changed.set()
        self._changed = asyncio.Event()
