"""Changes of the rows of jobs, each in one serializable step."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Container, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.span import Span
from ...kvlayer.txn import Evaluation, Transaction
from ..descriptors.system_tables import FINISHED_JOBS, JOBS
from ..leases.incarnation import Incarnation
from ..leases.liveness import read_session
from .errors import JobFenced, JobNotFound, JobStateRefused
from .record import (
    JobRecord,
    dead_letters_of,
    decode_progress,
    encode_end,
    encode_progress,
    end_key,
    finished_at,
    finished_key,
    job_id_of,
    job_key,
    progress_key,
    time_of,
)
from .states import IllegalTransition, JobEvent, JobState, next_state

RECENT = timedelta(hours=12)
"""How long a job that has ended is listed with those that have not, as CockroachDB lists it."""

REMOVED_AT_ONCE = 100
"""Jobs that one step removes: some hundred deletions are less than a millisecond."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """A version of a job's row: None where the job has ended."""

    id: int
    at: Timestamp
    job: JobRecord | None

    @classmethod
    def decode(cls, key: bytes, at: Timestamp, body: bytes | None) -> JobChange:
        return cls(job_id_of(key), at, None if body is None else JobRecord.decode(key, body))


class JobStore:
    """The rows of jobs, wherever they are; see `record`.

    A *claim* is the session and the epoch in a job's row. It is taken by compare-and-set, and
    stands while that session lives; everything that is done under it names its epoch.
    """

    def __init__(self, store: StoreAccess) -> None:
        self._store = store

    async def create(
        self,
        transaction: Transaction,
        kind: str,
        description: str,
        payload: bytes,
        *,
        paused: bool = False,
    ) -> int:
        """A job that exists if the transaction commits, pending or paused; its id is drawn from
        the clock."""
        job = await self.draft(kind, description, payload)
        if paused:
            job = replace(job, state=JobState.PAUSED)
        key, body = job.encode()
        await transaction.put([key], [body])
        return job.id

    async def draft(self, kind: str, description: str, payload: bytes) -> JobRecord:
        """A pending job that nobody has written yet, with an id of its own."""
        drawn = await self._store.now()
        return JobRecord(
            id=int(drawn),
            kind=kind,
            description=description,
            state=JobState.PENDING,
            payload=payload,
            created=time_of(drawn),
        )

    async def read(self, transaction: Transaction, job_id: int) -> JobRecord:
        """A job that has not ended, as the transaction sees it. Raises JobNotFound."""
        key = job_key(job_id)
        body = await transaction.get(key)
        if body is None:
            raise JobNotFound(job_id)
        return JobRecord.decode(key, body)

    async def put_payload(
        self, transaction: Transaction, job: JobRecord, payload: bytes, description: str
    ) -> None:
        """Writes a statement's change of the job's payload: its holder hears of it at the commit.

        Serializable whatever the transaction's isolation: of two changes of one job, one is made
        behind the other.
        """
        with transaction.tracking(True):
            current = await self.read(transaction, job.id)
            assert current.payload == job.payload, job.id
            key, body = replace(current, payload=payload, description=description).encode()
            await transaction.put([key], [body])

    async def check_claim(self, transaction: Transaction, job: JobRecord) -> None:
        """Makes the transaction one that commits only under the job's claim. Raises JobFenced."""
        key = job_key(job.id)
        body = await transaction.get(key)
        _check_claim(None if body is None else JobRecord.decode(key, body), job.id, job.epoch)

    def check_claim_at(self, evaluation: Evaluation, job: JobRecord) -> None:
        """The same for a one-phase step."""
        _check_claim(_read(evaluation, job.id), job.id, job.epoch)

    async def get(self, job_id: int) -> JobRecord:
        """Whether it has ended or not. Raises JobNotFound."""
        reader = self._store.snapshot(await self._store.now())
        key = job_key(job_id)
        body = await reader.get(key)
        if body is not None:
            return JobRecord.decode(key, body)
        end = await reader.get(end_key(job_id))
        if end is None:
            raise JobNotFound(job_id)
        key = finished_key(finished_at(end_key(job_id), end), job_id)
        body = await reader.get(key)
        assert body is not None, ("a job's end without the job", job_id)
        return JobRecord.decode_finished(key, body)

    async def live(self, at: Timestamp) -> Sequence[JobRecord]:
        """The jobs that have not ended by then, oldest first."""
        rows = await self._store.snapshot(at).scan(JOBS.primary_span)
        return [JobRecord.decode(key, body) for key, body in rows]

    async def ended(self, at: Timestamp) -> Sequence[JobRecord]:
        """The jobs that ended of late, in the order of their ends."""
        since = finished_key(time_of(at) - RECENT, 0)
        span = Span(since, FINISHED_JOBS.primary_span.end)
        rows = await self._store.snapshot(at).scan(span)
        return [JobRecord.decode_finished(key, body) for key, body in rows]

    async def changes(self, after: Timestamp, upto: Timestamp) -> AsyncGenerator[JobChange, None]:
        """Yields the writes of rows of jobs in (after, upto], in order per job.

        Costs what was written. Raises BatchTimestampBeforeGC.
        """
        async with aclosing(self._store.versions(JOBS.primary_span, after, upto)) as slices:
            async for versions in slices:
                for version in versions:
                    yield JobChange.decode(*version)

    async def remove_finished(self, before: datetime) -> int:
        """Removes what is left of the jobs that ended before then, and says how many they were."""
        removed = 0
        span = Span(FINISHED_JOBS.primary_span.start, finished_key(before, 0))

        def evaluate(evaluation: Evaluation) -> int:
            rows = evaluation.scan(span, limit=REMOVED_AT_ONCE)
            ids = [JobRecord.decode_finished(key, body).id for key, body in rows]
            evaluation.delete([key for key, _ in rows])
            evaluation.delete([key(id) for id in ids for key in (end_key, progress_key)])
            for id in ids:
                if evaluation.scan(dead_letters_of(id), limit=1):
                    evaluation.delete_range(dead_letters_of(id))
            return len(rows)

        while True:
            count, _ = await self._store.one_phase(evaluate)
            removed += count
            if count < REMOVED_AT_ONCE:
                return removed

    async def file_finished(self) -> None:
        """Puts jobs that an earlier build left among the living where they belong."""
        for job in await self.live(await self._store.now()):
            if job.state.final:
                ended = job if job.finished is not None else replace(job, finished=job.created)
                await self._store.one_phase(lambda e, job=ended: _write(e, job))  # type: ignore[misc]

    async def progress(self, job_id: int) -> bytes | None:
        """The progress that was saved last, if any was."""
        key = progress_key(job_id)
        body = await self._store.snapshot(await self._store.now()).get(key)
        return None if body is None else decode_progress(key, body)

    async def modified(self, job_id: int) -> datetime | None:
        """When the job or its progress was written last; None where there is no such job."""
        reader = self._store.snapshot(await self._store.now())
        rows = (job_key, end_key, progress_key)
        stored = [await reader.get_with_timestamp(key(job_id)) for key in rows]
        written = [found[1] for found in stored if found is not None]
        return time_of(max(written)) if written else None

    async def claim(self, job_id: int, incarnation: Incarnation) -> JobRecord | None:
        """Takes the job up, if there is work in it and no living session of another has it."""

        def evaluate(evaluation: Evaluation) -> JobRecord | None:
            job = _read(evaluation, job_id)
            if job is None or not job.state.claimable:
                return None
            own = read_session(evaluation, incarnation.session_id)
            if own is None or not evaluation.before(own.expiration):
                return None
            if job.claim_session_id not in (None, incarnation.session_id):
                holder = read_session(evaluation, str(job.claim_session_id))
                if holder is not None and evaluation.before(holder.expiration):
                    return None
            claimed = replace(
                job,
                state=next_state(job.state, JobEvent.CLAIM),
                claim_session_id=incarnation.session_id,
                claim_node_id=incarnation.node_id,
                epoch=job.epoch + 1,
                error=None,
                started=job.started or time_of(evaluation.timestamp),
            )
            _write(evaluation, claimed)
            return claimed

        claimed, _ = await self._store.one_phase(evaluate)
        return claimed

    async def request(self, job_id: int, event: JobEvent) -> JobRecord:
        """Carries out a user's request. Raises JobNotFound, JobStateRefused."""

        def evaluate(evaluation: Evaluation) -> JobRecord:
            job = _read(evaluation, job_id) or _read_finished(evaluation, job_id)
            if job is None:
                raise JobNotFound(job_id)
            try:
                state = next_state(job.state, event)
            except IllegalTransition as refused:
                raise JobStateRefused(job_id, job.state, event.value) from refused
            return _write(evaluation, replace(job, state=state))

        return (await self._store.one_phase(evaluate))[0]

    async def finish(
        self, job: JobRecord, event: JobEvent, *, error: str | None = None
    ) -> JobRecord:
        """The holder's last word under its claim. Raises JobFenced, IllegalTransition."""

        def change(current: JobRecord, at: Timestamp) -> JobRecord:
            state = next_state(current.state, event)
            return replace(
                current,
                state=state,
                error=error,
                finished=time_of(at) if state.final else None,
                claim_session_id=None,
                claim_node_id=None,
            )

        return await self._change(job, change)

    async def change_payload(
        self, job: JobRecord, change: Callable[[bytes], bytes]
    ) -> tuple[JobRecord, Timestamp]:
        """Changes the payload of a job that is held; returns the job and when. Raises JobFenced."""
        return await self._changed(
            job, lambda current, _: replace(current, payload=change(current.payload))
        )

    async def set_status(self, job: JobRecord, status: str | None) -> JobRecord:
        """Writes the status that a running job reports. Raises JobFenced."""
        return await self._change(job, lambda current, _: replace(current, error=status))

    async def save_progress(self, job_id: int, progress: bytes, epoch: int) -> None:
        """Compare-and-set on the epoch. Raises JobFenced."""

        def evaluate(evaluation: Evaluation) -> None:
            _check_claim(_read(evaluation, job_id), job_id, epoch)
            key, body = encode_progress(job_id, progress, epoch)
            evaluation.put((key,), (body,))

        await self._store.one_phase(evaluate)

    async def _change(
        self, job: JobRecord, change: Callable[[JobRecord, Timestamp], JobRecord]
    ) -> JobRecord:
        return (await self._changed(job, change))[0]

    async def _changed(
        self, job: JobRecord, change: Callable[[JobRecord, Timestamp], JobRecord]
    ) -> tuple[JobRecord, Timestamp]:
        def evaluate(evaluation: Evaluation) -> JobRecord:
            current = _check_claim(_read(evaluation, job.id), job.id, job.epoch)
            return _write(evaluation, change(current, evaluation.timestamp))

        return await self._store.one_phase(evaluate)


