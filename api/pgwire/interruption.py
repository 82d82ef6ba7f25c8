"""Cutting work short from outside: a CancelRequest, a client that hangs up, a server that stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import Enum
from typing import TypeVar

from ...catalog.values.errors import SQLError
from .channel import HangUp

T = TypeVar("T")


class Interruption(Enum):
    """Why work is cut short. The value is what its client is told."""

    CANCEL = "canceling statement due to user request"
    HANG_UP = "the client has gone"
    SHUTDOWN = "terminating connection due to administrator command"


class Guard:
    """Runs the work of the task that makes it, so that others can interrupt it.

    The task is cancelled only while it is inside `run`: an interruption that comes between two
    pieces of work changes nothing.
    """

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._running = False
        self._interruption: Interruption | None = None

    def interrupt(self, why: Interruption) -> bool:
        """Says whether there was work to interrupt."""
        if not self._running:
            return False
        if self._interruption is None:
            assert self._task is not None, "work outside of a task"
            self._interruption = why
            self._task.cancel()
        return True

    async def run(self, work: Awaitable[T]) -> T:
        """Returns the result of `work`. Raises SQLError 57014 or 57P01, or HangUp, when
        interrupted."""
        assert not self._running, "work inside work"
        self._running = True
        try:
            result = await work
        except asyncio.CancelledError:
            if self._interruption is None:
                raise
            raise self._told() from None
        finally:
            self._running = False
        if self._interruption is not None:
            # Too late for the work, but the task has been cancelled: so its client is told.
            raise self._told()
        return result

    def _told(self) -> SQLError | HangUp:
        why, self._interruption = self._interruption, None
        assert self._task is not None, "work outside of a task"
        self._task.uncancel()
        match why:
            case Interruption.HANG_UP:
                return HangUp()
            case Interruption.SHUTDOWN:
                return SQLError("57P01", why.value)
        assert why is Interruption.CANCEL, why
        return SQLError("57014", why.value)
