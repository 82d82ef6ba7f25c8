"""The changefeeds of a node: what SQL asks for, what the job registry runs, what a user sees."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ..catalog.jobs import JobContext, JobRecord, JobState
from ..catalog.jobs.record import encode_progress as encode_job_progress
from ..catalog.leases.liveness import node_lives
from ..catalog.values.errors import SQLError
from ..kvlayer.access import committed
from ..kvlayer.clock import ZERO, Timestamp, format_timestamp, seconds_between
from ..kvlayer.frontier import part_of
from ..kvlayer.span import Span
from ..kvlayer.txn import Transaction
from .backup import KeyspaceBackups
from .insight import (
    Fact,
    FeedPosition,
    SpanLag,
    StageReport,
    explain_feed,
    feed_lag,
    lagging_ranges,
    stage_reports,
)
from .jobs.alter import alter_changefeed
from .jobs.alterations import Alteration
from .jobs.connection_feeds import (
    alter_connection,
    create_connection,
    drop_connection,
    give_connection,
)
from .jobs.create import FeedRequest, JobCreator, check_query, check_start, plan_changefeed
from .jobs.dead_letters import DeadLetter, Retry, read_letters, skip_letters
from .jobs.description import describe
from .jobs.details import (
    ChangefeedDetails,
    ReplicationTask,
    SendingReport,
    TargetDetails,
    UnknownFormat,
    decode_details,
    decode_progress,
    decode_sending,
    encode_details,
    told_since,
)
from .jobs.job import ChangefeedJob, sending_report
from .jobs.places import claim_place
from .jobs.replication_tasks import cut, dealt_nodes, rebalance
from .jobs.reservations import JOB_KIND, release_orphans
from .jobs.services import ChangefeedServices
from .jobs.waits import FeedWaits
from .pipeline.live import FeedState, LiveFeed
from .schedules import (
    SCHEDULE_KIND,
    ScheduleJob,
    ScheduleOptions,
    decode_schedule,
    describe_schedule,
    encode_schedule,
    plan_schedule,
)
from .sinks.files import FilesKind
from .sinks.protocol import SinkProgress
from .sinks.sinkless import ChangefeedRow
from .streams.sample import sample
from .streams.stream import ChangefeedStream, open_stream, stream_options
from .subscriptions import (
    Subscription,
    SubscriptionBounds,
    SubscriptionReader,
    acknowledge,
    create_subscription,
    drop_subscription,
)
from .targets import KeyspacePart, TargetState
from .verify import FeedVerification, Verified

HOME_FIRST_SECONDS = 1.0
"""How long a new feed waits for the node where it was created: that one hears of it at once."""

ENDED_MAX = 100
"""Feeds that have ended here and of which it is still told what was measured: 10 KiB to 2 MiB each,
and a schedule begins a feed a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStatus:
    """The facts that SHOW CHANGEFEED JOBS adds to a job.

    `resolved` is zero while nothing is resolved; `start_at` is where the feed began.
    """

    running_status: str
    resolved: Timestamp
    start_at: Timestamp
    sink_uri: str
    full_table_names: tuple[str, ...]
    replication: str | None
    partial: bool
    """Whether it, or the replication of which it is a task, follows some keys of a keyspace, and
    not all."""
    task: TaskStatus | None
    """The state of one task of a replication, where the feed is one."""
    sending: SendingReport | None
    """The traffic of a replication, as this node sees it, or as the node of its job saved it
    last."""
    trouble: str | None
    """The sink's reason not to take what it is sent, as this node knows it."""
    table_ids: tuple[int, ...]
    watched: str
    """The targets, each with what it is doing and how far it has come."""
    follows: bool
    """Whether any of them is followed: a feed of which all are paused resolves nothing more."""
    topics: tuple[str, ...]
    format: str
    user_name: str
    metrics_label: str
    target_uri: str
    """The URI behind an external connection; else the same as `sink_uri`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """One task of a replication, and its keys."""

    number: int
    part: KeyspacePart
    created_at: Timestamp


class Changefeeds:
    """Makes, runs and shows changefeeds."""

    def __init__(self, services: ChangefeedServices, jobs: JobCreator) -> None:
        self._services = services
        self._jobs = jobs
        self._live: dict[int, LiveFeed] = {}
        self._lagging: dict[int, tuple[float, int]] = {}
        """The late ranges of a feed, and the time at which they are counted again."""
        self.waits = FeedWaits(services.store, self.watch)
        self.subscription_bounds = SubscriptionBounds(services)

    # For SQL

    async def create(
        self,
        transaction: Transaction,
        request: FeedRequest,
        sink: str,
        *,
        user_name: str = "root",
    ) -> int:
        """Writes the job in the transaction, and returns its id. Raises SQLError."""
        details = await plan_changefeed(
            self._services, transaction, request, sink, user_name=user_name
        )
        payload = encode_details(details)
        return await self._jobs.create(
            transaction,
            JOB_KIND,
            describe(details),
            payload,
            paused=details.parsed_options.paused,
        )

    async def create_replication(
        self,
        transaction: Transaction,
        request: FeedRequest,
        sink: str,
        *,
        workers: int,
        user_name: str = "root",
    ) -> list[int]:
        """Writes a job for each worker, or for fewer where there are fewer ranges. Raises
        SQLError."""
        assert request.keyspace is not None, request
        whole, (table,) = request.keyspace, request.tables
        parts = cut(self._services, table.id, whole, workers)
        nodes = await dealt_nodes(self._services, len(parts))
        created = []
        for number, (part, node_id) in enumerate(zip(parts, nodes, strict=True), start=1):
            task = ReplicationTask(number=number, workers=workers, whole=whole)
            asked = replace(request, keyspace=part, task=task, node_id=node_id)
            created.append(await self.create(transaction, asked, sink, user_name=user_name))
        return created

    async def rebalance(
        self, transaction: Transaction, job_ids: Sequence[int]
    ) -> list[tuple[int, str]]:
        """Cuts the keys of a replication's tasks anew in the transaction; returns the jobs that
        have others now, with their descriptions, new jobs last. Raises SQLError."""
        changed = await rebalance(self._services, transaction, job_ids)
        rows = list(changed.described.items())
        for details in changed.added:
            description, payload = describe(details), encode_details(details)
            paused = details.parsed_options.paused
            job_id = await self._jobs.create(
                transaction, JOB_KIND, description, payload, paused=paused
            )
            rows.append((job_id, description))
        return rows

    async def create_schedule(
        self,
        transaction: Transaction,
        request: FeedRequest,
        sink: str,
        *,
        label: str,
        crontab: str,
        options: ScheduleOptions,
    ) -> tuple[int, datetime]:
        """Writes a schedule's job in the transaction. Returns its id and the time of its first run.
        Raises SQLError."""
        schedule, progress = await plan_schedule(
            self._services, request, sink, label=label, crontab=crontab, options=options
        )
        payload, description = encode_schedule(schedule), describe_schedule(schedule)
        job_id = await self._jobs.create(
            transaction, SCHEDULE_KIND, description, payload, paused=False
        )
        key, body = encode_job_progress(job_id, encode_schedule(progress), 0)
        await transaction.put([key], [body])
        return job_id, datetime.fromtimestamp(progress.next_run, UTC)

    async def alter(
        self,
        transaction: Transaction,
        job_id: int,
        alterations: Sequence[Alteration],
        *,
        at: Timestamp,
    ) -> str:
        """Changes the job in the transaction; returns its new description. Raises SQLError."""
        return await alter_changefeed(self._services, transaction, job_id, alterations, at=at)

    async def create_connection(
        self, transaction: Transaction, name: str, uri: str, user: str
    ) -> None:
        """Writes an external connection in the transaction. Raises SQLError."""
        await create_connection(self._services, transaction, name, uri, user)

    async def alter_connection(
        self, transaction: Transaction, name: str, uri: str, user: str
    ) -> None:
        """Gives a connection, and the feeds that use it, another URI. Raises SQLError."""
        await alter_connection(self._services, transaction, name, uri, user)

    async def give_connection(
        self, transaction: Transaction, name: str, owner: str, user: str
    ) -> None:
        """Makes a role a connection's owner. Raises SQLError."""
        await give_connection(self._services, transaction, name, owner, user)

    async def drop_connection(self, transaction: Transaction, name: str, user: str) -> None:
        """Raises SQLError."""
        await drop_connection(self._services, transaction, name, user)

    async def stream(self, request: FeedRequest) -> ChangefeedStream:
        """A feed without a sink. Raises SQLError."""
        return await open_stream(self._services, request)

    async def explain(
        self, transaction: Transaction, request: FeedRequest, sink: str | None
    ) -> list[Fact]:
        """Describes the feed that the request would create. Its faults are told as at its creation:
        roll the transaction back. Raises SQLError."""
        if sink is None:
            options = stream_options(request.options, request.query)
            await check_start(self._services, request, options.cursor)
            if request.query is not None:
                start_at = request.at if options.cursor is None else options.cursor
                await check_query(self._services, request, request.query, start_at)
        else:
            details = await plan_changefeed(
                self._services, transaction, request, sink, user_name=request.user
            )
            sink = details.sink_uri
        return await explain_feed(self._services, request, sink)

    async def sample(self, request: FeedRequest, count: int) -> list[ChangefeedRow]:
        """Up to `count` messages that such a feed would send now. Raises SQLError."""
        return await sample(self._services, request, count)

    async def subscribe(self, transaction: Transaction, request: FeedRequest, name: str) -> None:
        """Writes a subscription in the transaction. Raises SQLError."""
        await create_subscription(self._services, transaction, request, name)

    async def read_subscription(self, subscription: Subscription, user: str) -> SubscriptionReader:
        """A reader from the subscription's position on. Raises SQLError."""
        return await SubscriptionReader.open(self._services, subscription, user)

    async def acknowledge(
        self, transaction: Transaction, subscription: Subscription, upto: Timestamp
    ) -> None:
        """Moves the position in the transaction. Raises SQLError."""
        await acknowledge(self._services, transaction, subscription, upto)

    async def unsubscribe(self, transaction: Transaction, subscription: Subscription) -> None:
        """Removes the subscription in the transaction."""
        await drop_subscription(self._services, transaction, subscription)

    @property
    def backups(self) -> KeyspaceBackups:
        """Raises SQLError on a node that makes none."""
        if self._services.backups is None:
            raise SQLError("0A000", "this node makes no backups")
        return self._services.backups

    async def backup_folder(self, uri: str, user: str) -> Path:
        """The folder of a backup, which belongs to the user or to nobody yet. Raises SQLError."""
        kind = self._services.kinds.kind_of("file:///")
        assert isinstance(kind, FilesKind), kind
        path = kind.folder_of(uri)
        async with committed(self._services.store) as transaction:
            await claim_place(self._services, transaction, uri, user)
        return path

    # For the job registry

    async def run(self, claim: JobContext) -> None:
        """Runs a claimed job (`ChangefeedJob.run`)."""
        live = self._live.get(claim.job.id)
        if live is None or live.ended:
            live = self._live[claim.job.id] = LiveFeed(claim.job.id)
        try:
            await ChangefeedJob(self._services, claim, live).run()
        finally:
            self._forget_ended()

    def _forget_ended(self) -> None:
        ended = [job_id for job_id, live in self._live.items() if live.ended]
        for job_id in ended[:-ENDED_MAX]:
            del self._live[job_id]
            self._lagging.pop(job_id, None)

    async def run_schedule(self, context: JobContext) -> None:
        """Runs a claimed schedule (`ScheduleJob.run`)."""
        await ScheduleJob(self._services, self._jobs, context).run()

    async def cancel(self, claim: JobContext) -> None:
        """Cleans up after a job that was cancelled."""
        await ChangefeedJob(self._services, claim, self.watch(claim.job.id)).cancel()
        self._live.pop(claim.job.id, None)
        self._lagging.pop(claim.job.id, None)

    def runs_here(self, job_id: int, payload: bytes) -> bool:
        """Whether this node may run the feed.

        A mirror stays with the node that holds its file, and secrets with nodes that have their
        key. Any other feed belongs first to the node where it was created, and to whoever finds it
        free when that one has not taken it.
        """
        return self._may_run(job_id, decode_details(payload))

    def _may_run(self, job_id: int, details: ChangefeedDetails) -> bool:
        if details.node_id == self._services.node_id:
            return True
        if details.sealed_uri and not self._services.sealer.opens(details.sealed_uri):
            return False
        if self._services.kinds.kind_of(details.sink_uri).local:
            return False
        created_at = Timestamp(job_id)  # ids of jobs are drawn from the clock
        age = seconds_between(created_at, self._services.store.clock.last)
        return age > HOME_FIRST_SECONDS

    async def accepts(self, job: JobRecord) -> bool:
        """Whether this node may claim the job: to run it, or to end it.

        A feed that is to be paused or canceled needs its own node for that only while that node
        lives: of a node that died nothing but the job is left.
        """
        try:
            if job.kind == SCHEDULE_KIND:
                return self._may_run(job.id, decode_schedule(job.payload).feed)
            if job.kind != JOB_KIND or self.runs_here(job.id, job.payload):
                return True
        except UnknownFormat:
            return False  # a newer version of this program wrote it, and runs it
        if job.state not in (JobState.PAUSE_REQUESTED, JobState.CANCEL_REQUESTED):
            return False
        return not await node_lives(self._services.store, decode_details(job.payload).node_id)

    async def release_orphans(self) -> None:
        """Releases the protected timestamps that feeds which are over have left behind."""
        try:
            released = await release_orphans(self._services)
        except UnknownFormat:
            return  # a newer version of this program wrote the job, and sees to it
        self._services.store.metrics.add("changefeed_orphans_released_total", released)

    # For those who look

    def feed(self, job_id: int) -> LiveFeed | None:
        """The feed as this node knows it: None if it never ran here."""
        return self._live.get(job_id)

    def watch(self, job_id: int) -> LiveFeed:
        """The feed as this node knows it, also before it was claimed here."""
        return self._live.setdefault(job_id, LiveFeed(job_id))

    async def wait_until(self, job_id: int, timestamp: Timestamp) -> None:
        """Returns when the feed's sink holds all that was committed at or below `timestamp`.

        A feed that has not been claimed yet is waited for. Raises FeedStopped.
        """
        await self.watch(job_id).wait_until(timestamp)

    async def verify(self, job_id: int, payload: bytes, *, repairs: bool) -> Verified:
        """Returns the differences between a feed's sink and its tables (`FeedVerification.run`)."""
        details, live = decode_details(payload), self.watch(job_id)
        verification = FeedVerification(self._services, job_id, details, live)
        return await verification.run(repairs=repairs)

    async def dead_letters(self, job_id: int) -> list[DeadLetter]:
        """The feed's dead letters, by table and key."""
        return await read_letters(self._services.store, job_id)

    async def skip_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Forgets them: whoever reads the sink goes without those versions."""
        await skip_letters(self._services.store, letters)

    def retry_of_dead_letters(self, job_id: int) -> Retry:
        """Sends dead letters again through the feed, which is to run here."""
        return Retry(self._services.store, self._services.descriptors, self.watch(job_id))

    async def latency(self, job_id: int) -> list[StageReport]:
        """The times and the waiting rows of each stage of a feed.

        Of a feed that does not run here it tells what was measured when it last did.
        """
        store = self._services.store
        now = await store.now()
        return stage_reports(self.watch(job_id), now, store.clock.wall.monotonic_ns())

    async def lag(
        self, job_id: int, payload: bytes, saved: bytes | None, *, halted: str | None
    ) -> list[SpanLag]:
        """The lag of each span of a feed.

        `halted` is the job's state where it is not to run; `saved` is the job's progress, which
        counts where the feed runs on another node.
        """
        details, live = decode_details(payload), self._live.get(job_id)
        progress = None if live is None or not live.here else live.progress
        if progress is None and saved is not None:
            progress = decode_progress(saved)
        services = self._services
        return await feed_lag(
            FeedPosition(details=details, progress=progress, live=live, halted=halted),
            [services.target(target.table_id, target.keyspace) for target in details.targets],
            services.store,
            services.store.clock.last,
            asyncio.get_running_loop().time(),
        )

    async def lagging_ranges(self, job_id: int, payload: bytes, saved: bytes | None) -> int:
        """The number of ranges that are further behind than the feed's `lagging_ranges_threshold`,
        counted each `lagging_ranges_polling_interval` at most, in every state of the feed."""
        at = asyncio.get_running_loop().time()
        due_at, count = self._lagging.get(job_id, (at, 0))
        if at >= due_at:
            options = decode_details(payload).taken_options
            spans = await self.lag(job_id, payload, saved, halted=None)
            count = lagging_ranges(spans, self._services.store, options.lagging_ranges_threshold)
            self._lagging[job_id] = (at + options.lagging_ranges_polling_interval, count)
        return count

    def close(self) -> None:
        """The node stops: who waits for a feed here is told so. Jobs go on elsewhere, or later."""
        for live in self._live.values():
            live.last_error = live.last_error or "the node is closing"
            live.stop()

    def _task_resolved(
        self, details: ChangefeedDetails, known: Sequence[SinkProgress | None]
    ) -> Timestamp:
        """The resolved timestamp of a task by the progress of all of its keys: they may have been
        others'."""
        (target,) = details.targets
        span = self._services.target(target.table_id, target.keyspace).span
        lows = [
            min(at for _, at in parts)
            for progress in known
            if progress is not None
            and progress.scan_complete
            and _cover(parts := part_of(progress.frontier, span), span)
        ]
        return max(lows, default=ZERO)

    def _sending(
        self, details: ChangefeedDetails, live: LiveFeed | None, saved: bytes | None
    ) -> SendingReport | None:
        if not details.replication:
            return None
        if live is not None and live.here:
            return sending_report(live, self._services.store.clock.last)
        return decode_sending(saved)

    def status(
        self, job_id: int, payload: bytes, progress: bytes | None, *, halted: str | None = None
    ) -> FeedStatus:
        """A feed's state, from its job's row and from what this node knows of it. `halted` is the
        job's state where it is not to run.

        Its lag is as of the last timestamp drawn: reading those rows has drawn one.
        """
        store = self._services.store
        details = decode_details(payload).told_after(told_since(store.settings, store.clock.last))
        saved = decode_progress(progress) if progress else None
        live = self._live.get(job_id)
        resolved = max(
            ZERO if saved is None else saved.resolved, ZERO if live is None else live.resolved
        )
        known = saved if live is None or live.progress is None else live.progress
        if details.task is not None:
            sent = None if live is None else live.progress
            resolved = self._task_resolved(details, [saved, sent])
        names = {target.table_id: target.name for target in details.targets}
        options = details.taken_options
        kind = self._services.kinds.kind_of(details.sink_uri)
        return FeedStatus(
            running_status=FeedState.WAITING.value
            if live is None
            else live.describe(store.clock.last, resolved or details.start_at, details.shown_sink),
            resolved=resolved,
            start_at=details.start_at,
            sink_uri=details.shown_sink,
            target_uri=details.sink_uri,
            full_table_names=tuple(names.values()),
            replication=details.replication or None,
            partial=any(
                part is not None and bool(part.start or part.end is not None)
                for part in (
                    target.keyspace if details.task is None else details.task.whole
                    for target in details.targets
                )
            ),
            task=_task_status(details),
            sending=self._sending(details, live, progress),
            trouble=None if live is None or not live.here else live.trouble,
            table_ids=tuple(target.table_id for target in details.targets),
            watched="; ".join(
                watched(target, self._services.target(target.table_id).span, known, halted)
                for target in details.targets
            ),
            follows=bool(details.followed) or details.whole_database is not None,
            topics=kind.topic_names(details.sink_uri, names, options),
            format=options.format.value,
            user_name=details.user_name,
            metrics_label=options.metrics_label,
        )


