"""Sinkless feeds: rows stream to a client, for as long as it reads.

A stream is no job, and its progress ends with it: a client that comes back names the last resolved
timestamp that it saw as its cursor. While it lives it is as robust as a job. What it has still to
read is protected from garbage collection, and an error that another attempt may mend is retried:

    rows taken, progress saved      a b | resolved 100 | c d
    the store asks for patience     a pause, then an attempt from 100
    rows taken                      c d e        c and d again, since 100 covers neither
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from ...catalog.jobs import BACKOFF_MAX, BACKOFF_MIN, Backoff
from ...catalog.rights.privileges import Privilege
from ...catalog.rows.row_codec import RowUnreadable
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...kvlayer.errors import StoreClosed
from ...schemafeed.feed import SchemaFeedError, TableDropped
from ..contract.changes import Form
from ..contract.message_form import Format
from ..contract.options import NOT_SUPPORTED, ChangefeedOptions, check_effective, parse_options
from ..contract.queries import FeedQuery
from ..encode import FeedOrigin, Topics
from ..jobs.attempt import Destination, FeedPlan, plan_tables, retryable, run_attempt
from ..jobs.create import FeedRequest, check_end, check_query, check_start
from ..jobs.feed_rights import check_feed_rights
from ..jobs.services import ChangefeedServices
from ..pipeline.boundary import SchemaChangeEnd
from ..pipeline.live import FeedState, LiveFeed
from ..pipeline.pipeline import RangeDeletion, TargetFailed
from ..pipeline.query_sink import QueryFailed
from ..sinks.protocol import SinkProgress
from ..sinks.sinkless import OBEYED, ChangefeedRow, SinklessSink
from ..targets import KeyspacePart
from .stream_protection import StreamProtection, protect_stream

STREAM_JOB_ID = 0
"""Streams have no job."""

_STREAM_PRIVILEGES = (Privilege.SELECT, Privilege.CHANGEFEED)


class ChangefeedStream:
    """One sinkless feed and its rows, an asynchronous context: the feed runs within it.

    One that is never entered runs nothing, and its protection ends by its age.
    """

    def __init__(
        self,
        services: ChangefeedServices,
        plan: FeedPlan,
        sink: SinklessSink,
        protection: StreamProtection,
        user: str,
    ) -> None:
        self.live = LiveFeed(STREAM_JOB_ID)
        self._user = user
        self._logged_in = services.rights.current.may_log_in(user)
        self._services = services
        self._plan = plan
        self._sink = sink
        self._protection = protection
        self._progress: SinkProgress | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether `take` has rows to return at once."""
        return self._sink.ready

    async def take(self) -> list[ChangefeedRow]:
        """The next rows, as they came together; an empty list when the feed has ended.

        Raises what ended the feed, once every row before it was taken: SQLError where that was the
        feed's to end by, KVError where the store did.
        """
        assert self._task is not None, "the stream was not entered"
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

    async def __aenter__(self) -> ChangefeedStream:
        assert self._task is None, "the stream was entered before"
        self._task = asyncio.create_task(self._run(), name="sinkless changefeed")
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # seen: who leaves has no more questions
        self.live.stop()

    @property
    def _needed_from(self) -> Timestamp:
        """The timestamp from which the next attempt would have to read."""
        start_at = min(planned.start_at for planned in self._plan.targets)
        return start_at if self._progress is None else max(self._progress.resolved, start_at)

    async def _run(self) -> None:
        keeper = asyncio.create_task(self._protection.keep(lambda: self._needed_from))
        try:
            await self._services.rights.during(self._check_rights, self._attempts)
        except Exception as error:
            told = _told(error)
            if told is error:
                raise
            raise told from error
        finally:
            self._sink.end()
            keeper.cancel()
            await asyncio.wait([keeper])
            await self._protection.release()

    async def _check_rights(self) -> None:
        await check_feed_rights(
            self._services,
            self._user,
            [planned.target.id for planned in self._plan.targets],
            any_of=_STREAM_PRIVILEGES,
            logs_in=self._logged_in,
        )

    async def _attempts(self) -> None:
        """Attempt after attempt, until one ends the feed."""
        settings = self._services.store.settings
        backoff = Backoff(settings.get(BACKOFF_MIN), settings.get(BACKOFF_MAX))
        while True:
            began_at = self._progress
            destination = Destination(
                sink=self._sink,
                transactional=False,
                form=Form.COLUMNS,
                known=began_at,
                save=self._save,
            )
            try:
                await run_attempt(self._services, self._plan, destination, self.live)
                return
            except TargetFailed as failed:
                raise failed.cause from failed  # a stream is of all its tables
            except Exception as error:
                if isinstance(error, StoreClosed) or not retryable(error):
                    raise
                self.live.state = FeedState.BACKOFF
                self.live.last_error = str(error)
            if self._progress is not began_at:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    async def _save(self, progress: SinkProgress) -> None:
        """Notes that all rows that `progress` covers were taken: an attempt after this one begins
        there."""
        self._progress = progress


