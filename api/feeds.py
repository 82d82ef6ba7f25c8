"""Jobs as sessions ask for them, over the job registry and `changefeed`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack, suppress
from math import inf
from typing import Any

from ..catalog.jobs import (
    JobContext,
    JobNotFound,
    JobRecord,
    JobRegistry,
    JobState,
    RetryableJobError,
)
from ..catalog.leases.liveness import node_lives
from ..catalog.rights.users import ROOT
from ..catalog.schema_change.job import JOB_KIND as SCHEMA_CHANGE
from ..catalog.schema_change.payload import decode_change, decode_progress
from ..catalog.schema_change.status import status_of
from ..catalog.values.errors import SQLError
from ..changefeed import (
    JOB_KIND,
    Changefeeds,
    DeadLetter,
    FeedStatus,
    ScheduleStatus,
    SpanLag,
    StageReport,
)
from ..changefeed.jobs.attempt import retryable
from ..changefeed.pipeline.live import FeedStopped, NotTaken
from ..changefeed.schedules import SCHEDULE_KIND, schedule_status
from ..changefeed.verify import Verified
from ..kvlayer.access import StoreAccess
from ..kvlayer.clock import ZERO, Timestamp, format_timestamp
from ..kvlayer.errors import StoreClosed
from ..sql import JobSummary
from ..sql.syntax.statements import JobAction

LOOK_SECONDS = 0.5
"""How often whoever waits for a feed looks whether its job still runs."""


class ChangefeedResumer:
    """Runs changefeeds for the job registry."""

    def __init__(self, feeds: Changefeeds) -> None:
        self._feeds = feeds

    async def resume(self, context: JobContext) -> None:
        await _retried(self._feeds.run(context))

    async def on_cancel(self, context: JobContext) -> None:
        await _retried(self._feeds.cancel(context))


class ScheduleResumer:
    """Runs schedules for the job registry."""

    def __init__(self, feeds: Changefeeds) -> None:
        self._feeds = feeds

    async def resume(self, context: JobContext) -> None:
        await self._feeds.run_schedule(context)

    async def on_cancel(self, context: JobContext) -> None:
        """The changefeeds that it made are jobs of their own, and go on."""


async def _retried(work: Awaitable[None]) -> None:
    """Tells the registry which errors another attempt may mend: the feed knows."""
    try:
        await work
    except StoreClosed:
        raise
    except Exception as error:
        if retryable(error):
            raise RetryableJobError(str(error)) from error
        raise


class JobServices:
    """Implements `sql.runtime.services.Jobs` for one node: jobs, and feeds as jobs."""

    def __init__(
        self, feeds: Changefeeds, registry: JobRegistry, node_id: int, store: StoreAccess
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._feeds = feeds
        self._registry = registry

    async def wait(self, job_id: int, until: Timestamp, *, seconds: float | None) -> Timestamp:
        """See `sql.runtime.services.Jobs`. A feed that this node runs is waited for here;
        whichever other node runs it is asked, and the job is looked at meanwhile."""
        loop = asyncio.get_running_loop()
        deadline = inf if seconds is None else loop.time() + seconds
        live = self._feeds.watch(job_id)
        async with AsyncExitStack() as stack:
            here = asyncio.ensure_future(live.wait_until(until))
            stack.push_async_callback(_cancelled, here)
            waits: list[asyncio.Future[Any]] = [here]
            looks = False  # at the job: where the feed runs here, only if the wait is a long one
            while True:
                if live.here and live.resolved >= until:
                    return live.resolved
                if looks or not live.here:
                    found = await self._reached(job_id, until)
                    if found is not None:
                        return found
                looks = True
                if not live.here and waits[0] is here:
                    asking = self._feeds.waits.asking(job_id, until)
                    answered = await stack.enter_async_context(asking)
                    waits = [asyncio.ensure_future(answered.wait())]
                    stack.push_async_callback(_cancelled, waits[0])
                left = deadline - loop.time()
                if left <= 0:
                    raise await self._too_late(job_id, until, seconds)
                await asyncio.wait(waits, timeout=min(left, LOOK_SECONDS))
                if live.resolved >= until:
                    return live.resolved
                if waits[0] is not here and waits[0].done():
                    return until

    async def verify(self, job_id: int, *, repairs: bool) -> Verified:
        """See `sql.runtime.services.Jobs`."""
        job = await self._found(job_id)
        try:
            return await self._feeds.verify(job_id, job.payload, repairs=repairs)
        except FeedStopped as error:
            raise SQLError("55000", str(error)) from error

    async def dead_letters(self, job_id: int) -> Sequence[DeadLetter]:
        """See `sql.runtime.services.Jobs`."""
        await self._found(job_id)
        return await self._feeds.dead_letters(job_id)

    async def skip_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """See `sql.runtime.services.Jobs`."""
        await self._feeds.skip_dead_letters(letters)

    async def retry_dead_letters(self, job_id: int, letters: Sequence[DeadLetter]) -> Sequence[str]:
        """See `sql.runtime.services.Jobs`."""
        job = await self._found(job_id)
        if self._elsewhere(job):
            raise SQLError(
                "0A000",
                f"changefeed {job_id} runs on node {job.claim_node_id}, which alone sends for it",
                hint="RETRY DEAD LETTERS there.",
            )
        retry = self._feeds.retry_of_dead_letters(job_id)
        try:
            await retry.send(letters)
        except NotTaken as error:
            raise SQLError(
                "55000",
                f"changefeed {job_id} takes no rows again: it does not run, or is at a schema "
                "change",
                hint=f"RESUME JOB {job_id}, or retry in a moment.",
            ) from error
        if retry.sent_at:
            await self.wait(job_id, retry.sent_at, seconds=None)
        return await retry.outcomes()

    def _elsewhere(self, job: JobRecord) -> bool:
        return job.claim_node_id not in (None, self._node_id) and not job.state.final

    async def latency(self, job_id: int) -> Sequence[StageReport]:
        """See `sql.runtime.services.Jobs`."""
        job = await self._found(job_id)
        if self._elsewhere(job):
            raise SQLError(
                "0A000",
                f"changefeed {job_id} runs on node {job.claim_node_id}, which alone measures it",
                hint="Ask there, or SHOW CHANGEFEED LAG.",
            )
        return await self._feeds.latency(job_id)

    async def lag(self, job_id: int) -> Sequence[SpanLag]:
        """See `sql.runtime.services.Jobs`."""
        return await self._lag(await self._found(job_id))

    async def _lag(self, job: JobRecord) -> Sequence[SpanLag]:
        if job.state.final:
            return []
        saved = await self._registry.progress(job.id)
        return await self._feeds.lag(job.id, job.payload, saved, halted=_halted(job))

    async def _found(self, job_id: int) -> JobRecord:
        """A changefeed's job. Raises SQLError 42704 and 42809."""
        job = await self._registry.get(job_id)
        if job.kind != JOB_KIND:
            raise SQLError("42809", f"job {job_id} is no changefeed")
        return job

    async def _reached(self, job_id: int, until: Timestamp) -> Timestamp | None:
        """The resolved timestamp that a feed's job saved, if it is at or above `until`.

        Raises SQLError where it will not come any further.
        """
        job = await self._found(job_id)
        status = await self.feed_status(job)
        if status.resolved >= until:
            return status.resolved
        hints = {
            JobState.PAUSED: f"RESUME JOB {job_id} lets it go on.",
            JobState.PAUSE_REQUESTED: f"RESUME JOB {job_id} lets it go on.",
        }
        came = _came_to("It came to", "It had resolved nothing", status.resolved)
        detail = f"{came}, and {format_timestamp(until)} was waited for."
        if job.state.final or job.state in (*hints, JobState.CANCEL_REQUESTED):
            why = f": {job.error}" if job.error else ""
            message = f"changefeed {job_id} is {job.state.value}{why}"
            raise SQLError("55000", message, detail=detail, hint=hints.get(job.state))
        if not status.follows:
            raise SQLError(
                "55000",
                f"changefeed {job_id} follows none of its tables at present: {status.watched}",
                detail=detail,
                hint=f"ALTER CHANGEFEED {job_id} RESUME TABLE lets one go on.",
            )
        return None

    async def _too_late(self, job_id: int, until: Timestamp, seconds: float | None) -> SQLError:
        assert seconds is not None, "nobody is too late where there is no limit"
        job = await self._registry.get(job_id)
        status = await self.feed_status(job)
        came = _came_to("It is at", "It has resolved nothing yet", status.resolved)
        doing = await self._running_status(job, status)
        return SQLError(
            "57014",
            f"changefeed {job_id} has not come to {format_timestamp(until)} within {seconds:g} s",
            detail=f"{came}; {doing}.",
            hint=f"SHOW CHANGEFEED LATENCY {job_id} tells where rows are late.",
        )

    async def list(self, *, changefeeds_only: bool) -> Sequence[JobSummary]:
        found: list[JobSummary] = []
        for job in await self._registry.list():
            if job.kind == JOB_KIND or not changefeeds_only:
                found.append(await self._summary(job))
                await asyncio.sleep(0)  # each of hundreds takes some tenths of a millisecond
        return found

    async def find(self, job_ids: Sequence[int]) -> Sequence[JobSummary]:
        found: list[JobSummary] = []
        for job_id in job_ids:
            with suppress(JobNotFound):
                found.append(await self._summary(await self._registry.get(job_id)))
                await asyncio.sleep(0)
        return found

    async def schedules(self) -> Sequence[ScheduleStatus]:
        """See `sql.runtime.services.Jobs`."""
        return [
            schedule_status(job, await self._registry.progress(job.id))
            for job in await self._registry.list()
            if job.kind == SCHEDULE_KIND and not job.state.final
        ]

    async def completed(self, job_ids: Sequence[int]) -> None:
        final = [state for state in JobState if state.final]
        for job_id in job_ids:
            await self._registry.wait(job_id, *final, timeout=None)

    async def control(self, job_id: int, action: JobAction) -> None:
        request = {
            JobAction.CANCEL: self._registry.request_cancel,
            JobAction.PAUSE: self._registry.request_pause,
            JobAction.RESUME: self._registry.request_resume,
        }[action]
        await request(job_id)

    async def feed_status(self, job: JobRecord) -> FeedStatus:
        """A changefeed's state, from its rows and from what this node knows of it."""
        saved = await self._registry.progress(job.id)
        return self._feeds.status(job.id, job.payload, saved, halted=_halted(job))

    async def _running_status(self, job: JobRecord, status: FeedStatus) -> str:
        """The words for a feed's state; of one that runs elsewhere only that node knows more."""
        if job.state is JobState.PAUSED:
            return str(job.state.value)
        node_id = job.claim_node_id
        if node_id is None or node_id == self._node_id:
            return status.running_status
        if await node_lives(self._store, node_id):
            return f"running on node {node_id}"
        return f"node {node_id}, which ran it, is not there"

    async def _change_status(self, job: JobRecord) -> str:
        """The stage of a schema change, and the status that it reports."""
        change = decode_change(job.payload)
        saved = await self._registry.progress(job.id)
        status = str(status_of(change, decode_progress(saved, change)))
        return status if job.running_status is None else f"{status}; {job.running_status}"

    async def _summary(self, job: JobRecord) -> JobSummary:
        status = await self.feed_status(job) if job.kind == JOB_KIND else None
        spans = await self._lag(job) if job.kind == JOB_KIND else ()
        estimates = [span.catch_up_seconds for span in spans]
        running_status = job.running_status
        if job.kind == SCHEMA_CHANGE and not job.state.final:
            running_status = await self._change_status(job)
        if status is not None and not job.state.final:
            running_status = running_status or await self._running_status(job, status)
        return JobSummary(
            id=job.id,
            kind=job.kind,
            description=job.description,
            state=job.state.value,
            created=job.created,
            started=job.started,
            finished=job.finished,
            modified=job.finished or await self._registry.modified(job.id),
            error=job.error if job.state.final else None,
            running_status=running_status,
            user_name=job.owner or ROOT,
            tables=None if status is None else ", ".join(status.full_table_names),
            replication=None if status is None else status.replication,
            partial=status is not None and status.partial,
            task=None if status is None else status.task,
            sending=None if status is None else status.sending,
            node_id=job.claim_node_id,
            epoch=job.epoch,
            trouble=None if status is None else status.trouble,
            table_ids=() if status is None else status.table_ids,
            watched=None if status is None else status.watched,
            topics=None if status is None else ", ".join(status.topics),
            format=None if status is None else status.format,
            sink=None if status is None else status.sink_uri,
            resolved=None if status is None or status.resolved == ZERO else status.resolved,
            lag_seconds=max((span.seconds for span in spans), default=None),
            catch_up_seconds=None
            if None in estimates
            else max((each for each in estimates if each is not None), default=None),
        )


async def _cancelled(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _halted(job: JobRecord) -> str | None:
    """The state of a job that is not to run; None for one that is."""
    if job.state is JobState.PAUSE_REQUESTED:
        return JobState.PAUSED.value
    return job.state.value if job.state.final or job.state is JobState.PAUSED else None


def _came_to(to: str, nowhere: str, resolved: Timestamp) -> str:
    """How far a feed has come, in words; `nowhere` where it has told of no progress."""
    return nowhere if resolved == ZERO else f"{to} {format_timestamp(resolved)}"
