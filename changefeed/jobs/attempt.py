"""One attempt of a feed: opens its sink, finds its progress, runs a pipeline, closes everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import RowUnreadable
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC, KVError
from ...kvlayer.frontier import part_of, without
from ...kvlayer.span import Span
from ...schemafeed.feed import SchemaFeedError
from ..contract.changes import Form
from ..contract.options import ChangefeedOptions, ScanChoice
from ..contract.queries import FeedQuery
from ..pipeline.arrivals import Arrivals
from ..pipeline.gate import SchemaGate
from ..pipeline.live import LiveFeed
from ..pipeline.pipeline import Pipeline, RangeDeletion, SinkEnd, TargetStart
from ..pipeline.progress import whole
from ..pipeline.query_sink import QuerySink, pipeline_options
from ..sinks.protocol import PastUnknown, Sink, SinkError, SinkProgress, SinkRefused
from ..sinks.transaction_sink import FramingSink, TransactionSink
from ..targets import FeedTarget, KeyspacePart
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
"""Errors that no further attempt would mend."""


def retryable(error: BaseException) -> bool:
    """Whether another attempt may succeed: the sink was away, or the store asked for patience."""
    if isinstance(error, TERMINAL):
        return False
    return isinstance(error, SinkError | KVError | OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTarget:
    """A target of a feed, and where it was to begin: with a scan of its rows there if it `scans`.

    What lies below `protected_at` may have been collected by now: a target that the sink holds
    nothing of scans there at the earliest. A `fresh` one begins anew whatever the sink has of it,
    and of one that is to be shown `again` the rows are scanned where it stands: at `again_at`, if
    an earlier attempt began with that. One that is not `followed` stays there, and nothing of it is
    read.
    """

    target: FeedTarget
    start_at: Timestamp
    scans: bool = True
    fresh: bool = False
    again: bool = False
    again_at: Timestamp = ZERO
    followed: bool = True
    protected_at: Timestamp = ZERO
    created_at: Timestamp = ZERO
    """The timestamp of the table's creation, if it joined then: it has no rows below."""

    @property
    def scan_at(self) -> Timestamp:
        """The timestamp at which it begins anew."""
        return max(self.start_at, self.protected_at) if self.scans else self.start_at

    @property
    def begins_at(self) -> Timestamp:
        """The same, or where it was to be shown again: in a sink that holds nothing of it."""
        return self.again_at or self.scan_at


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPlan:
    """The plan of a feed's attempts, until the feed is altered."""

    targets: Sequence[PlannedTarget]
    options: ChangefeedOptions
    query: FeedQuery | None = None
    created_at: Timestamp = ZERO
    arrivals: Arrivals | None = None
    """Tells of the tables that are to join a feed of a whole database; None for other feeds."""

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
    keyspace: KeyspacePart | None = None,
    query: FeedQuery | None = None,
    created_at: Timestamp = ZERO,
) -> FeedPlan:
    """A feed of tables, or of a part of a `keyspace`, that all begin at one timestamp."""
    return FeedPlan(
        targets=[
            PlannedTarget(
                target=services.target(table_id, keyspace),
                start_at=start_at,
                scans=options.initial_scan is not ScanChoice.NO,
                protected_at=protected_at,
            )
            for table_id in table_ids
        ],
        options=options,
        query=query,
        created_at=created_at,
    )


