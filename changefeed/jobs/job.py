"""The changefeed job: what the job registry runs, retries and cancels.

A claim of the job runs one attempt (`attempt`). How it ends decides what becomes of the job:

    scan only, done                        the job has succeeded
    SinkError, a store that asks to wait   `retryable`: the registry runs it again, later
    SinkRefused, dropped table, too old    the job has failed, with this error, or is paused with
                                           `on_error = 'pause'`
    RowRefused                             as `on_bad_row` says
    cancelled                              flushed and saved, for whoever claims the job next
    the claim is lost                      left as it is

When a feed will not come back, its progress says so first. Then its protected timestamp and its
sink's names are released, and only then is the job over: what cannot be released now is tried again
as everything else of a job is, and nothing of the feed runs meanwhile, which would find it gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import msgspec

from ...catalog.jobs import JobContext, JobFenced, JobPaused
from ...kvlayer.access import committed
from ...kvlayer.clock import ZERO, Timestamp, duration
from ...kvlayer.errors import StoreClosed
from ...kvlayer.frontier import part_of
from ...kvlayer.span import Span
from ...schemafeed.feed import TableDropped
from ..contract.options import ChangefeedOptions, DropPolicy, ErrorPolicy, parse_options
from ..pipeline.live import FeedState, LiveFeed
from ..pipeline.pipeline import TargetFailed
from ..sinks.kind import SinkKind
from ..sinks.protocol import (
    BadRows,
    FeedIdentity,
    PastUnknown,
    RowRefused,
    SinkContext,
    SinkError,
    SinkProgress,
    SinkRefused,
)
from ..sinks.worker import WorkerFeed, WorkerKind
from ..targets import TargetState
from .attempt import Destination, FeedPlan, PlannedTarget, retryable, run_attempt
from .create import PROTECTION_MAX_AGE
from .dead_letters import DeadLetters
from .details import (
    ChangefeedDetails,
    SendingReport,
    TargetDetails,
    decode_details,
    decode_end,
    decode_progress,
    encode_details,
    encode_progress,
    told_since,
    with_end,
)
from .feed_rights import check_feed_rights
from .membership import Membership, protected_targets
from .objective import LatencyObjective, forget_breaches
from .reach import check_reach
from .sealed_options import opened_options
from .services import ChangefeedServices
from .sink_uris import whole_uri

PROTECTION_SECONDS = 60.0
"""How far the resolved timestamp runs ahead of the protected one before that one follows: little
beside any time to live, and a commit for each feed each time. Of what protects for less than four
times as long a quarter."""


END_SECONDS_MAX = 5.0
"""How long a feed that is told to end, by PAUSE JOB or the node's shutdown, has for its last flush.
A sink that does not answer holds up neither for longer."""


class FeedEnded(Exception):
    """The feed has ended under an earlier claim, by the error that the message tells."""


class ChangefeedJob:
    """One claim of one changefeed's job."""

    def __init__(self, services: ChangefeedServices, claim: JobContext, live: LiveFeed) -> None:
        self._services = services
        self._claim = claim
        self._live = live
        self._details = decode_details(claim.payload)
        self._protected_at: dict[bytes, Timestamp] = {}
        self._stop: asyncio.Event | None = None
        """Makes the attempt that runs flush and save, and end."""
        self._ending = False
        self._identity = FeedIdentity(
            store_id=services.store.id, job_id=claim.job.id, epoch=claim.epoch
        )

    async def run(self) -> None:
        """Runs one attempt, and returns when the feed has done its work.

        An error that `retryable` knows leaves everything as it is, for the next attempt. Any other
        is the feed's end.
        """
        ended = decode_end(self._claim.progress)
        failure: Exception | None = FeedEnded(ended) if ended else None
        if ended is None:
            try:
                self._check_store()
                await self._ending_in_order(
                    self._services.rights.during(self._check_rights, self._attempts)
                )
            except (StoreClosed, JobFenced, asyncio.CancelledError):
                self._live.state = FeedState.WAITING
                raise
            except Exception as error:  # whatever it was, it is the feed's to tell
                self._live.last_error = str(error)
                if retryable(error):
                    self._live.state = FeedState.BACKOFF
                    raise
                if self._pauses(error):
                    self._live.state = FeedState.WAITING
                    raise JobPaused(f"paused by an error: {error}") from error
                failure = error
        if isinstance(failure, PastUnknown):
            await self._release_here()
        else:
            await self._let_go("" if failure is None else str(failure) or type(failure).__name__)
        if failure is not None:
            raise failure

    async def _ending_in_order(self, work: Coroutine[None, None, None]) -> None:
        """Runs `work`. When this is cancelled, the attempt that runs has `END_SECONDS_MAX` to flush
        what it emitted and to save its progress: of that, nothing is sent again.

        One whose claim is lost, or whose owner lost a right, ends at once: its rows are another's.
        """
        task = asyncio.create_task(work)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            began = self._live.state is not FeedState.STARTING
            if self._stop is not None and began and not self._claim.lost:
                self._ending = True
                self._stop.set()
                await asyncio.wait([task], timeout=END_SECONDS_MAX)
            raise
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # seen, though only a feed that goes on tells of it
        await task

    def _pauses(self, error: Exception) -> bool:
        """Whether the feed is to be paused where another one would fail."""
        if isinstance(error, RowRefused):
            return error.pauses
        return self._details.taken_options.on_error is ErrorPolicy.PAUSE

    async def cancel(self) -> None:
        """The job was cancelled, and no attempt is running."""
        await self._let_go("the job was canceled")

    async def _attempts(self) -> None:
        """Makes one attempt after another, each with the targets that the feed has by then."""
        kind = self._services.kinds.kind_of(self._details.sink_uri)
        if isinstance(kind, WorkerKind):
            await self._run_worker(kind)
            return
        while not self._ending:
            await self._forget_dropped()
            self._details = details = decode_details(self._claim.payload)
            altered = self._stop = asyncio.Event()
            watching = [asyncio.create_task(self._watch(altered))]
            if slo := details.parsed_options.slo_p99:
                objective = LatencyObjective(self._services.store, self._live, slo)
                watching.append(asyncio.create_task(objective.watch(), name="feed objective"))
            try:
                done = await self._attempt(kind, altered)
            except TargetFailed as failed:
                await self._leave(failed.target_id, TargetState.FAILED, failed.cause)
            except TableDropped as dropped:
                if details.drop_policy is DropPolicy.STOP:
                    raise
                await self._leave(dropped.table_id, TargetState.DROPPED, dropped)
            except SinkRefused:
                # Where another task of a replication has got keys that were this one's, the replica
                # tells it before this node does.
                if not await self._altered_meanwhile():
                    raise
            else:
                if done and not altered.is_set():
                    return
            finally:
                self._stop = None
                for task in watching:
                    task.cancel()

    async def _altered_meanwhile(self) -> bool:
        """Whether the feed is to do something else than its attempt did, also where this node has
        not heard of that."""
        payload = await self._claim.change_payload(lambda known: known)
        return decode_details(payload).asks_more_than(self._details)

    async def _watch(self, altered: asyncio.Event) -> None:
        """Sets `altered` when the feed is to do something else than its attempt does."""
        known = self._claim.payload
        while True:
            if decode_details(known).asks_more_than(self._details):
                altered.set()
                return
            known = await self._claim.payload_changed(known)

    async def _leave(self, table_id: int, state: TargetState, why: Exception) -> None:
        """A target can be followed no further: the others go on without it, if there are any, also
        such as are paused.

        Raises `why` where there are none.
        """
        others = [each for each in self._details.targets if each.table_id != table_id]
        waits = any(each.state.followed or each.state is TargetState.PAUSED for each in others)
        if not waits and self._details.whole_database is None:
            raise why
        now = await self._services.store.now()
        dropped_at = now if state is TargetState.DROPPED else ZERO

        def change(payload: bytes) -> bytes:
            details = decode_details(payload)
            target = details.target(table_id)
            if target is None:
                return payload  # dropped from the feed meanwhile
            left = msgspec.structs.replace(
                target, state=state, error=str(why), dropped_at=dropped_at
            )
            return encode_details(details.with_target(left))

        await self._claim.change_payload(change)
        self._services.store.metrics.add("changefeed_targets_left_total")

    async def _forget_dropped(self) -> None:
        """Drops from the job the targets whose tables were dropped long ago."""
        store = self._services.store
        before = told_since(store.settings, await store.now())
        forgotten = decode_details(self._claim.payload).dropped_before(before)
        if not forgotten:
            return

        def change(payload: bytes) -> bytes:
            return encode_details(decode_details(payload).told_after(before))

        await self._claim.change_payload(change)
        await self._release([each.protection_id for each in forgotten if each.protection_id])

    async def _attempt(self, kind: SinkKind, altered: asyncio.Event) -> bool:
        services, details = self._services, self._details
        options = parse_options(opened_options(services, details.options), details.query)
        if kind.checkpoint_seconds is not None and options.paced_when_idle:
            options = replace(options, min_checkpoint_frequency=kind.checkpoint_seconds)
        found = self._claim.progress
        known = decode_progress(found) if found else None
        uri = whole_uri(services, details)
        self._protected_at = {each: await self._read(each) for each in details.protections}
        planned = [self._planned(target) for target in details.targets if not target.state.final]
        await kind.load(options, services.offload)
        sink = kind.create(
            uri,
            SinkContext(
                identity=self._identity,
                position=lambda: services.store.position,
                clock=services.store.clock,
                offload=services.offload,
                settings=services.store.settings,
                metrics=services.store.metrics,
                options=options,
                node_id=services.node_id,
                bad_rows=self._bad_rows(options),
                freshen=self._live.freshen,
                holds=services.store.holds,
                note_trouble=self._live.note_trouble,
                start_at=details.start_at,
                task=details.task_keys,
                known=known,
                begins={each.target.id: each.begins_at for each in planned},
                names={target.table_id: target.name for target in details.targets},
                kept=frozenset(
                    target.table_id
                    for target in details.targets
                    if not (target.fresh or target.state.followed or target.state.final)
                ),
            ),
        )
        destination = Destination(
            sink=sink,
            transactional=kind.keeps_progress(options),
            form=kind.form_of(sink),
            follows_schema=kind.follows(uri),
            known=known,
            save=self._save,
            save_again=self._save_again,
        )
        arrivals = None
        if details.whole_database is not None:
            arrivals = Membership(
                services,
                details.whole_database,
                frozenset(target.table_id for target in details.targets),
                start_at=max(details.start_at, self._protected_at[details.protection_id]),
                join=partial(self._join, kind),
            )
        plan = FeedPlan(
            targets=planned,
            options=replace(options, diff=options.diff or kind.wants_previous(uri)),
            query=details.query,
            created_at=details.created_at or details.start_at,
            arrivals=arrivals,
        )
        return await run_attempt(services, plan, destination, self._live, altered=altered)

    def _bad_rows(self, options: ChangefeedOptions) -> BadRows:
        return DeadLetters(
            self._services.store,
            self._claim.job.id,
            {target.table_id: target.name for target in self._details.targets},
            policy=options.on_bad_row,
            pauses=options.on_error is ErrorPolicy.PAUSE,
        )

    def _planned(self, target: TargetDetails) -> PlannedTarget:
        protected_at = self._protected_at[target.protection_id or self._details.protection_id]
        # What joined at its creation was shown its history; of that, some may be collected by now.
        collected = bool(target.created_at) and protected_at > target.start_at
        return PlannedTarget(
            target=self._services.target(target.table_id, target.keyspace),
            start_at=target.start_at,
            scans=target.scans or collected,
            fresh=target.fresh,
            again=target.again,
            again_at=target.again_at,
            followed=target.state.followed,
            protected_at=protected_at,
            created_at=target.created_at,
        )

    async def _join(self, kind: SinkKind, joining: Sequence[TargetDetails]) -> None:
        """Tables of the database that the feed follows are its targets from the next attempt on."""
        known = decode_details(self._claim.payload)
        joined = await protected_targets(self._services, kind, known, joining, self._identity)
        added = joined.targets[len(known.targets) :]
        gone = await self._gone(known)

        def change(payload: bytes) -> bytes:
            details = decode_details(payload)
            new = [each for each in added if details.target(each.table_id) is None]
            old = [each for each in details.targets if each.table_id not in gone]
            return encode_details(msgspec.structs.replace(details, targets=(*old, *new)))

        await self._claim.change_payload(change)
        await self._release([protection_id for protection_id in gone.values() if protection_id])

    async def _gone(self, details: ChangefeedDetails) -> dict[int, bytes]:
        """Returns the dropped tables that the feed's database frontier has passed, each with the id
        of its protected timestamp: no descriptor brings them back."""
        found = self._claim.progress
        if found is None or details.whole_database is None:
            return {}
        parts = part_of(decode_progress(found).frontier, details.whole_database.span)
        passed = min((at for _, at in parts), default=ZERO)
        gone: dict[int, bytes] = {}
        for target in details.targets:
            if target.state.final and passed > target.start_at:
                table = await self._services.descriptors.read_at(target.table_id, passed)
                if table is None or table.dropped:
                    gone[target.table_id] = target.protection_id
        return gone

    async def _release(self, protection_ids: Sequence[bytes]) -> None:
        async with committed(self._services.store) as transaction:
            for record_id in protection_ids:
                await self._services.protections.release(transaction, record_id)

    async def _run_worker(self, kind: WorkerKind) -> None:
        details = self._details
        self._live.begin_attempt()
        found = self._claim.progress
        (target,) = details.targets
        feed = WorkerFeed(
            identity=self._identity,
            uri=whole_uri(self._services, details),
            table_id=target.table_id,
            name=target.name,
            span=self._services.target(target.table_id, target.keyspace).span,
            user=details.user_name,
            start_at=details.start_at,
            resolved=decode_progress(found).resolved if found else details.start_at,
            options=details.parsed_options,
            position=lambda: self._services.store.position,
            holds=self._services.store.holds,
            report=self._note_batch,
        )
        try:
            await kind.run(feed)
        except SinkError as error:
            self._live.note_trouble(str(error))
            raise

    async def _note_batch(self, progress: SinkProgress, rows: int) -> None:
        """A worker has written a batch."""
        await self._save(progress)
        self._live.state = FeedState.STEADY
        self._live.note_trouble(None)
        self._live.rows_emitted += rows
        self._live.rows_sunk += rows
        self._live.note_flushed(progress)

    async def _save(self, progress: SinkProgress) -> None:
        sending = None
        if self._details.replication:
            sending = sending_report(self._live, await self._services.store.now())
        await self._claim.save_progress(encode_progress(progress, sending))
        await self._note_begun(progress)
        age = self._details.parsed_options.gc_protect_expires_after
        age = age or self._services.store.settings.get(PROTECTION_MAX_AGE)
        behind = min(PROTECTION_SECONDS, age / 4) if age else PROTECTION_SECONDS
        least = min(self._protected_at.values(), default=ZERO)
        if progress.resolved - least > duration(seconds=behind):
            for record_id, targets in self._details.protections.items():
                reached = self._needed_from(targets, progress)
                if reached - self._protected_at.get(record_id, ZERO) > duration(seconds=behind):
                    await self._protect(record_id, reached)

    def _needed_from(self, targets: Sequence[TargetDetails], progress: SinkProgress) -> Timestamp:
        """Returns the timestamp above which the feed has still to read these targets."""
        spans = [
            self._services.target(target.table_id, target.keyspace).span
            for target in targets
            if not target.state.final
        ]
        reached = (at for span in spans for _, at in part_of(progress.frontier, span))
        return min(reached, default=progress.resolved)

    async def _note_begun(self, progress: SinkProgress) -> None:
        """Clears `fresh` and `again` of the targets of which the sink holds progress by now."""
        begun = {
            target.table_id
            for target in self._details.followed
            if (target.fresh or target.again)
            and _begun(self._services.target(target.table_id, target.keyspace).span, progress)
        }
        if begun:
            await self._change_targets(
                {
                    target.table_id: msgspec.structs.replace(
                        target, fresh=False, again=False, again_at=ZERO
                    )
                    for target in self._details.targets
                    if target.table_id in begun
                }
            )

    async def _save_again(self, at: Mapping[int, Timestamp]) -> bool:
        return await self._change_targets(
            {
                target.table_id: msgspec.structs.replace(target, again_at=at[target.table_id])
                for target in self._details.targets
                if at.get(target.table_id, target.again_at) != target.again_at
            }
        )

    async def _change_targets(self, changed: Mapping[int, TargetDetails]) -> bool:
        """Writes changed targets into the job. A target that a statement altered meanwhile keeps
        what the statement wrote: another attempt reads that. Returns whether there is none."""
        if not changed:
            return True
        known = self._details

        def change(payload: bytes) -> bytes:
            details = decode_details(payload)
            for target_id, target in changed.items():
                if details.target(target_id) == known.target(target_id):
                    details = details.with_target(target)
            return encode_details(details)

        self._details = decode_details(change(encode_details(known)))
        stored = decode_details(await self._claim.change_payload(change))
        return all(stored.target(target_id) == target for target_id, target in changed.items())

    async def _read(self, record_id: bytes) -> Timestamp:
        """Above it, nothing that the record protects may have been collected."""
        store = self._services.store
        record = await self._services.protections.read(store.snapshot(await store.now()), record_id)
        return ZERO if record is None else record.timestamp

    async def _protect(self, record_id: bytes, reached: Timestamp) -> None:
        """Moves a protected timestamp up, unless it was released: its targets were dropped from the
        feed, of which this attempt has not heard yet."""
        with suppress(KeyError):
            async with committed(self._services.store) as transaction:
                await self._services.protections.advance(transaction, record_id, reached)
        self._protected_at[record_id] = reached

    async def _check_rights(self) -> None:
        details = self._details
        tables = [target.table_id for target in details.followed]
        await check_feed_rights(
            self._services,
            details.user_name,
            tables,
            logs_in=details.owner_logs_in,
            whole_database=details.whole_database,
        )
        if not details.connection:
            await check_reach(self._services, whole_uri(self._services, details), details.user_name)

    def _check_store(self) -> None:
        if self._details.store_id != self._services.store.id:
            raise SinkRefused(
                f"changefeed {self._claim.job.id} belongs to store {self._details.store_id}, "
                f"and this is store {self._services.store.id}"
            )

    async def _let_go(self, why: str) -> None:
        """Notes that the feed has ended, and releases what it held, the protected timestamp first.

        A target that is a file of another node stays as it is: that node finds the job over when
        it next opens the file. Raises what `retryable` knows where something cannot be released
        now, and JobFenced when the claim is lost: then all of it belongs to the next holder.
        """
        await self._claim.save_progress(with_end(self._claim.progress, why))
        await self._release_here()
        services, details = self._services, decode_details(self._claim.payload)
        kind = services.kinds.kind_of(details.sink_uri)
        if not kind.local or details.node_id == services.node_id:
            uri = whole_uri(services, details)
            held = kind.release(uri, self._identity, services.store.holds)
            await self._live.answered(held)

    async def _release_here(self) -> None:
        """Releases what the feed held in this store. A sink that was fed from another past stays
        as it is: the store that went on there has this one's id, and feeds it by the same job."""
        self._live.stop()
        details = decode_details(self._claim.payload)
        await self._release(list(details.protections))
        if details.taken_options.slo_p99:
            await forget_breaches(self._services.store, self._claim.job.id)


def sending_report(live: LiveFeed, now: Timestamp) -> SendingReport:
    """The report of a feed that this node runs."""
    return SendingReport(
        rows=live.rows_emitted,
        attempts=live.attempts,
        rows_per_second=live.row_rate.per_second(asyncio.get_running_loop().time()),
        lag=live.lag_split(now),
    )


def _begun(span: Span, progress: SinkProgress) -> bool:
    """Whether the progress tells of keys in `span` that were shown."""
    return any(at > ZERO for _, at in part_of(progress.frontier, span))
