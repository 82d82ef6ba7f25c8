"""The schedule's job: sleeps, makes a changefeed, and sees how that ends.

next_run 03:00          it sleeps
next_run 04:00, feed 7  03:00 has come: the feed was made, in one transaction with this
next_run 04:00          feed 7 is over
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.jobs import JobContext, JobNotFound, JobPaused, JobRecord, JobState
from ...catalog.jobs.errors import message_of
from ...catalog.jobs.job_store import JobStore
from ...catalog.jobs.record import job_key
from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ...kvlayer.access import committed
from ...kvlayer.txn import Transaction
from ..contract.options import SCAN_OPTIONS
from ..jobs.create import FeedRequest, JobCreator, plan_changefeed
from ..jobs.description import describe, quoted
from ..jobs.details import ChangefeedDetails, encode_details
from ..jobs.reservations import FEED_QUOTA, JOB_KIND
from ..jobs.sealed_options import opened_options
from ..jobs.services import ChangefeedServices
from ..jobs.sink_uris import whole_uri
from ..sinks.protocol import SinkError, SinkRefused
from .schedule import (
    FailurePolicy,
    OverlapPolicy,
    ScheduleDetails,
    ScheduleOptions,
    ScheduleProgress,
    ScheduleStatus,
    decode_schedule,
    decode_schedule_progress,
    encode_schedule,
    next_run,
)

LOOK_SECONDS = 1.0
"""How often the run that is under way is looked at."""

SLEEP_SECONDS_MAX = 60.0
"""So late a run is at most, where the clock of the machine was set forward meanwhile."""

RETRY_SECONDS = 60.0

US = 1e6


async def plan_schedule(
    services: ChangefeedServices,
    request: FeedRequest,
    sink: str,
    *,
    label: str,
    crontab: str,
    options: ScheduleOptions,
) -> tuple[ScheduleDetails, ScheduleProgress]:
    """The schedule, and how far it is as it begins. What is wrong with the changefeed is said as
    at its creation, and nothing of it is kept. Raises SQLError."""
    now = services.store.clock.wall.unix_us() / US
    following = next_run(crontab, now)
    for name in request.options:
        if name.lower() in (*SCAN_OPTIONS, "cursor", "paused"):
            raise SQLError(
                "22023",
                f"changefeed option {name.lower()} does not go with a schedule",
                detail="Each run shows the tables as they are then, and has done its work.",
            )
    request = replace(request, options={**request.options, "initial_scan": "only"})
    planning = services.store.begin()
    try:
        feed = await plan_changefeed(services, planning, request, sink, user_name=request.user)
    finally:
        await planning.rollback()
    details = ScheduleDetails(
        label=label,
        crontab=crontab,
        on_execution_failure=options.on_execution_failure,
        on_previous_running=options.on_previous_running,
        feed=feed,
    )
    first = following if options.first_run is None else options.first_run
    return details, ScheduleProgress(next_run=first)


def describe_schedule(schedule: ScheduleDetails) -> str:
    """As anybody may see it."""
    feed = describe(schedule.feed).removeprefix("CREATE CHANGEFEED FOR ")
    label, crontab = quoted(schedule.label), quoted(schedule.crontab)
    return f"CREATE SCHEDULE {label} FOR CHANGEFEED {feed} RECURRING {crontab}"


def schedule_status(job: JobRecord, progress: bytes | None) -> ScheduleStatus:
    """The schedule as its job's rows tell of it."""
    schedule = decode_schedule(job.payload)
    state = None if progress is None else decode_schedule_progress(progress)
    paused = job.state in (JobState.PAUSED, JobState.PAUSE_REQUESTED)
    return ScheduleStatus(
        id=job.id,
        label=schedule.label,
        paused=paused,
        next_run=None if paused or state is None else datetime.fromtimestamp(state.next_run, UTC),
        error=job.error or ("" if state is None else state.error),
        crontab=schedule.crontab,
        run=0 if state is None else state.watched,
        owner=job.owner or ROOT,
        created=job.created,
        description=job.description,
    )


