"""Admission to DuckDB: which users compute, how many queries at once, and for how long.

A node computes a few analytical queries at once, each in a *lane*. A user that is no admin has at
most two of them, and one lane is for admins and for the node itself alone: whatever users run, an
admin's query begins. Queries of mirrors have lanes of their own, by the same rules.

    four lanes      ada's 1st    ada's 2nd    bo's 1st    (admins)
    waiting         ada's 3rd

Whose query it is stands in the context, as the session's time zone does: its turn puts it there.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ...catalog.values.errors import SQLError
from ...kvlayer.settings import declare_duration

ANALYTICAL_TIMEOUT = declare_duration(
    "sql.analytics.statement_timeout",
    1800.0,
    "how long an analytical query may compute where its session has no statement_timeout; "
    "never COPY or FETCH; 0 for ever",
)

LANES_MAX = 4
"""Queries that run at once: all use the same threads of DuckDB, so more would only share them."""

USER_LANES_MAX = 2


@dataclass(frozen=True, slots=True)
class Asker:
    """The user of a query, and the seconds that it may compute; 0 for ever."""

    user: str
    admin: bool
    seconds: float = 0.0


Asking = Callable[[], Asker | None]
"""Returns who asks, None where the asking session is gone: called where there is an analytical
query, which most statements are not. Contexts keep it, so it must not keep the session."""

_asker: ContextVar[Asking | None] = ContextVar("asker", default=None)


def asker() -> Asker | None:
    """Returns the asking user; None where the node itself computes."""
    who = _asker.get()
    return None if who is None else who()


def ask_as(who: Asking | None) -> Asking | None:
    """From here on the context's queries are this one's. Returns who it was before."""
    before = _asker.get()
    _asker.set(who)
    return before


def untimed() -> None:
    """From here on the context's queries may compute for as long as they like."""
    who = _asker.get()
    if who is None:
        return

    def untimed_asker() -> Asker | None:
        found = who()
        return None if found is None else replace(found, seconds=0.0)

    _asker.set(untimed_asker)


class QueryTime:
    """The rest of one query's time. Waiting for a lane or a reader does not count."""

    def __init__(self, who: Asker | None) -> None:
        self._seconds = 0.0 if who is None else who.seconds
        self._left = self._seconds

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Raises SQLError 57014 when the query has computed for too long."""
        if not self._seconds:
            yield
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(max(self._left, 0.0)) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise SQLError(
                "57014",
                "canceling statement due to statement timeout",
                detail=f"An analytical query may compute for {self._seconds:g} seconds.",
                hint="SET statement_timeout to a longer time, or write COPY (SELECT …) TO STDOUT. "
                "The cluster setting is sql.analytics.statement_timeout.",
            ) from None
        finally:
            self._left -= loop.time() - began


class Lanes:
    """The node's lanes by user. The next lane goes to the user who waits longest, among those whose
    share is not used up."""

    def __init__(self, count: int) -> None:
        assert count >= 1, count
        self._kept = 1 if count > 1 else 0
        self._free = count
        self._used: Counter[str] = Counter()
        """By users that are no admins."""
        self._waiting: deque[tuple[Asker | None, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def one(self, who: Asker | None) -> AsyncIterator[None]:
        """A lane for the time of the block."""
        await self._taken(who)
        try:
            yield
        finally:
            self._give_back(who)

    async def _taken(self, who: Asker | None) -> None:
        if self._may(who):
            self._take(who)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((who, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(who)
            else:
                self._waiting.remove((who, turn))
            raise

    def _may(self, who: Asker | None) -> bool:
        if who is None or who.admin:
            return self._free > 0
        return self._free > self._kept and self._used[who.user] < USER_LANES_MAX

    def _take(self, who: Asker | None) -> None:
        self._free -= 1
        if who is not None and not who.admin:
            self._used[who.user] += 1

    def _give_back(self, who: Asker | None) -> None:
        self._free += 1
        if who is not None and not who.admin:
            self._used[who.user] -= 1
            if not self._used[who.user]:
                del self._used[who.user]
        for waiting in list(self._waiting):
            if not waiting[1].done() and self._may(waiting[0]):  # one that gave up removes itself
                self._waiting.remove(waiting)
                self._take(waiting[0])
                waiting[1].set_result(None)