async def open_stream(services: ChangefeedServices, request: FeedRequest) -> ChangefeedStream:
    """Starts a sinkless feed. Raises SQLError on a request that will not do."""
    options = stream_options(request.options, request.query)
    await check_start(services, request, options.cursor)
    start_at = check_end(options, request.newest)
    if request.query is not None:
        await check_query(services, request, request.query, start_at)
    return await requested_stream(services, request, start_at, options)


async def requested_stream(
    services: ChangefeedServices,
    request: FeedRequest,
    start_at: Timestamp,
    options: ChangefeedOptions,
) -> ChangefeedStream:
    """The stream of a request that was checked, not entered yet. Raises SQLError as `stream_from`
    does."""
    names = {table.id: name for table, name in zip(request.tables, request.names, strict=True)}
    return await stream_from(
        services,
        names,
        start_at,
        options,
        request.user,
        keyspace=request.keyspace,
        query=request.query,
        created_at=request.at,
    )


def stream_options(
    given: Mapping[str, str | None], query: FeedQuery | None = None
) -> ChangefeedOptions:
    """The options of a sinkless feed. Raises SQLError for one that would have no effect."""
    options = parse_options(given, query)
    check_effective(given, OBEYED, "sinkless")
    if options.paused:
        raise SQLError(
            "22023",
            "a changefeed without a sink cannot be paused",
            hint="Ask for it when its rows are wanted.",
        )
    check_texts(options, "a sinkless changefeed", "or name a sink of files")
    return options


def check_texts(options: ChangefeedOptions, what: str, otherwise: str) -> None:
    """Raises SQLError 0A000 where the messages are no texts, which are all that a client is
    shown."""
    if options.format in (Format.PARQUET, Format.AVRO):
        raise SQLError(
            NOT_SUPPORTED,
            f"{what} has no messages in format {options.format.value}",
            hint=f"Leave the option format out, {otherwise}.",
        )


async def stream_from(
    services: ChangefeedServices,
    tables: Mapping[int, str],
    start_at: Timestamp,
    options: ChangefeedOptions,
    user: str,
    *,
    keyspace: KeyspacePart | None = None,
    query: FeedQuery | None = None,
    created_at: Timestamp = ZERO,
) -> ChangefeedStream:
    """A sinkless feed of tables, or of a part of a `keyspace`, that are there as of `start_at`, not
    entered yet: full names by id. Raises SQLError where what it has to read is collected
    already."""
    plan = plan_tables(
        services,
        list(tables),
        start_at=start_at,
        options=options,
        keyspace=keyspace,
        query=query,
        created_at=created_at,
    )
    spans = [planned.target.span for planned in plan.targets]
    protection = await protect_stream(services, spans, start_at)
    topics = Topics(full_names=tables, full_table_name=options.full_table_name)
    wall = services.store.clock.wall
    origin = FeedOrigin(
        sink="sinkless buffer",
        cluster_id=services.store.id,
        job_id=STREAM_JOB_ID,
        node_id=services.node_id,
        unix_us=wall.unix_us,
    )
    sink = SinklessSink(options, topics, origin)
    return ChangefeedStream(services, plan, sink, protection, user)


def _told(error: Exception) -> Exception:
    """The error that a client is told of a feed's end: an SQLError where the feed itself had to
    end."""
    match error:
        case TableDropped():
            return SQLError(
                "42P01", f"{error}", detail="Everything committed before that has been sent."
            )
        case SchemaChangeEnd(timestamp=at, of_query=of_query):
            query = ", of a query that fits the table as it is then," if of_query else ""
            return SQLError(
                "55000",
                f"{error}",
                detail="Everything committed before that has been sent.",
                hint=f"To go on behind it, create the changefeed again{query} "
                f"WITH cursor = '{format_timestamp(at)}'.",
            )
        case SchemaFeedError() | RangeDeletion():
            return SQLError("55000", f"{error}")
        case QueryFailed(cause=cause):
            return SQLError(cause.sqlstate, f"{error}", detail=cause.detail)
        case RowUnreadable():
            return SQLError("XX001", f"{error}")
    return error
