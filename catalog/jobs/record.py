"""A job as the store knows it: its row of `system.jobs`, and of `system.job_progress`.

A job that has ended is a row of `system.finished_jobs` instead, by when it ended, and
`system.job_ends` says when that was:

    jobs             7 running
    finished_jobs    (12:00, 5) succeeded    (12:30, 3) canceled
    job_ends         3 12:30                 5 12:00

So whoever looks for work, once a second on each node, reads what is to be done and no history.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ...kvlayer.clock import Timestamp, unix_us
from ...kvlayer.keys import encode_int
from ...kvlayer.span import Span
from ..descriptors.system_tables import DEAD_LETTERS, FINISHED_JOBS, JOB_ENDS, JOB_PROGRESS, JOBS
from ..rows.records import RecordCodec
from ..rows.row_codec import codec_for
from .states import JobState

_progress = codec_for(JOB_PROGRESS)
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
    """The time at which it was first taken up."""
    owner: str | None = None
    """The user who made it; None for `root`."""

    @property
    def running_status(self) -> str | None:
        """The reported status of a job that is not over."""
        return None if self.state.final else self.error

    def encode(self) -> tuple[bytes, bytes]:
        """Encodes the job as a row of `system.jobs`."""
        return _jobs.encode(self)

    def encode_finished(self) -> tuple[bytes, bytes]:
        """Encodes a job that has ended as a row of `system.finished_jobs`."""
        assert self.finished is not None, self
        return _finished.encode(self)

    @classmethod
    def decode(cls, key: bytes, body: bytes) -> JobRecord:
        """The record that `encode` wrote."""
        return _jobs.decode(key, body)

    @classmethod
    def decode_finished(cls, key: bytes, body: bytes) -> JobRecord:
        """The record that `encode_finished` wrote."""
        return _finished.decode(key, body)


_jobs = RecordCodec(JOBS, JobRecord)
_finished = RecordCodec(FINISHED_JOBS, JobRecord)


def finished_at(key: bytes, body: bytes) -> datetime:
    """The end of a job, by its row of `system.job_ends`."""
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
    [job_id] = codec_for(JOBS).decode_key(key)
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
