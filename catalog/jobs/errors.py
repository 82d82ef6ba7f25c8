"""Errors of jobs."""

from __future__ import annotations

from ...kvlayer.errors import (
    ClockStopped,
    LockTimeout,
    OutcomeUnknown,
    RangeFeedEnded,
    RetryableTransaction,
    StoreFull,
)
from ..values.errors import SQLError
from .states import JobState


class JobNotFound(SQLError):
    def __init__(self, job_id: int) -> None:
        super().__init__("42704", f"job with ID {job_id} does not exist")


class JobStateRefused(SQLError):
    """A request for a change that a job cannot make from its present state."""

    def __init__(self, job_id: int, state: JobState, verb: str) -> None:
        super().__init__("55000", f"job {job_id} is {state.value}: it cannot {verb}")
        self.state = state


class JobFenced(Exception):
    """The job was claimed by somebody else meanwhile, or is over: nothing was written.

    Whoever is told so stops working on the job, and touches nothing of it any more.
    """

    def __init__(self, job_id: int, epoch: int) -> None:
        super().__init__(f"job {job_id}: the claim with epoch {epoch} is no longer in force")
        self.job_id = job_id
        self.epoch = epoch


class RetryableJobError(Exception):
    """A resumer's error after which it is tried again, behind a pause; the message is shown
    meanwhile."""


class JobPaused(Exception):
    """A resumer's error that pauses its job, with all that it holds, until somebody resumes it; the
    message says why."""


RETRYABLE = (
    RetryableJobError,
    RetryableTransaction,
    LockTimeout,
    OutcomeUnknown,
    RangeFeedEnded,
    StoreFull,
    ClockStopped,
)
"""Errors that say nothing of the job: the same work is tried again after a pause. The last two end
when there is room on the disk."""


def message_of(error: BaseException) -> str:
    """The text of an error in a job's row."""
    text = error.message if isinstance(error, SQLError) else str(error)
    return text or type(error).__name__
