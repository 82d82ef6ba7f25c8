"""Jobs as sessions see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ...catalog.rights.privileges import SYSTEM, Privilege
from ...catalog.rights.rights import Rights
from ...catalog.rights.users import ROOT
from ...changefeed import (
    DeadLetter,
    ScheduleStatus,
    SendingReport,
    SpanLag,
    StageReport,
    TaskStatus,
    Verified,
)
from ...kvlayer.clock import Timestamp
from ..syntax.statements import JobAction


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job as SHOW JOBS prints it. What has a default is known of changefeeds only."""

    id: int
    kind: str
    description: str
    state: str
    created: datetime
    finished: datetime | None
    error: str | None
    started: datetime | None = None
    modified: datetime | None = None
    running_status: str | None = None
    user_name: str | None = None
    tables: str | None = None
    table_ids: tuple[int, ...] = ()
    topics: str | None = None
    format: str | None = None
    sink: str | None = None
    resolved: Timestamp | None = None
    lag_seconds: float | None = None
    catch_up_seconds: float | None = None
    replication: str | None = None
    partial: bool = False
    """Whether a feed of a keyspace follows some of its keys, and not all."""
    task: TaskStatus | None = None
    """Where it is one of several that make a replication."""
    sending: SendingReport | None = None
    """What the node that runs a replication's task has told of it."""
    node_id: int | None = None
    """The node that has it."""
    epoch: int = 0
    """How often it was taken up."""
    trouble: str | None = None
    watched: str | None = None
    """The feed's tables, each with what it is doing and how far it has come."""

    @property
    def owner(self) -> str:
        """Whose rights it goes on with."""
        return self.user_name or ROOT


class Jobs(Protocol):
    """The jobs of the store. Each method is a transaction of its own."""

    async def list(self, *, changefeeds_only: bool) -> Sequence[JobSummary]:
        """Returns the jobs that have not ended and those that ended of late, by id."""

    async def find(self, job_ids: Sequence[int]) -> Sequence[JobSummary]:
        """Returns the jobs of these ids that exist, whenever they ended."""

    async def control(self, job_id: int, action: JobAction) -> None:
        """Raises SQLError: 42704 for an unknown job, 55000 where its state does not allow it."""

    async def completed(self, job_ids: Sequence[int]) -> None:
        """Returns when all of the jobs are over. Raises SQLError 42704 for an unknown one."""

    async def wait(self, job_id: int, until: Timestamp, *, seconds: float | None) -> Timestamp:
        """Returns the feed's resolved timestamp when its sink holds everything at or below `until`,
        wherever it runs. Raises SQLError: 42704 for an unknown job, 42809 for one that is no feed,
        55000 for one that does not run, 57014 where it takes longer than `seconds`."""

    async def verify(self, job_id: int, *, at_resolved: bool, repairs: bool) -> Verified:
        """Returns the differences between a feed's sink and its tables. Raises SQLError."""

    async def schedules(self) -> Sequence[ScheduleStatus]:
        """All schedules that are not dropped."""

    async def dead_letters(self, job_id: int) -> Sequence[DeadLetter]:
        """A feed's dead letters. Raises SQLError."""

    async def skip_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Forgets them."""

    async def retry_dead_letters(self, job_id: int, letters: Sequence[DeadLetter]) -> Sequence[str]:
        """Yields the outcome of each letter, in turn. Raises SQLError 55000 for a feed that does
        not run, and 0A000 for one that runs on another node."""

    async def latency(self, job_id: int) -> Sequence[StageReport]:
        """The times and the waiting rows of each stage of a feed. Raises SQLError: 0A000 for a feed
        that runs on another node."""

    async def lag(self, job_id: int) -> Sequence[SpanLag]:
        """The lag of each span of a feed: none, where the feed is over."""


def sees(rights: Rights, user: str, owner: str) -> bool:
    """Whether SHOW statements tell a user of the jobs, schedules and subscriptions of `owner`: of
    one's own, and of all with VIEWJOB or CONTROLJOB."""
    if rights.held(user, SYSTEM) & (Privilege.VIEWJOB | Privilege.CONTROLJOB):
        return True
    return owner in rights.roles_of(user)
