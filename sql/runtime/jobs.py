"""Jobs as sessions see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ...catalog.rights.privileges import SYSTEM, Privilege
from ...catalog.rights.rights import Rights
from ...catalog.rights.users import ROOT
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
    watched: str | None = None
    """The feed's tables, each with what it is doing and how far it has come."""


class Jobs(Protocol):
    """The jobs of the store. Each method is a transaction of its own."""

    async def list(self, *, changefeeds_only: bool) -> Sequence[JobSummary]:
        """Those that have not ended and those that ended of late, by id."""
        ...

    async def find(self, job_ids: Sequence[int]) -> Sequence[JobSummary]:
        """Those of the jobs that there are, whenever they ended."""
        ...

    async def control(self, job_id: int, action: JobAction) -> None:
        """Raises SQLError: 42704 for an unknown job, 55000 where its state does not allow it."""
        ...

    async def completed(self, job_ids: Sequence[int]) -> None:
        """Returns when all of the jobs are over. Raises SQLError 42704 for an unknown one."""
        ...


def sees(rights: Rights, user: str, job: JobSummary) -> bool:
    """Whether SHOW JOBS shows the user a job: one's own, and all to VIEWJOB or CONTROLJOB."""
    if rights.held(user, SYSTEM) & (Privilege.VIEWJOB | Privilege.CONTROLJOB):
        return True
    return (job.user_name or ROOT) in rights.roles_of(user)
