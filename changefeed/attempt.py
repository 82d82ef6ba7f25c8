"""One attempt of a feed: opens its sink, finds its progress, runs a pipeline, closes everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ..catalog.descriptor import TableDescriptor
from ..catalog.row_codec import RowUnreadable
from ..kvlayer.clock import Timestamp, format_timestamp
from ..kvlayer.errors import BatchTimestampBeforeGC, KVError
from ..kvlayer.keys import table_span
from ..schemafeed.feed import SchemaFeedError, TableUnknown
from .details import UnknownFormat
from .gate import SchemaGate
from .live import FeedState, LiveFeed
from .options import ChangefeedOptions, ScanChoice
from .pipeline import Pipeline, RangeDeletion, SinkEnd
from .progress import covering, progress_at
from .services import ChangefeedServices
from .sinks.protocol import Sink, SinkError, SinkProgress, SinkRefused

TERMINAL = (
    SinkRefused,
    SchemaFeedError,
    BatchTimestampBeforeGC,
    RangeDeletion,
    RowUnreadable,
    UnknownFormat,
)
"""What no further attempt would mend."""


def retryable(error: BaseException) -> bool:
    """Whether another attempt may succeed: the sink was away, or the store asked for patience."""
    if isinstance(error, TERMINAL):
        return False
    return isinstance(error, SinkError | KVError | OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPlan:
    """What stays the same over a feed's attempts."""

    table_ids: Sequence[int]
    start_at: Timestamp
    options: ChangefeedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where an attempt's rows and progress go. `known` is the job's copy of the progress."""

    sink: Sink
    transactional: bool
    columnar: bool
    follows_schema: bool = False
    known: SinkProgress | None
    save: Callable[[SinkProgress], Awaitable[None]]


async def run_attempt(
    services: ChangefeedServices, plan: FeedPlan, destination: Destination, live: LiveFeed
) -> None:
    """Runs until it fails or is cancelled, or the feed has done its work.

    Raises SinkRefused also when the progress found is ahead of this store's clock: then it belongs
    to another store, or to a later state of this one than was restored.
    """
    live.state = FeedState.STARTING
    sink, known = destination.sink, destination.known
    try:
        at = plan.start_at if known is None else max(known.resolved, plan.start_at)
        held = await sink.open(await read_tables(services, plan.table_ids, at))
        progress = held if destination.transactional else known
        if progress is not None:
            check_progress(progress, await services.store.now())
        await _run_pipeline(services, plan, destination, progress, live)
    finally:
        await sink.close()


async def _run_pipeline(
    services: ChangefeedServices,
    plan: FeedPlan,
    destination: Destination,
    progress: SinkProgress | None,
    live: LiveFeed,
) -> None:
    at = plan.start_at if progress is None else max(progress.resolved, plan.start_at)
    tables = await read_tables(services, plan.table_ids, at)
    if progress is None:
        progress = progress_at(
            [table_span(table.id) for table in tables],
            plan.start_at,
            scan_complete=plan.options.initial_scan is ScanChoice.NO,
        )
    progress = covering(progress, plan.table_ids)
    live.note_flushed(progress)
    schema = services.schema_feed(plan.options.schema_feed)
    try:
        await schema.start(plan.table_ids, at)
        pipeline = Pipeline(
            services.store,
            tables,
            gate=SchemaGate(schema),
            end=SinkEnd(
                sink=destination.sink,
                transactional=destination.transactional,
                columnar=destination.columnar,
                follows_schema=destination.follows_schema,
                save=destination.save,
            ),
            start=progress,
            scan_at=plan.start_at,
            options=plan.options,
            live=live,
            pace=services.pace,
        )
        await pipeline.run()
    finally:
        await schema.close()


async def read_tables(
    services: ChangefeedServices, table_ids: Sequence[int], at: Timestamp
) -> list[TableDescriptor]:
    """The tables as of `at`. Raises TableUnknown for one that was not there."""
    tables: list[TableDescriptor] = []
    for table_id in table_ids:
        table = await services.descriptors.read_at(table_id, at)
        if not isinstance(table, TableDescriptor) or table.dropped:
            raise TableUnknown(table_id, at)
        tables.append(table)
    return tables


def check_progress(progress: SinkProgress, now: Timestamp) -> None:
    """Raises SinkRefused when `progress` is ahead of the clock."""
    ahead = max(progress.resolved, *[at for _, at in progress.frontier])
    if ahead > now:
        raise SinkRefused(
            f"the sink's progress {format_timestamp(ahead)} is ahead of this store's clock "
            f"{format_timestamp(now)}: it was fed by another store, or by a later state of this one"
        )
