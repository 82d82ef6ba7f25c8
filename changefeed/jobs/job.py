"""The changefeed job: what the job registry runs, retries and cancels.

A claim of the job runs one attempt (`attempt`). How it ends decides what becomes of the job:

    scan only, done                        the job has succeeded
    SinkError, a store that asks to wait   `retryable`: the registry runs it again, later
    SinkRefused, dropped table, too old    the job has failed, with this error
    cancelled, or the claim is lost        left as it is, for whoever claims the job next

When a feed will not come back, its progress says so first. Then its protected timestamp and its
sink's names are released, and only then is the job over: what cannot be released now is tried again
as everything else of a job is, and nothing of the feed runs meanwhile, which would find it gone.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ...catalog.jobs import JobFenced
from ...kvlayer.clock import ZERO, Timestamp, duration
from ...kvlayer.errors import StoreClosed
from ..pipeline.live import FeedState, LiveFeed
from ..sinks.protocol import FeedIdentity, SinkContext, SinkProgress, SinkRefused
from ..sinks.worker import WorkerFeed, WorkerKind
from .attempt import Destination, plan_tables, retryable, run_attempt
from .create import PROTECTION_MAX_AGE
from .details import decode_details, decode_end, decode_progress, encode_progress, with_end
from .feed_rights import check_feed_rights
from .services import ChangefeedServices

PROTECTION_SECONDS = 60.0
"""How far the resolved timestamp runs ahead of the protected one before that one follows: little
beside any time to live, and a commit for each feed each time. Of what protects for less than four
times as long a quarter."""


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


class FeedEnded(Exception):
    """The feed has ended under an earlier claim, by the error that the message tells."""


class ChangefeedJob:
    """One claim of one changefeed's job."""

    def __init__(self, services: ChangefeedServices, claim: Claim, live: LiveFeed) -> None:
        self._services = services
        self._claim = claim
        self._live = live
        self._details = decode_details(claim.payload)
        self._protected_at = ZERO
        self._identity = FeedIdentity(
            store_id=services.store.id, job_id=claim.job_id, epoch=claim.epoch
        )

    async def run(self) -> None:
        """Runs one attempt, and returns when the feed has done its work.

        An error that `retryable` knows leaves everything as it is, for the next attempt. Any other
        is the feed's end.
        """
        ended = decode_end(await self._claim.read_progress())
        failure: Exception | None = FeedEnded(ended) if ended else None
        if ended is None:
            try:
                self._check_store()
                await self._services.rights.during(self._check_rights, self._attempt)
            except (StoreClosed, JobFenced, asyncio.CancelledError):
                self._live.state = FeedState.WAITING
                raise
            except Exception as error:  # whatever it was, it is the feed's to tell
                self._live.last_error = str(error)
                if retryable(error):
                    self._live.state = FeedState.BACKOFF
                    raise
                failure = error
        await self._let_go("" if failure is None else str(failure) or type(failure).__name__)
        if failure is not None:
            raise failure

    async def cancel(self) -> None:
        """The job was cancelled, and no attempt is running."""
        await self._let_go("the job was canceled")

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
                position=lambda: services.store.position,
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
        self._protected_at = await self._read_protection()
        plan = plan_tables(
            services,
            [target.table_id for target in details.targets],
            start_at=details.start_at,
            options=options,
            protected_at=self._protected_at,
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
            user=details.user_name,
            start_at=details.start_at,
            resolved=decode_progress(found).resolved if found else details.start_at,
            options=details.parsed_options,
            position=lambda: self._services.store.position,
            holds=self._services.store.holds,
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
        age = self._services.store.settings.get(PROTECTION_MAX_AGE)
        behind = min(PROTECTION_SECONDS, age / 4) if age else PROTECTION_SECONDS
        if progress.resolved - self._protected_at > duration(seconds=behind):
            await self._protect(progress.resolved)

    async def _read_protection(self) -> Timestamp:
        """Above it, nothing that the feed reads may have been collected."""
        store = self._services.store
        record = await self._services.protections.read(
            store.snapshot(await store.now()), self._details.protection_id
        )
        return ZERO if record is None else record.timestamp

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

    async def _check_rights(self) -> None:
        details = self._details
        tables = [target.table_id for target in details.targets]
        await check_feed_rights(
            self._services, details.user_name, tables, logs_in=details.owner_logs_in
        )

    def _check_store(self) -> None:
        if self._details.store_id != self._services.store.id:
            raise SinkRefused(
                f"changefeed {self._claim.job_id} belongs to store {self._details.store_id}, "
                f"and this is store {self._services.store.id}"
            )

    async def _let_go(self, why: str) -> None:
        """Notes that the feed has ended, and releases what it held, the protected timestamp first.

        A target that is a file of another node stays as it is: that node finds the job over when
        it next opens the file. Raises what `retryable` knows where something cannot be released
        now, and JobFenced when the claim is lost: then all of it belongs to the next holder.
        """
        await self._claim.save_progress(with_end(await self._claim.read_progress(), why))
        self._live.stop()
        services, details = self._services, self._details
        transaction = services.store.begin()
        try:
            await services.protections.release(transaction, details.protection_id)
            await transaction.commit()
        except BaseException:
            await transaction.rollback()
            raise
        kind = services.kinds.kind_of(details.sink_uri)
        if not kind.local or details.node_id == services.node_id:
            await kind.release(details.sink_uri, self._identity)