async def _never_again(_: Mapping[int, Timestamp]) -> bool:
    raise AssertionError("nobody can ask this feed to show a target again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The sink of an attempt's rows, and the keepers of its progress. `known` is the job's copy of
    the progress: where a sink keeps none, an attempt begins with that."""

    sink: Sink
    transactional: bool
    form: Form
    follows_schema: bool = False
    known: SinkProgress | None
    save: Callable[[SinkProgress], Awaitable[None]]
    save_again: Callable[[Mapping[int, Timestamp]], Awaitable[bool]] = _never_again
    """Keeps as of when targets, by their ids, are scanned again. The progress of a scan that has
    shown nothing yet does not tell, and another attempt would not know when to read. Returns False
    where one of them was altered meanwhile: then nothing of it may be scanned."""


async def run_attempt(
    services: ChangefeedServices,
    plan: FeedPlan,
    destination: Destination,
    live: LiveFeed,
    *,
    altered: asyncio.Event | None = None,
) -> bool:
    """Runs until it fails or is cancelled, the feed has done its work, or it was `altered`. Returns
    whether no attempt is to follow, unless it was altered: one that makes room in the sink for
    targets that begin anew is followed by the one in which they begin, as is one whose targets were
    altered before it began.

    An attempt that returns or raises TargetFailed or TableDropped has flushed all that it emitted,
    and its progress is saved: another goes on behind it, with nothing twice.

    Everything begins where the sink stands by its own record: its tables, the schema feed, the
    scan. The job's copy of the progress may be of a later time, where the sink's target was removed
    or put back from an older copy.

    Raises SinkRefused also when the sink stands where this store has never been.
    """
    live.begin_attempt()
    if plan.options.transactions:
        destination = _framed(services, plan, destination)
    if plan.query is not None:
        destination = _queried(services, plan, plan.query, destination)
    sink = destination.sink
    try:
        found = await live.answered(_find_progress(services.store, plan, destination))
        if found is not None and (left := _without_fresh(plan, found)) is not None:
            # What the sink has of them goes first: they begin in the next attempt.
            await live.answered(sink.open(await _tables_kept(plan, left)))
            await live.answered(sink.flush(left))
            await destination.save(left)
            return False
        progress = _begin(plan, found, destination.known)
        stands = [_stand(planned, progress, found) for planned in plan.followed]
        tables = [await stand.planned.target.descriptor_at(stand.at) for stand in stands]
        await live.answered(sink.open(tables))
        again = {each.planned.target.id: each.scan_at for each in stands if each.planned.again}
        if again and not await destination.save_again(again):
            return False
        live.note_flushed(progress)
        await _run_pipeline(
            services, plan, destination, stands, tables, progress, live=live, altered=altered
        )
        return True
    except BatchTimestampBeforeGC as error:
        if not destination.transactional:
            raise
        raise SinkRefused(
            f"the sink stands where rows have been garbage collected since: {error}; create the "
            "changefeed again, with an initial scan"
        ) from error
    finally:
        await sink.close()


def _framed(services: ChangefeedServices, plan: FeedPlan, destination: Destination) -> Destination:
    """The destination with begin and end around each transaction."""
    assert isinstance(destination.sink, FramingSink), "its kind does not obey `transactions`"
    sink = TransactionSink(
        destination.sink,
        plan.options.envelope,
        offload=services.offload,
        known=destination.known,
    )
    return replace(destination, sink=sink)


def _queried(
    services: ChangefeedServices, plan: FeedPlan, query: FeedQuery, destination: Destination
) -> Destination:
    """The destination behind the feed's query."""
    assert services.queries is not None, "a node without queries runs a feed with one"
    sink = QuerySink(
        destination.sink,
        services.queries,
        query,
        created_at=plan.created_at,
        tells_previous=plan.options.diff or query.previous,
        holds_rows=destination.follows_schema,
        columnar=destination.form is not Form.ROWS,
    )
    return replace(destination, sink=sink, form=Form.COLUMNS)


async def _find_progress(
    store: StoreAccess, plan: FeedPlan, destination: Destination
) -> SinkProgress | None:
    """Finds the progress of the feed. Raises SinkRefused when that was in no past of this store."""
    progress = destination.known
    if destination.transactional:
        stand = await destination.sink.stand()
        if stand is not None and not await store.holds(stand.position):
            raise PastUnknown(store.id, stand.position)
        progress = None if stand is None else stand.progress
        if progress is not None and plan.arrivals is not None:
            tables = without(progress.frontier, plan.arrivals.span)
            arrivals = _arrivals_reached(plan.arrivals, destination.known)
            progress = replace(progress, frontier=tuple(sorted([*tables, *arrivals])))
    if progress is not None:
        check_progress(progress, await store.now())
    return progress


def _arrivals_reached(
    arrivals: Arrivals, known: SinkProgress | None
) -> list[tuple[Span, Timestamp]]:
    """The descriptors' part of the frontier. The job's copy tells, whatever the sink holds: the
    tables that have joined are in the job, and those that were dropped since are in it no more."""
    entries = [] if known is None else part_of(known.frontier, arrivals.span)
    return [*whole(entries or [(arrivals.span, arrivals.start_at)], arrivals.span).entries()]


def _without_fresh(plan: FeedPlan, found: SinkProgress) -> SinkProgress | None:
    """Returns the progress without the targets that begin anew; None where it has none of them."""
    left = list(found.frontier)
    for planned in plan.targets:
        if planned.fresh:
            left = without(left, planned.target.span)
    if left == list(found.frontier):
        return None
    fresh = {planned.target.id for planned in plan.targets if planned.fresh}
    backfills = tuple(each for each in found.backfills if each.table_id not in fresh)
    return replace(found, frontier=tuple(left), backfills=backfills)


async def _tables_kept(plan: FeedPlan, progress: SinkProgress) -> list[TableDescriptor]:
    """Returns the descriptors of the followed targets in the progress, as of where they stand."""
    stands = [
        _stand(planned, progress, None)
        for planned in plan.followed
        if not planned.fresh and part_of(progress.frontier, planned.target.span)
    ]
    return [await stand.planned.target.descriptor_at(stand.at) for stand in stands]


@dataclass(frozen=True, slots=True)
class _Stand:
    """The state of a target as an attempt begins: `at` is where its schema is read first."""

    planned: PlannedTarget
    at: Timestamp
    scan_at: Timestamp


def _begin(plan: FeedPlan, found: SinkProgress | None, known: SinkProgress | None) -> SinkProgress:
    """Returns the progress over all keys of all targets: as it was found, and the beginning of
    targets of which nothing was found."""
    frontier: list[tuple[Span, Timestamp]] = []
    for planned in plan.targets:
        span = planned.target.span
        entries = [] if found is None or planned.fresh else part_of(found.frontier, span)
        reached = [at for _, at in entries]
        if not entries or (planned.again and planned.followed and min(reached) > ZERO):
            entries = [(span, ZERO if planned.scans or planned.again else planned.scan_at)]
        frontier += whole(entries, span).entries()
    if plan.arrivals is not None:
        frontier += _arrivals_reached(plan.arrivals, known)
    goes_on = {each.target.id for each in plan.targets if not (each.fresh or each.again)}
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
        else tuple(each for each in found.backfills if each.table_id in goes_on),
    )


