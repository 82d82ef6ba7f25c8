"""The job registry of a node: which jobs there are, and which of them it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import (
    BatchTimestampBeforeGC,
    ClockStopped,
    KVError,
    LockTimeout,
    OutcomeUnknown,
    RetryableTransaction,
    StoreClosed,
    StoreFull,
)
from ...kvlayer.events import ValueBatch
from ...kvlayer.settings import declare_duration
from ...kvlayer.txn import Transaction
from ..descriptors.system_tables import JOBS
from ..leases.incarnation import Incarnation
from ..leases.liveness import LivenessSession
from ..store.span_follower import follow_spans
from .job_store import JobChange, JobStore
from .record import JobRecord, time_of
from .resumer import Resumer
from .runner import BACKOFF_MAX, BACKOFF_MIN, Backoff, JobRunner
from .states import JobEvent, JobState

ADOPT_INTERVAL = declare_duration(
    "jobs.registry.interval.adopt",
    1.0,
    "how often a node looks for jobs whose node died (new ones it hears of at once)",
)

RETENTION = declare_duration(
    "jobs.retention_time", 14 * 86_400.0, "how long jobs that have ended are kept"
)

RETENTION_SECONDS_MIN = 1.0
RETENTION_SECONDS_MAX = 600.0
"""How often a node looks for jobs that ended so long ago."""


class JobRegistry:
    """Creates jobs, carries out requests on them, and runs those that this node can claim.

    A node adopts jobs of the kinds that it has resumers for and that `accepts` lets it have. It
    hears of changes by a feed of `system.jobs`, and looks anyway now and then: the death of a
    session is nobody's write, and a notice may be lost. The jobs that have not ended it has in
    memory: a look reads what was written since the last one, and never history.
    """

    def __init__(
        self,
        store: StoreAccess,
        session: LivenessSession,
        resumers: Mapping[str, Resumer],
        *,
        accepts: Callable[[JobRecord], Awaitable[bool]] | None = None,
    ) -> None:
        self._store = store
        self._session = session
        self._resumers = resumers
        self._accepts = accepts
        self._jobs = JobStore(store)
        self._live: dict[int, JobChange] = {}
        self._looked_at: Timestamp | None = None
        """All that was written to the rows of jobs until then is in `_live`."""
        self._runners: dict[int, JobRunner] = {}
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begins to adopt jobs."""
        assert not self._tasks, "the job registry is started already"
        self._session.on_lost(self._on_session_lost)
        await self._jobs.file_finished()
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
            asyncio.create_task(self._remove_for_ever(), name="job retention"),
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
        self,
        transaction: Transaction,
        kind: str,
        description: str,
        payload: bytes,
        *,
        paused: bool = False,
    ) -> int:
        """A job that starts when the transaction has committed, or when it is resumed."""
        return await self._jobs.create(transaction, kind, description, payload, paused=paused)

    async def get(self, job_id: int) -> JobRecord:
        """Raises JobNotFound."""
        return await self._jobs.get(job_id)

    async def list(self) -> Sequence[JobRecord]:
        """The jobs that have not ended and those that ended of late, oldest first."""
        now = await self._look()
        return sorted([*self.live(), *await self._jobs.ended(now)], key=lambda job: job.id)

    def live(self) -> Sequence[JobRecord]:
        """The jobs that have not ended, oldest first, as far as this node has heard: a look at
        memory, for whoever looks again and again."""
        known = [self._live[job_id].job for job_id in sorted(self._live)]
        return [job for job in known if job is not None]

    async def modified(self, job_id: int) -> datetime | None:
        """When anything of a job was written last."""
        return await self._jobs.modified(job_id)

    async def progress(self, job_id: int) -> bytes | None:
        """The progress that a job saved last."""
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

    async def wait(self, job_id: int, *states: JobState, timeout: float | None) -> JobRecord:
        """The job, once it is in one of the states. Raises TimeoutError, JobNotFound. Without a
        `timeout` it is waited for as long as it takes."""
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
            except (ClockStopped, LockTimeout, StoreFull, OutcomeUnknown, RetryableTransaction):
                pass  # the next look finds what this one did not get
            except StoreClosed:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self._store.settings.get(ADOPT_INTERVAL)):
                    await self._wanted.wait()

    async def _adopt(self) -> None:
        """Claims every job that is free, and that this node can run."""
        await self._look()
        for job in self.live():
            runner = self._runners.get(job.id)
            if runner is not None:
                heard = self._live.get(job.id)
                if heard is not None and heard.job is not None:
                    runner.note(heard.job, heard.at)  # told before the runner was there
                continue
            resumer = self._resumers.get(job.kind)
            if resumer is None:
                continue
            if not job.state.claimable:
                continue
            if self._accepts is not None and not await self._accepts(job):
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

    async def _look(self) -> Timestamp:
        """Brings what is known of the jobs that have not ended up to now, and says when that is.

        Costs what was written since the last look.
        """
        now = await self._store.now()
        try:
            if self._looked_at is None:
                jobs = await self._jobs.live(now)
                ended = self._live.keys() - {job.id for job in jobs}
                for known in [
                    *[JobChange(id, now, None) for id in ended],
                    *[JobChange(job.id, now, job) for job in jobs],
                ]:
                    self._note(known)
            else:
                async for change in self._jobs.changes(self._looked_at, now):
                    self._note(change)
        except BatchTimestampBeforeGC:
            self._looked_at = None  # it was long ago: the next look reads them all
            raise
        self._looked_at = max(now, self._looked_at or now)
        return now

    def _note(self, change: JobChange) -> None:
        """Takes a change in, unless a later one of that job came before it."""
        known = self._live.get(change.id)
        if known is not None and change.at < known.at:
            return
        runner = self._runners.get(change.id)
        if change.job is not None:
            self._live[change.id] = change
            if runner is not None:
                runner.note(change.job, change.at)
            return
        self._live.pop(change.id, None)
        if runner is not None:
            runner.fence()

    async def _look_for_work(self) -> None:
        self._wanted.set()

    async def _take(self, written: ValueBatch) -> None:
        """Tells a job's runner of its change, or looks for work."""
        for version in zip(written.keys, written.timestamps, written.values, strict=True):
            change = JobChange.decode(*version)
            self._note(change)
            job = change.job
            if job is not None and job.state.claimable and job.id not in self._runners:
                self._wanted.set()
        self._changed.set()
        self._changed = asyncio.Event()

    # Retention.

    async def _remove_for_ever(self) -> None:
        settings = self._store.settings
        while True:
            try:
                now = time_of(await self._store.now())
                await self._jobs.remove_finished(now - timedelta(seconds=settings.get(RETENTION)))
            except StoreClosed:
                return
            except KVError:
                self._store.metrics.add("job_retention_failures_total")
            await asyncio.sleep(RETENTION_SECONDS_MIN)
            await settings.sleep(RETENTION, at_most=RETENTION_SECONDS_MAX)
