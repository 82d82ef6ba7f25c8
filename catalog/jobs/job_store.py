"""What is done to the rows of jobs, each in one serializable step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.txn import Evaluation, Transaction
from ..leases.incarnation import Incarnation
from ..leases.liveness import read_session
from ..system_tables import JOBS
from .errors import JobFenced, JobNotFound, JobStateRefused
from .record import (
    JobRecord,
    decode_progress,
    encode_progress,
    job_key,
    progress_key,
    time_of,
)
from .states import IllegalTransition, JobEvent, JobState, next_state


class JobStore:
    """The rows of `system.jobs` and `system.job_progress`.

    A *claim* is the session and the epoch in a job's row. It is taken by compare-and-set, and
    stands while that session lives; everything that is done under it names its epoch.
    """

    def __init__(self, store: StoreAccess) -> None:
        self._store = store

    async def create(
        self, transaction: Transaction, kind: str, description: str, payload: bytes
    ) -> int:
        """A pending job that exists if the transaction commits; its id is drawn from the clock."""
        job = await self.draft(kind, description, payload)
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

    async def check_claim(self, transaction: Transaction, job: JobRecord) -> None:
        """Makes the transaction one that commits only under the job's claim. Raises JobFenced."""
        key = job_key(job.id)
        body = await transaction.get(key)
        _check_claim(None if body is None else JobRecord.decode(key, body), job.id, job.epoch)

    def check_claim_at(self, evaluation: Evaluation, job: JobRecord) -> None:
        """The same for a one-phase step."""
        _check_claim(_read(evaluation, job.id), job.id, job.epoch)

    async def get(self, job_id: int) -> JobRecord:
        """Raises JobNotFound."""
        key = job_key(job_id)
        body = await self._store.snapshot(await self._store.now()).get(key)
        if body is None:
            raise JobNotFound(job_id)
        return JobRecord.decode(key, body)

    async def list(self) -> list[JobRecord]:
        """All jobs, oldest first."""
        rows = await self._store.snapshot(await self._store.now()).scan(JOBS.primary_span)
        return [JobRecord.decode(key, body) for key, body in rows]

    async def progress(self, job_id: int) -> bytes | None:
        """What was saved last, if anything was."""
        key = progress_key(job_id)
        body = await self._store.snapshot(await self._store.now()).get(key)
        return None if body is None else decode_progress(key, body)

    async def modified(self, job_id: int) -> datetime | None:
        """When the job or its progress was written last; None where there is no such job."""
        reader = self._store.snapshot(await self._store.now())
        stored = [await reader.get_with_timestamp(key(job_id)) for key in (job_key, progress_key)]
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
        """What a user asks for. Raises JobNotFound, JobStateRefused."""

        def evaluate(evaluation: Evaluation) -> JobRecord:
            job = _read(evaluation, job_id)
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

    async def set_status(self, job: JobRecord, status: str | None) -> JobRecord:
        """What the job has to say while it runs. Raises JobFenced."""
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
        def evaluate(evaluation: Evaluation) -> JobRecord:
            current = _check_claim(_read(evaluation, job.id), job.id, job.epoch)
            return _write(evaluation, change(current, evaluation.timestamp))

        return (await self._store.one_phase(evaluate))[0]


def _read(evaluation: Evaluation, job_id: int) -> JobRecord | None:
    key = job_key(job_id)
    body = evaluation.get(key)
    return None if body is None else JobRecord.decode(key, body)


def _write(evaluation: Evaluation, job: JobRecord) -> JobRecord:
    key, body = job.encode()
    evaluation.put((key,), (body,))
    return job


def _check_claim(job: JobRecord | None, job_id: int, epoch: int) -> JobRecord:
    if job is None or job.epoch != epoch or job.claim_session_id is None:
        raise JobFenced(job_id, epoch)
    return job
