"""Sinkless feeds: rows stream to a client, for as long as it reads.

A stream is no job: it keeps no progress, and protects nothing from garbage collection. A client
that comes back names the last resolved timestamp it saw as its cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from ..catalog.privileges import Privilege
from .attempt import Destination, FeedPlan, run_attempt
from .create import FeedRequest, check_start
from .feed_rights import check_feed_rights
from .live import LiveFeed
from .options import parse_options
from .services import ChangefeedServices
from .sinks.protocol import SinkProgress
from .sinks.sinkless import ChangefeedRow, SinklessSink

STREAM_JOB_ID = 0
"""Streams have no job."""

_STREAM_PRIVILEGES = (Privilege.SELECT, Privilege.CHANGEFEED)


class ChangefeedStream:
    """One sinkless feed and its rows. Close it, or use it as an asynchronous context."""

    def __init__(self, sink: SinklessSink, live: LiveFeed, task: asyncio.Task[None]) -> None:
        self._sink = sink
        self._task = task
        self.live = live

    async def take(self) -> list[ChangefeedRow]:
        """The next rows, as they came together; an empty list when the feed has ended.

        Raises what ended the feed, once every row before it was taken.
        """
        rows = await self._sink.take()
        if not rows:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.result()
        return rows

    async def __aiter__(self) -> AsyncIterator[ChangefeedRow]:
        while rows := await self.take():
            for row in rows:
                yield row

    async def close(self) -> None:
        """Ends the feed. Closing twice is closing once."""
        self._task.cancel()
        await asyncio.wait([self._task])
        self.live.stop()

    async def __aenter__(self) -> ChangefeedStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


async def open_stream(services: ChangefeedServices, request: FeedRequest) -> ChangefeedStream:
    """Starts a sinkless feed. Raises SQLError on a request that will not do."""
    parsed = parse_options(request.options)
    await check_start(services, request, parsed.cursor)
    start_at = request.at if parsed.cursor is None else parsed.cursor
    sink = SinklessSink(services.store.clock.wall, parsed)
    live = LiveFeed(STREAM_JOB_ID)
    plan = FeedPlan(
        table_ids=[table.id for table in request.tables], start_at=start_at, options=parsed
    )
    destination = Destination(
        sink=sink, transactional=False, columnar=False, known=None, save=_keep_nothing
    )

    logs_in = services.rights.current.may_log_in(request.user)

    async def check() -> None:
        await check_feed_rights(
            services, request.user, plan.table_ids, any_of=_STREAM_PRIVILEGES, logs_in=logs_in
        )

    running = services.rights.during(check, partial(run_attempt, services, plan, destination, live))
    task = asyncio.create_task(running, name="sinkless changefeed")
    return ChangefeedStream(sink, live, task)


async def _keep_nothing(progress: SinkProgress) -> None:
    """A stream's progress is its client's."""
