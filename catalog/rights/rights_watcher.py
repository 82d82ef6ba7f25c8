"""The rights that a node goes by: in memory, and as new as the store's.

Statements ask `current`, which is a value that never changes: another takes its place when a row of
the rights' tables changes. On the node that changed rights, `catch_up` makes sure of that before
the statement returns, so a REVOKE that has returned holds for the next statement of every session
there; other nodes hear of it through their range feeds, some milliseconds later.

What runs for longer than a statement (a feed, a stream, a read of a mirror) runs `during` its
right: it is asked about again at each change, and cancelled when the right has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar, cast

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.events import ValueBatch
from ..descriptors.system_tables import PRIVILEGES, ROLE_MEMBERS, USERS
from ..store.span_follower import follow_spans
from .rights import Rights, read_rights
from .users import ended_login

_SPANS = (PRIVILEGES.primary_span, ROLE_MEMBERS.primary_span, USERS.primary_span)

T = TypeVar("T")


class RightsWatcher:
    """Follows the store's rights. Made for one node; `start` before it is asked."""

    def __init__(self, store: StoreAccess) -> None:
        self.current = Rights({}, ())
        self._store = store
        self._read_at = ZERO
        self._reading = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._change: asyncio.Future[None] | None = None
        """Done with the next change, where somebody waits for it."""
        self._on_logins_ended: list[Callable[[str, Timestamp], None]] = []

    def on_logins_ended(self, call: Callable[[str, Timestamp], None]) -> None:
        """Calls with the name of a user that was dropped, or may not log in any more, and when that
        was. A new user may have the name by then."""
        self._on_logins_ended.append(call)

    async def during(
        self, check: Callable[[], Awaitable[None]], work: Callable[[], Coroutine[None, None, T]]
    ) -> T:
        """Returns the result of `work()`, while `check` raises nothing: before it, and after each
        change.

        When `check` raises, `work` is cancelled, and this raises the same once `work` has ended.
        """
        task: asyncio.Future[T] | None = None
        try:
            while task is None or not task.done():
                change = self._next_change()
                await check()
                if task is None:
                    task = asyncio.create_task(work())
                    task.add_done_callback(_ask)
                either = (task, cast("asyncio.Future[T]", change))  # one is not asked for a result
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return task.result()
        finally:
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])

    def _next_change(self) -> asyncio.Future[None]:
        if self._change is None or self._change.done():
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    async def start(self) -> None:
        """Reads all rights, and begins to follow them."""
        assert self._task is None, "rights are followed already"
        after = await self._store.now()
        await self.catch_up(after)
        following = follow_spans(
            self._store,
            _SPANS,
            after,
            refresh=self._refresh,
            take=self._take,
            restarts="rights_watcher_restarts_total",
        )
        self._task = asyncio.create_task(following, name="rights watcher")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def catch_up(self, at: Timestamp) -> None:
        """Returns when `current` is as of `at` or later."""
        async with self._reading:
            if self._read_at >= at:
                return
            now = await self._store.now()
            self.current = await read_rights(self._store.snapshot(now))
            self._read_at = now
            if self._change is not None and not self._change.done():
                self._change.set_result(None)

    async def _refresh(self) -> None:
        await self.catch_up(await self._store.now())

    async def _take(self, written: ValueBatch) -> None:
        await self.catch_up(max(written.timestamps))
        users = USERS.primary_span
        for key, body, at in zip(written.keys, written.values, written.timestamps, strict=True):
            name = ended_login(key, body) if users.contains(key) else None
            if name is not None:
                for call in self._on_logins_ended:
                    call(name, at)


def _ask(ended: asyncio.Future[T]) -> None:
    """Reads the outcome of a question whose asker was cancelled meanwhile: nobody else will."""
    if not ended.cancelled():
        ended.exception()
