"""The states of a job, and the events that lead from one to another.

    pending --claim--> running --succeed--> succeeded
       ^                  |  \\--fail-----> failed
       |             request pause
       |                  v
    resume <- paused <-pause- pause-requested
                          |
       request cancel, from any state that is not final
                          v
                   cancel-requested --cancel--> canceled

`TRANSITIONS` is the whole truth: what it does not hold is refused, and changes nothing. A request
is carried out by whoever holds the claim, or takes it up; a job that nobody works on is paused at
once.
"""

from __future__ import annotations

from enum import Enum


class JobState(Enum):
    PENDING = "pending"  # waiting for a node to claim it
    RUNNING = "running"  # claimed: by a node that works on it, or that died
    PAUSE_REQUESTED = "pause-requested"  # its node is to stop working on it
    PAUSED = "paused"  # until somebody resumes it
    CANCEL_REQUESTED = "cancel-requested"  # a node is to clean up after it
    CANCELED = "canceled"  # final: cleaned up
    SUCCEEDED = "succeeded"  # final
    FAILED = "failed"  # final: with the error's message

    @property
    def final(self) -> bool:
        return self in _FINAL

    @property
    def claimable(self) -> bool:
        """Whether there is something for a node to do."""
        return self in _CLAIMABLE


class JobAction(Enum):
    """Requests of users."""

    CANCEL = "CANCEL"
    PAUSE = "PAUSE"
    RESUME = "RESUME"


class JobEvent(Enum):
    CLAIM = "claim"  # a node takes it up
    REQUEST_PAUSE = "pause"  # PAUSE JOB
    REQUEST_CANCEL = "cancel"  # CANCEL JOB
    RESUME = "resume"  # RESUME JOB
    PAUSE = "stop for a pause"  # its node stopped
    CANCEL = "finish canceling"  # its node cleaned up
    SUCCEED = "succeed"
    FAIL = "fail"


_FINAL = frozenset((JobState.CANCELED, JobState.SUCCEEDED, JobState.FAILED))
_CLAIMABLE = frozenset(
    (JobState.PENDING, JobState.RUNNING, JobState.PAUSE_REQUESTED, JobState.CANCEL_REQUESTED)
)

TRANSITIONS = {
    (JobState.PENDING, JobEvent.CLAIM): JobState.RUNNING,
    (JobState.PENDING, JobEvent.REQUEST_PAUSE): JobState.PAUSED,
    (JobState.PENDING, JobEvent.REQUEST_CANCEL): JobState.CANCEL_REQUESTED,
    (JobState.RUNNING, JobEvent.CLAIM): JobState.RUNNING,
    (JobState.RUNNING, JobEvent.REQUEST_PAUSE): JobState.PAUSE_REQUESTED,
    (JobState.RUNNING, JobEvent.REQUEST_CANCEL): JobState.CANCEL_REQUESTED,
    (JobState.RUNNING, JobEvent.SUCCEED): JobState.SUCCEEDED,
    (JobState.RUNNING, JobEvent.FAIL): JobState.FAILED,
    (JobState.RUNNING, JobEvent.PAUSE): JobState.PAUSED,  # an error paused it
    (JobState.PAUSE_REQUESTED, JobEvent.CLAIM): JobState.PAUSE_REQUESTED,
    (JobState.PAUSE_REQUESTED, JobEvent.PAUSE): JobState.PAUSED,
    (JobState.PAUSE_REQUESTED, JobEvent.REQUEST_CANCEL): JobState.CANCEL_REQUESTED,
    (JobState.PAUSE_REQUESTED, JobEvent.SUCCEED): JobState.SUCCEEDED,  # it was faster
    (JobState.PAUSE_REQUESTED, JobEvent.FAIL): JobState.FAILED,
    (JobState.PAUSED, JobEvent.RESUME): JobState.PENDING,
    (JobState.PAUSED, JobEvent.REQUEST_CANCEL): JobState.CANCEL_REQUESTED,
    (JobState.CANCEL_REQUESTED, JobEvent.CLAIM): JobState.CANCEL_REQUESTED,
    (JobState.CANCEL_REQUESTED, JobEvent.CANCEL): JobState.CANCELED,
    (JobState.CANCEL_REQUESTED, JobEvent.FAIL): JobState.FAILED,
}


class IllegalTransition(Exception):
    """The job is in a state in which this cannot happen to it."""

    def __init__(self, state: JobState, event: JobEvent) -> None:
        super().__init__(f"a job that is {state.value} cannot {event.value}")
        self.state = state
        self.event = event


def next_state(state: JobState, event: JobEvent) -> JobState:
    """The state to which `event` leads from `state`. Raises IllegalTransition."""
    following = TRANSITIONS.get((state, event))
    if following is None:
        raise IllegalTransition(state, event)
    return following