async def cancel_jobs_of(transaction: Transaction, owner: str, kinds: Container[str]) -> None:
    """Asks for the end of the jobs of a role that is being dropped: whoever has the name next did
    not make them."""
    for key, body in await transaction.scan(JOBS.primary_span):
        job = JobRecord.decode(key, body)
        if job.owner == owner and job.kind in kinds and not job.state.final:
            if job.state is not JobState.CANCEL_REQUESTED:
                job = replace(job, state=next_state(job.state, JobEvent.REQUEST_CANCEL))
            await transaction.put(*([each] for each in job.encode()))


def _read(evaluation: Evaluation, job_id: int) -> JobRecord | None:
    """A job that has not ended."""
    key = job_key(job_id)
    body = evaluation.get(key)
    return None if body is None else JobRecord.decode(key, body)


def _read_finished(evaluation: Evaluation, job_id: int) -> JobRecord | None:
    end = evaluation.get(end_key(job_id))
    if end is None:
        return None
    key = finished_key(finished_at(end_key(job_id), end), job_id)
    body = evaluation.get(key)
    assert body is not None, ("a job's end without the job", job_id)
    return JobRecord.decode_finished(key, body)


def _write(evaluation: Evaluation, job: JobRecord) -> JobRecord:
    """Writes the job's row, in the table where it belongs from now on."""
    if not job.state.final:
        key, body = job.encode()
        evaluation.put((key,), (body,))
        return job
    assert job.finished is not None, job
    key, body = job.encode_finished()
    end, at = encode_end(job.id, job.finished)
    evaluation.put((key, end), (body, at))
    evaluation.delete((job_key(job.id),))
    return job


def _check_claim(job: JobRecord | None, job_id: int, epoch: int) -> JobRecord:
    if job is None or job.epoch != epoch or job.claim_session_id is None:
        raise JobFenced(job_id, epoch)
    return job
