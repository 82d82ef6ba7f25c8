"""Changefeeds and schedules as the job registry runs them."""

from __future__ import annotations

from collections.abc import Awaitable

from ..catalog.jobs import JobContext, RetryableJobError
from ..changefeed import Changefeeds
from ..changefeed.jobs.attempt import retryable
from ..kvlayer.errors import StoreClosed


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
