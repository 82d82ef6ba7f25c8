"""A job as the store knows it: its row of `system.jobs`, and of `system.job_progress`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ...kvlayer.clock import Timestamp, unix_us
from ..row_codec import codec_for
from ..system_tables import JOB_PROGRESS, JOBS
from .states import JobState

_jobs = codec_for(JOBS)
_progress = codec_for(JOB_PROGRESS)

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
        """What a job that is not over has to say."""
        return None if self.state.final else self.error

    def encode(self) -> tuple[bytes, bytes]:
        return _jobs.encode_row(
            (
                self.id,
                self.kind,
                self.description,
                self.state.value,
                self.payload,
                self.created,
                self.finished,
                self.claim_session_id,
                self.claim_node_id,
                self.epoch,
                self.error,
                self.started,
                self.owner,
            )
        )

    @classmethod
    def decode(cls, key: bytes, body: bytes) -> JobRecord:
        row = _jobs.decode_row(key, body)
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


def job_key(job_id: int) -> bytes:
    return _jobs.encode_key((job_id,))


def progress_key(job_id: int) -> bytes:
    return _progress.encode_key((job_id,))


def encode_progress(job_id: int, progress: bytes, epoch: int) -> tuple[bytes, bytes]:
    return _progress.encode_row((job_id, progress, epoch))


def decode_progress(key: bytes, body: bytes) -> bytes:
    progress = _progress.decode_row(key, body)[1]
    assert isinstance(progress, bytes), progress
    return progress


def time_of(at: Timestamp) -> datetime:
    """The wall time of a timestamp."""
    return _EPOCH + timedelta(microseconds=unix_us(at))
