"""The changefeed job: what the job registry runs, retries and cancels.

A claim of the job runs one attempt (`attempt`). How it ends decides what becomes of the job:

    scan only, done                        the job has succeeded
    SinkError, a store that asks to wait   `retryable`: the registry runs it again, later
    SinkRefused, dropped table, too old    the job has failed, with this error
    cancelled, or the claim is lost        left as it is, for whoever claims the job next

When a feed will not come back, its protected timestamp and its sink's names are released.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ..catalog.jobs import JobFenced
from ..kvlayer.clock import Timestamp, duration
from ..kvlayer.errors import KVError, StoreClosed
from .attempt import Destination, FeedPlan, retryable, run_attempt
from .details import (
    decode_details,
    decode_progress,
    encode_progress,
)
from .live import FeedState, LiveFeed
from .services import ChangefeedServices
from .sinks.protocol import FeedIdentity, SinkContext, SinkError, SinkProgress, SinkRefused
from .sinks.worker import WorkerFeed, WorkerKind

PROTECTION_INTERVAL = duration(seconds=60.0)
"""How far the resolved timestamp runs ahead of the protected one before that one follows: little
beside any time to live, and a commit for each feed each time."""


class Claim(Protocol):
    """A job, claimed by this node."""

    @property
    def job_id(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def payload(self) -> bytes: ...

    async def read_progress(self) -> bytes | None: ...

    async def save_progress(self, progress: bytes) -> None:
        """Compare-and-set on the epoch. Raises when the claim was lost."""
        ...


class ChangefeedJob:
    """One claim of one changefeed's job."""

    def __init__(self, services: ChangefeedServices, claim: Claim, live: LiveFeed) -> None:
        self._services = services
        self._claim = claim
        self._live = live
        self._details = decode_details(claim.payload)
        self._protected_at = self._details.start_at
        self._identity = FeedIdentity(
            store_id=services.store.id, job_id=claim.job_id, epoch=claim.epoch
        )

    async def run(self) -> None:
        """Runs one attempt, and returns when the feed has done its work.

        An error that `retryable` knows leaves everything as it is, for the next attempt. Any other
        is the feed's end.
        """
        try:
            self._check_store()
            await self._attempt()
        except (StoreClosed, JobFenced, asyncio.CancelledError):
            self._live.state = FeedState.WAITING
            raise
        except Exception as error:  # whatever it was, it is the feed's to tell
            self._live.last_error = str(error)
            if retryable(error):
                self._live.state = FeedState.BACKOFF
                raise
            await self._let_go()
            raise
        await self._let_go()

    async def cancel(self) -> None:
        """The job was cancelled, and no attempt is running."""
        await self._let_go()

    async def _attempt(self) -> None:
        services, details, options = self._services, self._details, self._details.parsed_options
        kind = services.kinds.kind_of(details.sink_uri)
        if isinstance(kind, WorkerKind):
            await self._run_worker(kind)
            return
        found = await self._claim.read_progress()
        sink = kind.create(
            details.sink_uri,
            SinkContext(
                identity=self._identity,
                clock=services.store.clock,
                offload=services.offload,
                settings=services.store.settings,
                metrics=services.store.metrics,
                options=options,
            ),
        )
        destination = Destination(
            sink=sink,
            transactional=kind.transactional,
            columnar=kind.columnar,
            follows_schema=kind.follows_schema,
            known=decode_progress(found) if found else None,
            save=self._save,
        )
        plan = FeedPlan(
            table_ids=[target.table_id for target in details.targets],
            start_at=details.start_at,
            options=options,
        )
        await run_attempt(services, plan, destination, self._live)

    async def _run_worker(self, kind: WorkerKind) -> None:
        details = self._details
        self._live.state = FeedState.STARTING
        found = await self._claim.read_progress()
        feed = WorkerFeed(
            identity=self._identity,
            uri=details.sink_uri,
            table_id=details.targets[0].table_id,
            start_at=details.start_at,
            resolved=decode_progress(found).resolved if found else details.start_at,
            options=details.parsed_options,
            report=self._note_batch,
        )
        await kind.run(feed)

    async def _note_batch(self, progress: SinkProgress, rows: int) -> None:
        """A worker has written a batch."""
        await self._save(progress)
        self._live.state = FeedState.STEADY
        self._live.rows_emitted += rows
        self._live.note_flushed(progress)

    async def _save(self, progress: SinkProgress) -> None:
        await self._claim.save_progress(encode_progress(progress))
        if progress.resolved - self._protected_at > PROTECTION_INTERVAL:
            await self._protect(progress.resolved)

    async def _protect(self, resolved: Timestamp) -> None:
        transaction = self._services.store.begin()
        try:
            await self._services.protections.advance(
                transaction, self._details.protection_id, resolved
            )
            await transaction.commit()
        except BaseException:
            await transaction.rollback()
            raise
        self._protected_at = resolved

    def _check_store(self) -> None:
        if self._details.store_id != self._services.store.id:
            raise SinkRefused(
                f"changefeed {self._claim.job_id} belongs to store {self._details.store_id}, "
                f"and this is store {self._services.store.id}"
            )

    async def _let_go(self) -> None:
        """Releases what the feed held. What cannot be released now stays, and is counted.

        Raises JobFenced when the claim is lost: then all of it belongs to the next holder.
        """
        found = await self._claim.read_progress()
        await self._claim.save_progress(found or b"")
        self._live.stop()
        try:
            transaction = self._services.store.begin()
            await self._services.protections.release(transaction, self._details.protection_id)
            await transaction.commit()
            kind = self._services.kinds.kind_of(self._details.sink_uri)
            await kind.release(self._details.sink_uri, self._identity)
        except (KVError, SinkError) as error:
            self._services.store.metrics.add("changefeed_release_failures_total")
            self._live.last_error = self._live.last_error or str(error)
