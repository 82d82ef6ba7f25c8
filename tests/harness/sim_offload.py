"""An `Offload` without threads: each call runs inline at a moment that the seed chooses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

SHORT_SECONDS = 0.0005
LONG_SECONDS = 0.02
LONG_CHANCE = 0.05
"""Now and then a disk takes its time, and what queues behind it must bear that."""


class SimOffload:
    """Calls of one lane run one at a time in order of submission; lanes run past each other.

    A call waits a seeded time, runs at once, and is answered a seeded time later: a crash may fall
    before its effect, or between the effect and the answer.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._queue: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._answers: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._busy = False
        self._held = False
        self._muted = False
        self._closed = False
        self._lanes: list[SimOffload] = []

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        if self._closed:
            raise RuntimeError("cannot schedule new calls after close")
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a new run: what an earlier one left unfinished is lost
            self._loop, self._busy = loop, False
            self._queue.clear()
            self._answers.clear()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.append((call, future))
        self._start()
        return future

    def lane(self, name: str, *, background: bool = False) -> SimOffload:
        lane = SimOffload(Random(f"{name}:{self._random.random()}"))
        self._lanes.append(lane)
        return lane

    def pool(self, name: str, threads_max: int) -> SimOffload:
        """Its lanes run past each other as all others do: any thread may be late."""
        return self.lane(name)

    def hold(self) -> None:
        """Starts no further call until `release`: a disk that hangs."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self._start()

    def mute(self) -> None:
        """Calls run as they did, and nobody hears of it until `unmute`."""
        self._muted = True

    def unmute(self) -> None:
        self._muted = False
        for _ in self._answers:
            asyncio.get_running_loop().call_later(self._delay(), self._answer_next)

    def close(self) -> None:
        """Runs what is queued, as a thread pool does when it shuts down."""
        for lane in self._lanes:
            lane.close()
        self._closed = True
        while self._queue:
            self._perform()

    def _delay(self) -> float:
        longest = LONG_SECONDS if self._random.random() < LONG_CHANCE else SHORT_SECONDS
        return self._random.random() * longest

    def _start(self) -> None:
        if self._busy or self._held or not self._queue:
            return
        assert self._loop is not None
        self._busy = True
        self._loop.call_later(self._delay(), self._perform_next)

    def _perform_next(self) -> None:
        if self._queue:  # close() may have run them all
            self._perform()
        self._busy = False
        self._start()

    def _perform(self) -> None:
        call, future = self._queue.popleft()
        if future.cancelled():
            return
        assert self._loop is not None
        try:
            result = call()
        except BaseException as error:  # whatever it is, it belongs to the caller
            self._answers.append((future, None, error))
        else:
            self._answers.append((future, result, None))
        self._loop.call_later(self._delay(), self._answer_next)

    def _answer_next(self) -> None:
        if self._muted or not self._answers:
            return
        # The oldest answer, not the one this timer was set for: one thread answers in order.
        future, result, error = self._answers.popleft()
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
