"""Changefeeds and schedules as the job registry runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..catalog.jobs import JobContext, RetryableJobError
from ..changefeed import Changefeeds
from ..changefeed.jobs.attempt import retryable
from ..kvlayer.errors import StoreClosed


class _Claim:
    """A job's context as a changefeed sees it."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self.job_id = context.job.id
        self.epoch = context.epoch

    @property
    def payload(self) -> bytes:
        return self._context.payload

    @property
    def lost(self) -> bool:
        return self._context.lost

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
