"""The wake-up of a feed's consumer."""

from __future__ import annotations

import asyncio


class Doorbell:
    """Wakes the one consumer that waits at it.

    A ring is remembered until the consumer waits or clears it. It clears the bell, looks for
    something to do, and then waits: so it misses nothing that comes while it looks.
    """

    __slots__ = ("_rung", "_waiter")

    def __init__(self) -> None:
        self._rung = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def rung(self) -> bool:
        return self._rung

    def ring(self) -> None:
        self._rung = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def ring_resolved(self) -> None:
        """Rings for a checkpoint without any other event. A span feed's bells may let its consumer
        sleep on."""
        self.ring()

    def mark(self) -> None:
        """Something changed that is worth no waking. A span feed's bells remember it."""

    def clear(self) -> None:
        """Forgets the rings so far: the consumer is about to look."""
        self._rung = False

    async def wait(self) -> None:
        """Returns once the bell was rung since it was cleared."""
        assert self._waiter is None, "a feed has one consumer"
        if not self._rung:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._rung = False