def _stand(planned: PlannedTarget, progress: SinkProgress, found: SinkProgress | None) -> _Stand:
    """A target that is still to be scanned stands where its scan reads, and one in step with the
    feed where that is resolved: so many of them share a schema feed."""
    reached = [at for _, at in part_of(progress.frontier, planned.target.span)]
    stood = [at for _, at in part_of(found.frontier, planned.target.span)] if found else []
    if planned.again and min(stood, default=ZERO) > ZERO:
        return _Stand(planned, min(stood), min(stood))
    scan_at = max(reached) or planned.begins_at
    if min(reached) == ZERO:
        return _Stand(planned, scan_at, scan_at)
    in_step = planned.start_at <= progress.resolved <= min(reached)
    at = progress.resolved if in_step else min(reached)
    return _Stand(planned, max(at, planned.created_at), scan_at)


async def _run_pipeline(
    services: ChangefeedServices,
    plan: FeedPlan,
    destination: Destination,
    stands: Sequence[_Stand],
    tables: Sequence[TableDescriptor],
    progress: SinkProgress,
    *,
    live: LiveFeed,
    altered: asyncio.Event | None,
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
                form=destination.form,
                follows_schema=destination.follows_schema,
                save=destination.save,
            ),
            start=progress,
            options=pipeline_options(
                plan.options, plan.query, holds_rows=destination.follows_schema
            ),
            query=plan.query,
            live=live,
            pace=services.pace,
            decoding=services.decoding,
            memory=services.memory,
            stop=altered,
            arrivals=plan.arrivals,
        )
        await pipeline.run()


async def _open_gates(
    services: ChangefeedServices,
    options: ChangefeedOptions,
    stands: Sequence[_Stand],
    opened: AsyncExitStack,
) -> dict[int, SchemaGate]:
    """A gate for each target. Those that stand at one timestamp share one, and its schema feed.

    A feed of a keyspace has no other target, and of the tables each has the same one.
    """
    gates: dict[int, SchemaGate] = {}
    together: dict[Timestamp, list[FeedTarget]] = {}
    for stand in stands:
        together.setdefault(stand.at, []).append(stand.planned.target)
    for at, targets in together.items():
        schema = targets[0].schema_over(services.schema_feed(options.schema_feed))
        opened.push_async_callback(schema.close)
        ids = [target.id for target in targets]
        await schema.start(ids, at)
        gates.update(dict.fromkeys(ids, SchemaGate(schema)))
    return gates


def check_progress(progress: SinkProgress, now: Timestamp) -> None:
    """Raises SinkRefused when `progress` is ahead of the clock."""
    ahead = max([progress.resolved, *(at for _, at in progress.frontier)])
    if ahead > now:
        raise SinkRefused(
            f"the sink's progress {format_timestamp(ahead)} is ahead of this store's clock "
            f"{format_timestamp(now)}: it was fed by another store, or by a later state of this one"
        )
