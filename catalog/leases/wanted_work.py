"""Work in the background that may be wanted again while it is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol


class Spawn(Protocol):
    """Starts a task and keeps it until it is done."""

    def __call__(self, work: Coroutine[Any, Any, None], /) -> asyncio.Task[None]: ...


class WantedWork:
    """Runs one at a time, and once more where it was wanted while it ran.

        want ──> runs . . . . . ends
               want  want            ──> runs once more: it may have read before they wanted

    So a node that is cut off for an hour, and is told every few seconds to look again, has one look
    under way and not hundreds.
    """

    def __init__(self, work: Callable[[], Awaitable[None]], spawn: Spawn) -> None:
        self._work = work
        self._spawn = spawn
        self._wanted = False
        self._pause = 0.0
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def want(self, *, pause: float = 0.0) -> asyncio.Task[None]:
        """The task that ends once the work was done that began after this call. With `pause`, that
        many seconds pass before it, unless somebody else is in a hurry."""
        self._pause = pause if not self._wanted else min(self._pause, pause)
        self._wanted = True
        if not pause:
            self._hurry.set()
        if self._task is None or self._task.done():
            self._task = self._spawn(self._run())
        return self._task

    async def _run(self) -> None:
        while self._wanted:
            if self._pause:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause):
                        await self._hurry.wait()
            self._wanted, self._pause = False, 0.0
            self._hurry.clear()
            await self._work()
