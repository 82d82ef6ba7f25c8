"""A doorbell between two channels of one loop: for a worker that is no process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context


class LoopDoorbell:
    """One end of it: see `kvlayer.worker.channel.Doorbell`."""

    def __init__(self) -> None:
        self._other: LoopDoorbell
        self._heard: Callable[[int, int], None] | None = None
        self._ended: Callable[[], None]
        self._rung: tuple[int, int] | None = None

    @classmethod
    def pair(cls) -> tuple[LoopDoorbell, LoopDoorbell]:
        one, other = cls(), cls()
        one._other, other._other = other, one
        return one, other

    def start(self, heard: Callable[[int, int], None], ended: Callable[[], None]) -> None:
        self._heard, self._ended = heard, ended
        if self._rung is not None:
            _soon(self._hear)

    def ring(self, written: int, read: int) -> None:
        due = self._other._rung is None
        self._other._rung = written, read
        if due and self._other._heard is not None:
            _soon(self._other._hear)

    def close(self) -> None:
        self._heard = None
        other = self._other
        if other._heard is not None:
            _soon(other._end)

    def _hear(self) -> None:
        counts, self._rung = self._rung, None
        if counts is not None and self._heard is not None:
            self._heard(*counts)

    def _end(self) -> None:
        if self._heard is not None:
            self._hear()
            self._ended()


def _soon(callback: Callable[[], None]) -> None:
    """Nothing of one side's context reaches the other, as between processes."""
    asyncio.get_running_loop().call_soon(callback, context=Context())
