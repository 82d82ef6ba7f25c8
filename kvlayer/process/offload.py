"""The one door to threads.

A store runs on one event loop. Threads are for calls that release the interpreter lock
(`fdatasync`, DuckDB, an engine flush), and every such call goes through an `Offload`, so that a
simulation can run the same call inline, at a moment that its seed chooses.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

BACKGROUND_NICE = 5
"""A third of the loop's share of a processor. Far lower, a thread that calls back into Python would
keep the interpreter's lock while others run."""

_Call = tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop]


def _go_to_background() -> None:
    """For this thread and those that it starts, which inherit that from it (setpriority(2), "C
    library/kernel differences")."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICE)


class OffloadLane(Protocol):
    """Runs blocking calls beside the loop, one at a time and in order of submission."""

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Hands `call` over in this step; the future has what it returns, or what it raises."""
        ...


class OffloadPool(Protocol):
    """Lanes that share some threads: a call waits for other lanes' only while all are at work."""

    def lane(self, name: str) -> OffloadLane: ...


class Offload(OffloadLane, Protocol):
    """A lane with a thread of its own, and where others come from."""

    def lane(self, name: str, *, background: bool = False) -> Offload:
        """Another Offload whose calls do not queue behind this one's. In the background its thread,
        and those that its calls start, leave processors to the loop."""
        ...

    def pool(self, name: str, threads_max: int) -> OffloadPool:
        """Lanes that share at most so many threads, for when there may be any number of lanes."""
        ...

    def close(self) -> None:
        """Waits for calls under way; later calls are refused with RuntimeError."""
        ...


class ThreadOffload:
    """One thread per lane, started by the lane's first call.

    Its own thread, and not `run_in_executor`: that wraps each call in two futures and chains them,
    which makes a lone commit durable in 0.27 ms instead of 0.18 ms.
    """

    def __init__(self, name: str = "tailrace", *, background: bool = False) -> None:
        self._name = name
        self._background = background
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lanes: list[ThreadOffload | ThreadPool] = []
        self._closed = False

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        if self._closed:
            raise RuntimeError(f"offload {self._name} is closed")
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put((call, future, loop))
        return future

    def lane(self, name: str, *, background: bool = False) -> ThreadOffload:
        lane = ThreadOffload(f"{self._name}-{name}", background=background)
        self._lanes.append(lane)
        return lane

    def pool(self, name: str, threads_max: int) -> ThreadPool:
        pool = ThreadPool(f"{self._name}-{name}", threads_max)
        self._lanes.append(pool)
        return pool

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
        self._closed = True
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        if self._background:
            _go_to_background()
        while (item := self._calls.get()) is not None:
            call, future, loop = item
            if not future.cancelled():
                _perform(call, future, loop)
            del item, call, future, loop  # or the last call's arguments live until the next


class ThreadPool:
    """Lanes over a bounded number of threads, each started when no other is free.

        ready    lanes that wait for a thread, the one that waited longest first
        idle     workers that wait for a lane, the one that worked last on top

    A worker runs one call of a lane and puts the lane behind the others that are ready, so that a
    lane with many calls delays another by one call. The worker that worked last is taken first: its
    stack and the allocator's cache of its thread are warm, and few threads do what few can.
    """

    def __init__(self, name: str, threads_max: int) -> None:
        assert threads_max > 0, threads_max
        self.name = name
        self.closed = False
        self._threads_max = threads_max
        # Guards all below, and the lanes. Never held during a call.
        self._lock = threading.Lock()
        self._ready: deque[_PooledLane] = deque()
        self._idle: list[SimpleQueue[_PooledLane | None]] = []
        self._threads: list[threading.Thread] = []

    def lane(self, name: str) -> _PooledLane:
        return _PooledLane(self)

    def submit(self, lane: _PooledLane, item: _Call) -> None:
        """Puts a call at the end of its lane."""
        with self._lock:
            if self.closed:
                raise RuntimeError(f"offload {self.name} is closed")
            lane.calls.append(item)
            if not lane.scheduled:
                lane.scheduled = True
                self._schedule(lane)

    def close(self) -> None:
        """Runs what was submitted, as a single lane does, and ends the threads."""
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)
        for thread in self._threads:
            thread.join()

    def _schedule(self, lane: _PooledLane) -> None:
        if self._idle:
            self._idle.pop().put(lane)
        elif len(self._threads) < self._threads_max:
            number = len(self._threads)
            thread = threading.Thread(
                target=self._serve, args=(lane,), name=f"{self.name}-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        else:
            self._ready.append(lane)

    def _serve(self, first: _PooledLane) -> None:
        inbox: SimpleQueue[_PooledLane | None] = SimpleQueue()
        lane: _PooledLane | None = first
        while lane is not None:
            call, future, loop = lane.calls.popleft()  # none but this worker takes from it now
            if not future.cancelled():
                _perform(call, future, loop)
            del call, future, loop  # or the last call's arguments live until the next
            lane = self._next(lane, inbox) or inbox.get()

    def _next(
        self, done: _PooledLane, inbox: SimpleQueue[_PooledLane | None]
    ) -> _PooledLane | None:
        """Finds the worker's next lane after a call of `done`; None where it has to wait at
        `inbox`."""
        with self._lock:
            if done.calls:
                self._ready.append(done)
            else:
                done.scheduled = False
            if self._ready:
                return self._ready.popleft()
            if self.closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)
            return None


class _PooledLane:
    """The calls of one lane of a pool. `scheduled`: a worker has it, or it is ready."""

    __slots__ = ("_pool", "calls", "scheduled")

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self.calls: deque[_Call] = deque()
        self.scheduled = False

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._pool.submit(self, (call, future, loop))
        return future


def _perform(
    call: Callable[[], Any], future: asyncio.Future[Any], loop: asyncio.AbstractEventLoop
) -> None:
    try:
        result = call()
    except BaseException as error:  # whatever it is, it belongs to the caller
        _deliver(loop, _fail, future, error)
    else:
        _deliver(loop, _answer, future, result)


def _deliver(loop: asyncio.AbstractEventLoop, answer: Callable[..., None], *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(answer, *args)
    except RuntimeError:
        # The loop closed while the call ran: nobody is left to hear the answer.
        pass


def _answer(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
