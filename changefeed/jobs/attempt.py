"""One attempt of a feed: opens its sink, finds its progress, runs a pipeline, closes everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import RowUnreadable
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC, KVError
from ...kvlayer.span import Span
from ...schemafeed.feed import SchemaFeedError
from ..contract.options import ChangefeedOptions, ScanChoice
from ..pipeline.gate import SchemaGate
from ..pipeline.live import FeedState, LiveFeed
from ..pipeline.pipeline import Pipeline, RangeDeletion, SinkEnd, TargetStart
from ..pipeline.progress import part_of, whole
from ..sinks.protocol import PastUnknown, Sink, SinkError, SinkProgress, SinkRefused
from ..targets import FeedTarget, TableTarget
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
class PlannedTarget:
    """A target of a feed, and where it was to begin: with a scan of its rows there if it `scans`.

    A `fresh` one begins there whatever the sink has of it. One that is not `followed` stays where
    it stands, and nothing of it is read.
    """

    target: FeedTarget
    start_at: Timestamp
    scans: bool = True
    fresh: bool = False
    followed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPlan:
    """What stays the same over a feed's attempts.

    What lies below `protected_at` may have been collected by now, so that a target which begins
    anew scans there.
    """

    targets: Sequence[PlannedTarget]
    options: ChangefeedOptions
    protected_at: Timestamp = ZERO

    def scan_at(self, planned: PlannedTarget) -> Timestamp:
        """Where a target that the sink holds nothing of begins."""
        return max(planned.start_at, self.protected_at) if planned.scans else planned.start_at

    @property
    def followed(self) -> Sequence[PlannedTarget]:
        return [planned for planned in self.targets if planned.followed]


def plan_tables(
    services: ChangefeedServices,
    table_ids: Sequence[int],
    *,
    start_at: Timestamp,
    options: ChangefeedOptions,
    protected_at: Timestamp = ZERO,
) -> FeedPlan:
    """A feed of tables that all begin at one timestamp."""
    return FeedPlan(
        targets=[
            PlannedTarget(
                target=TableTarget(table_id, services.descriptors),
                start_at=start_at,
                scans=options.initial_scan is not ScanChoice.NO,
            )
            for table_id in table_ids
        ],
        options=options,
        protected_at=protected_at,
    )


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
        progress = _begin(plan, await _find_progress(services.store, destination))
        stands = [_stand(plan, planned, progress) for planned in plan.followed]
        tables = [await stand.planned.target.descriptor_at(stand.at) for stand in stands]
        await sink.open(tables)
        live.note_flushed(progress)
        await _run_pipeline(services, plan, destination, stands, tables, progress, live=live)
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


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where a target is as an attempt begins: `at` is where its schema is read first."""

    planned: PlannedTarget
    at: Timestamp
    scan_at: Timestamp


def _begin(plan: FeedPlan, found: SinkProgress | None) -> SinkProgress:
    """Progress over the whole of each target: what was found, and the beginning of the others."""
    frontier: list[tuple[Span, Timestamp]] = []
    for planned in plan.targets:
        span = planned.target.span
        entries = [] if found is None or planned.fresh else part_of(found.frontier, span)
        anew = ZERO if planned.scans else plan.scan_at(planned)
        frontier += whole(entries or [(span, anew)], span).entries()
    known = {planned.target.id for planned in plan.targets if not planned.fresh}
    complete = found is not None and found.scan_complete
    if not complete:
        complete = all(at > ZERO for _, at in frontier)
    resolved = ZERO if found is None else found.resolved
    if complete and resolved == ZERO:
        resolved = min(at for _, at in frontier)
    return SinkProgress(
        frontier=tuple(sorted(frontier)),
        resolved=resolved,
        scan_complete=complete,
        backfills=()
        if found is None
        else tuple(each for each in found.backfills if each.table_id in known),
    )


def _stand(plan: FeedPlan, planned: PlannedTarget, progress: SinkProgress) -> _Stand:
    """A target that is still to be scanned stands where its scan reads, and one in step with the
    feed where that is resolved: so many of them share a schema feed."""
    reached = [at for _, at in part_of(progress.frontier, planned.target.span)]
    scan_at = max(reached) or plan.scan_at(planned)
    if min(reached) == ZERO:
        return _Stand(planned, scan_at, scan_at)
    in_step = planned.start_at <= progress.resolved <= min(reached)
    return _Stand(planned, progress.resolved if in_step else min(reached), scan_at)


async def _run_pipeline(
    services: ChangefeedServices,
    plan: FeedPlan,
    destination: Destination,
    stands: Sequence[_Stand],
    tables: Sequence[TableDescriptor],
    progress: SinkProgress,
    *,
    live: LiveFeed,
) -> None:
    async with AsyncExitStack() as schemas:
        gates = await _open_gates(services, plan.options, stands, schemas)
        pipeline = Pipeline(
            services.store,
            [
                TargetStart(
                    target=stand.planned.target,
                    table=table,
                    gate=gates[stand.planned.target.id],
                    scan_at=stand.scan_at,
                )
                for stand, table in zip(stands, tables, strict=True)
            ],
            end=SinkEnd(
                sink=destination.sink,
                transactional=destination.transactional,
                columnar=destination.columnar,
                follows_schema=destination.follows_schema,
                save=destination.save,
            ),
            start=progress,
            options=plan.options,
            live=live,
            pace=services.pace,
        )
        await pipeline.run()


async def _open_gates(
    services: ChangefeedServices,
    options: ChangefeedOptions,
    stands: Sequence[_Stand],
    opened: AsyncExitStack,
) -> dict[int, SchemaGate]:
    """A gate for each target. Those that stand at one timestamp share one, and its schema feed."""
    gates: dict[int, SchemaGate] = {}
    together: dict[Timestamp, list[int]] = {}
    for stand in stands:
        target = stand.planned.target
        if target.schema is None:
            together.setdefault(stand.at, []).append(target.id)
        else:
            gates[target.id] = SchemaGate(target.schema)
    for at, ids in together.items():
        schema = services.schema_feed(options.schema_feed)
        opened.push_async_callback(schema.close)
        await schema.start(ids, at)
        gates.update(dict.fromkeys(ids, SchemaGate(schema)))
    return gates


def check_progress(progress: SinkProgress, now: Timestamp) -> None:
    """Raises SinkRefused when `progress` is ahead of the clock."""
    ahead = max(progress.resolved, *[at for _, at in progress.frontier])
    if ahead > now:
        raise SinkRefused(
            f"the sink's progress {format_timestamp(ahead)} is ahead of this store's clock "
            f"{format_timestamp(now)}: it was fed by another store, or by a later state of this one"
        )