class ScheduleJob:
    """One claim of one schedule."""

    def __init__(
        self, services: ChangefeedServices, creator: JobCreator, context: JobContext
    ) -> None:
        self._services = services
        self._creator = creator
        self._context = context
        self._schedule = decode_schedule(context.payload)
        self._jobs = JobStore(services.store)
        assert context.progress is not None, "a schedule is made with its first run"
        self._state = decode_schedule_progress(context.progress)

    async def run(self) -> None:
        """Makes one run after another, until it is cancelled. Raises JobPaused where a run failed
        and the schedule is to be paused then."""
        while True:
            state = self._state
            if state.watched and await self._seen_to(state.watched):
                continue
            left = state.next_run - self._now()
            if left > 0:
                await asyncio.sleep(min(left, LOOK_SECONDS if state.watched else SLEEP_SECONDS_MAX))
            elif not state.watched or self._overlap is OverlapPolicy.START:
                await self._start()
            elif self._overlap is OverlapPolicy.SKIP:
                await self._save(msgspec.structs.replace(state, next_run=self._following()))
            else:
                await asyncio.sleep(LOOK_SECONDS)

    @property
    def _overlap(self) -> OverlapPolicy:
        return self._schedule.on_previous_running

    def _now(self) -> float:
        return self._services.store.clock.wall.unix_us() / US

    def _following(self) -> float:
        return next_run(self._schedule.crontab, self._now())

    async def _seen_to(self, job_id: int) -> bool:
        """Whether the run is over, and what follows from that was noted."""
        try:
            job = await self._jobs.get(job_id)
        except JobNotFound:
            job = None
        if job is not None and not job.state.final:
            return False
        if job is not None and job.state is JobState.FAILED:
            await self._failed(job.error or "")
        else:
            await self._save(msgspec.structs.replace(self._state, watched=0, error=""))
        return True

    async def _failed(self, why: str) -> None:
        state = msgspec.structs.replace(self._state, watched=0, error=why)
        policy = self._schedule.on_execution_failure
        at = max(state.next_run, self._following())
        if policy is FailurePolicy.RETRY:
            at = min(at, self._now() + RETRY_SECONDS)
        await self._save(msgspec.structs.replace(state, next_run=at))
        if policy is FailurePolicy.PAUSE:
            raise JobPaused(f"paused by a run that failed: {why}")

    async def _save(self, state: ScheduleProgress) -> None:
        await self._context.save_progress(encode_schedule(state))
        self._state = state

    async def _start(self) -> None:
        """Makes the changefeed, and notes it, in one transaction."""
        try:
            async with committed(self._services.store) as transaction:
                job_id = await self._create(transaction)
                state = ScheduleProgress(next_run=self._following(), watched=job_id)
                key, body = await self._context.progress_row(transaction, encode_schedule(state))
                await transaction.put([key], [body])
        except (SQLError, SinkError, SinkRefused) as error:
            await self._failed(message_of(error))
            return
        self._state = state

    async def _create(self, transaction: Transaction) -> int:
        services, feed = self._services, self._schedule.feed
        await transaction.started()
        at = transaction.read_timestamp
        request = FeedRequest(
            tables=[
                await self._table(feed, place, transaction) for place in range(len(feed.targets))
            ],
            names=[target.name for target in feed.targets],
            options=opened_options(services, feed.options),
            at=at,
            user=feed.user_name,
        )
        sink = feed.shown_sink if feed.connection else whole_uri(services, feed)
        details = await plan_changefeed(
            services, transaction, request, sink, user_name=feed.user_name
        )
        job_id = await self._creator.create(
            transaction, JOB_KIND, describe(details), encode_details(details), paused=False
        )
        if self._context.job.owner is not None:
            key = job_key(job_id)
            body = await transaction.get(key)
            assert body is not None, job_id
            job = replace(JobRecord.decode(key, body), owner=self._context.job.owner)
            own_key, own_body = job.encode()
            await transaction.put([own_key], [own_body])
        await FEED_QUOTA.check(
            services.store.settings, services.rights.current, feed.user_name, transaction
        )
        return job_id

    async def _table(
        self, feed: ChangefeedDetails, place: int, transaction: Transaction
    ) -> TableDescriptor:
        target = feed.targets[place]
        table = await self._services.descriptors.read(transaction, target.table_id)
        if not isinstance(table, TableDescriptor) or table.dropped:
            raise SQLError("42P01", f'table "{target.name}" does not exist')
        return table