def _cover(parts: Sequence[tuple[Span, Timestamp]], span: Span) -> bool:
    left = [span]
    for part, _ in parts:
        left = [rest for each in left for rest in each.minus(part)]
    return not left


def _task_status(details: ChangefeedDetails) -> TaskStatus | None:
    if details.task is None:
        return None
    (target,) = details.targets
    assert target.keyspace is not None, target
    return TaskStatus(
        number=details.task.number, part=target.keyspace, created_at=details.created_at
    )


def watched(
    target: TargetDetails, span: Span, progress: SinkProgress | None, halted: str | None
) -> str:
    """A target as SHOW CHANGEFEED JOBS WITH WATCHED_TABLES prints it, as of the progress that is
    known. Where the job is `halted`, so are the targets that the feed would follow."""
    parts = () if progress is None else part_of(progress.frontier, span)
    reached = min((at for _, at in parts), default=ZERO)
    state = target.state
    if state is TargetState.RUNNING and progress is not None:
        backfills = {each.table_id for each in progress.backfills if not each.done}
        if reached == ZERO or target.fresh or target.again:
            state = TargetState.SCANNING
        elif target.table_id in backfills:
            state = TargetState.BACKFILLING
        elif reached < progress.resolved:
            state = TargetState.CATCHING_UP
    at = f" at {format_timestamp(reached)}" if reached else ""
    error = f": {target.error}" if target.error else ""
    word = halted if halted is not None and state.followed else state.value
    return f"{target.name} {word}{at}{error}"
