"""One attempt of a feed: opens its sink, finds its progress, runs a pipeline, closes everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import RowUnreadable
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC, KVError
from ...kvlayer.keys import table_span
from ...schemafeed.feed import SchemaFeedError, TableUnknown
from ..contract.options import ChangefeedOptions, ScanChoice
from ..pipeline.gate import SchemaGate
from ..pipeline.live import FeedState, LiveFeed
from ..pipeline.pipeline import Pipeline, RangeDeletion, SinkEnd
from ..pipeline.progress import covering, progress_at
from ..sinks.protocol import PastUnknown, Sink, SinkError, SinkProgress, SinkRefused
from .details import UnknownFormat
from .services import ChangefeedServices

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
    """What stays the same over a feed's attempts.

    `start_at` is where the feed was to begin. What lies below `protected_at` may have been
    collected by now, so that a feed which begins anew scans there.
    """

    table_ids: Sequence[int]
    start_at: Timestamp
    options: ChangefeedOptions
    protected_at: Timestamp = ZERO

    @property
    def scan_at(self) -> Timestamp:
        """Where a feed that holds nothing begins."""
        if self.options.initial_scan is ScanChoice.NO:
            return self.start_at
        return max(self.start_at, self.protected_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where an attempt's rows and progress go. `known` is the job's copy of the progress: it is
    what holds where the sink keeps none itself."""

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

    Everything begins where the sink stands by its own record: its tables, the schema feed, the
    scan. The job's copy of the progress may be of a later time, where the sink's target was removed
    or put back from an older copy.

    Raises SinkRefused also when the sink stands where this store has never been.
    """
    live.state = FeedState.STARTING
    sink = destination.sink
    try:
        progress = await _find_progress(services.store, destination)
        scan_at = plan.scan_at
        if progress is None:
            progress = progress_at(
                [table_span(table_id) for table_id in plan.table_ids],
                scan_at,
                scan_complete=plan.options.initial_scan is ScanChoice.NO,
            )
        elif not progress.scan_complete:
            scan_at = max(scanned_at for _, scanned_at in progress.frontier) or scan_at
        progress = covering(progress, plan.table_ids)
        at = progress.resolved if progress.scan_complete else scan_at
        tables = await read_tables(services, plan.table_ids, at)
        await sink.open(tables)
        live.note_flushed(progress)
        await _run_pipeline(
            services, plan, destination, tables, progress, at=at, scan_at=scan_at, live=live
        )
    except BatchTimestampBeforeGC as error:
        if not destination.transactional:
            raise
        raise SinkRefused(
            f"the sink stands where rows have been garbage collected since: {error}; create the "
            "changefeed again, with an initial scan"
        ) from error
    finally:
        await sink.close()


async def _find_progress(store: StoreAccess, destination: Destination) -> SinkProgress | None:
    """How far the feed has come. Raises SinkRefused when that was in no past of this store."""
    progress = destination.known
    if destination.transactional:
        stand = await destination.sink.stand()
        if stand is not None and not await store.holds(stand.position):
            raise PastUnknown(store.id, stand.position)
        progress = None if stand is None else stand.progress
    if progress is not None:
        check_progress(progress, await store.now())
    return progress


async def _run_pipeline(
    services: ChangefeedServices,
    plan: FeedPlan,
    destination: Destination,
    tables: Sequence[TableDescriptor],
    progress: SinkProgress,
    *,
    at: Timestamp,
    scan_at: Timestamp,
    live: LiveFeed,
) -> None:
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
            scan_at=scan_at,
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
