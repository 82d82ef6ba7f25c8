"""Changefeeds and jobs as sessions ask for them, over `changefeed` and the job registry."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress

from ..catalog.jobs import (
    JobContext,
    JobNotFound,
    JobRecord,
    JobRegistry,
    RetryableJobError,
)
from ..catalog.rights.users import ROOT
from ..catalog.schema_change.job import JOB_KIND as SCHEMA_CHANGE
from ..catalog.schema_change.payload import decode_change, decode_progress
from ..catalog.schema_change.status import status_of
from ..changefeed import JOB_KIND, Alteration, Changefeeds, FeedStatus
from ..changefeed import ChangefeedStream as FeedStream
from ..changefeed.jobs.attempt import retryable
from ..kvlayer.clock import ZERO, Timestamp
from ..kvlayer.errors import StoreClosed
from ..kvlayer.txn import Transaction
from ..sql import ChangefeedRequest, ChangefeedStream, JobSummary, Row
from ..sql.execute.query.result_shape import CHANGEFEED_COLUMNS
from ..sql.syntax.statements import JobAction


class _Claim:
    """A job's context as a changefeed sees it."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self.job_id = context.job.id
        self.epoch = context.epoch

    @property
    def payload(self) -> bytes:
        return self._context.payload

    async def payload_changed(self, known: bytes) -> bytes:
        return await self._context.payload_changed(known)

    async def change_payload(self, change: Callable[[bytes], bytes]) -> bytes:
        return await self._context.change_payload(change)

    async def read_progress(self) -> bytes | None:
        return self._context.progress

    async def save_progress(self, progress: bytes) -> None:
        await self._context.save_progress(progress)


class ChangefeedResumer:
    """Runs changefeeds for the job registry."""

    def __init__(self, feeds: Changefeeds) -> None:
        self._feeds = feeds

    async def resume(self, context: JobContext) -> None:
        await _retried(self._feeds.run(_Claim(context)))

    async def on_cancel(self, context: JobContext) -> None:
        await _retried(self._feeds.cancel(_Claim(context)))


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


class FeedServices:
    """Implements `Changefeeds` and `Jobs` of `sql.runtime.services` for one node."""

    def __init__(self, feeds: Changefeeds, registry: JobRegistry, node_id: int) -> None:
        self._node_id = node_id
        self._feeds = feeds
        self._registry = registry

    async def create(self, transaction: Transaction, request: ChangefeedRequest, sink: str) -> int:
        return await self._feeds.create(transaction, request, sink, user_name=request.user)

    async def alter(
        self,
        transaction: Transaction,
        job_id: int,
        alterations: Sequence[Alteration],
        *,
        at: Timestamp,
    ) -> str:
        return await self._feeds.alter(transaction, job_id, alterations, at=at)

    async def stream(self, request: ChangefeedRequest) -> ChangefeedStream:
        return ChangefeedStream(CHANGEFEED_COLUMNS, _rows(await self._feeds.stream(request)))

    async def list(self, *, changefeeds_only: bool) -> Sequence[JobSummary]:
        return [
            await self._summary(job)
            for job in await self._registry.list()
            if job.kind == JOB_KIND or not changefeeds_only
        ]

    async def find(self, job_ids: Sequence[int]) -> Sequence[JobSummary]:
        found: list[JobSummary] = []
        for job_id in job_ids:
            with suppress(JobNotFound):
                found.append(await self._summary(await self._registry.get(job_id)))
        return found

    async def control(self, job_id: int, action: JobAction) -> None:
        request = {
            JobAction.CANCEL: self._registry.request_cancel,
            JobAction.PAUSE: self._registry.request_pause,
            JobAction.RESUME: self._registry.request_resume,
        }[action]
        await request(job_id)

    async def feed_status(self, job: JobRecord) -> FeedStatus:
        """A changefeed's state, from its rows and from what this node knows of it."""
        return self._feeds.status(job.id, job.payload, await self._registry.progress(job.id))

    async def _change_status(self, job: JobRecord) -> str:
        """How far a schema change is, and what it has to say beside that."""
        change = decode_change(job.payload)
        saved = await self._registry.progress(job.id)
        status = str(status_of(change, decode_progress(saved, change)))
        return status if job.running_status is None else f"{status}; {job.running_status}"

    async def _summary(self, job: JobRecord) -> JobSummary:
        status = await self.feed_status(job) if job.kind == JOB_KIND else None
        running_status = job.running_status
        if job.kind == SCHEMA_CHANGE and not job.state.final:
            running_status = await self._change_status(job)
        if status is not None and not job.state.final:
            running_status = running_status or _running_status(job, status, self._node_id)
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
            table_ids=() if status is None else status.table_ids,
            topics=None if status is None else ", ".join(status.topics),
            format=None if status is None else status.format,
            sink=None if status is None else status.sink_uri,
            resolved=None if status is None or status.resolved == ZERO else status.resolved,
        )


async def _rows(stream: FeedStream) -> AsyncGenerator[Row, None]:
    async with stream:
        async for row in stream:
            yield (row.table, row.key, row.value)


def _running_status(job: JobRecord, status: FeedStatus, node_id: int) -> str:
    """What a feed does; of one that runs elsewhere only that node knows."""
    if job.claim_node_id in (None, node_id):
        return status.running_status
    return f"running on node {job.claim_node_id}"
