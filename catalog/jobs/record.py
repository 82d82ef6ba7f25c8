"""A job as the store knows it: its row of `system.jobs`, and of `system.job_progress`.

A job that has ended is a row of `system.finished_jobs` instead, by when it ended, and
`system.job_ends` says when that was:

    jobs             7 running
    finished_jobs    (12:00, 5) succeeded    (12:30, 3) canceled
    job_ends         3 12:30                 5 12:00

So whoever looks for work, once a second on each node, reads what is to be done and no history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ...kvlayer.clock import Timestamp, unix_us
from ...kvlayer.keys import encode_int
from ...kvlayer.span import Span
from ..descriptors.system_tables import DEAD_LETTERS, FINISHED_JOBS, JOB_ENDS, JOB_PROGRESS, JOBS
from ..rows.row_codec import codec_for
from ..values.column_types import Datum
from .states import JobState

_jobs = codec_for(JOBS)
_progress = codec_for(JOB_PROGRESS)
_finished = codec_for(FINISHED_JOBS)
_ends = codec_for(JOB_ENDS)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job.

    `epoch` counts its claims: what is done under a smaller one than the row's comes from a node
    that lost the job, and is refused. `error` is why it failed or, while it is tried again, what
    the last attempt ran into. Progress is written many times a second and is not here.
    """

    id: int
    kind: str
    description: str
    state: JobState
    payload: bytes
    created: datetime
    finished: datetime | None = None
    claim_session_id: str | None = None
    claim_node_id: int | None = None
    epoch: int = 0
    error: str | None = None
    started: datetime | None = None
    """When it was first taken up."""
    owner: str | None = None
    """Who made it; None for `root`."""

    @property
    def running_status(self) -> str | None:
        """The reported status of a job that is not over."""
        return None if self.state.final else self.error

    def encode(self) -> tuple[bytes, bytes]:
        """Encodes the job as a row of `system.jobs`."""
        head, tail = self._values()
        return _jobs.encode_row((self.id, *head, self.finished, *tail))

    def encode_finished(self) -> tuple[bytes, bytes]:
        """Encodes a job that has ended as a row of `system.finished_jobs`."""
        assert self.finished is not None, self
        head, tail = self._values()
        return _finished.encode_row((self.finished, self.id, *head, *tail))

    def _values(self) -> tuple[tuple[Datum, ...], tuple[Datum, ...]]:
        """The values of a row before the column `finished`, and behind it."""
        head = (self.kind, self.description, self.state.value, self.payload, self.created)
        claim = (self.claim_session_id, self.claim_node_id, self.epoch)
        return head, (*claim, self.error, self.started, self.owner)

    @classmethod
    def decode(cls, key: bytes, body: bytes) -> JobRecord:
        """The record that `encode` wrote."""
        return cls._of(_jobs.decode_row(key, body))

    @classmethod
    def decode_finished(cls, key: bytes, body: bytes) -> JobRecord:
        """The record that `encode_finished` wrote."""
        finished, *row = _finished.decode_row(key, body)
        return cls._of((*row[:6], finished, *row[6:]))

    @classmethod
    def _of(cls, row: Sequence[Datum]) -> JobRecord:
        id, kind, description, state, payload, created, finished, *others = row
        session, node, epoch, error, started, owner = others
        assert isinstance(id, int)
        assert isinstance(kind, str)
        assert isinstance(description, str)
        assert isinstance(payload, bytes)
        assert isinstance(created, datetime)
        assert finished is None or isinstance(finished, datetime)
        assert session is None or isinstance(session, str)
        assert node is None or isinstance(node, int)
        assert isinstance(epoch, int)
        assert error is None or isinstance(error, str)
        assert started is None or isinstance(started, datetime)
        assert owner is None or isinstance(owner, str)
        return cls(
            id=id,
            kind=kind,
            description=description,
            state=JobState(state),
            payload=payload,
            created=created,
            finished=finished,
            claim_session_id=session,
            claim_node_id=node,
            epoch=epoch,
            error=error,
            started=started,
            owner=owner,
        )


def finished_at(key: bytes, body: bytes) -> datetime:
    """When a job ended, by its row of `system.job_ends`."""
    at = _ends.decode_row(key, body)[1]
    assert isinstance(at, datetime), at
    return at


def end_key(job_id: int) -> bytes:
    return _ends.encode_key((job_id,))


def encode_end(job_id: int, finished: datetime) -> tuple[bytes, bytes]:
    return _ends.encode_row((job_id, finished))


def finished_key(finished: datetime, job_id: int) -> bytes:
    return _finished.encode_key((finished, job_id))


def job_key(job_id: int) -> bytes:
    return _jobs.encode_key((job_id,))


def job_id_of(key: bytes) -> int:
    """Whose row of `system.jobs` it is."""
    [job_id] = _jobs.decode_key(key)
    assert isinstance(job_id, int), job_id
    return job_id


def progress_key(job_id: int) -> bytes:
    return _progress.encode_key((job_id,))


def dead_letters_of(job_id: int) -> Span:
    """A changefeed's dead letters: they outlive it, and go with what is left of its job."""
    return Span.prefix(DEAD_LETTERS.primary_span.start + encode_int(job_id))


def encode_progress(job_id: int, progress: bytes, epoch: int) -> tuple[bytes, bytes]:
    return _progress.encode_row((job_id, progress, epoch))


def decode_progress(key: bytes, body: bytes) -> bytes:
    progress = _progress.decode_row(key, body)[1]
    assert isinstance(progress, bytes), progress
    return progress


def time_of(at: Timestamp) -> datetime:
    """The wall time of a timestamp."""
    return _EPOCH + timedelta(microseconds=unix_us(at))
