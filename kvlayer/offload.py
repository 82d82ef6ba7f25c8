"""The one door to threads.

A store runs on one event loop. Threads are for calls that release the interpreter lock
(`fdatasync`, DuckDB, an engine flush), and every such call goes through an `Offload`, so that a
simulation can run the same call inline, at a moment that its seed chooses.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_Call = tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop]


class Offload(Protocol):
    """Runs blocking calls beside the loop, one at a time and in order of submission."""

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Hands `call` over in this step; the future has what it returns, or what it raises."""
        ...

    def lane(self, name: str) -> Offload:
        """Another Offload whose calls do not queue behind this one's."""
        ...

    def close(self) -> None:
        """Waits for calls under way; later calls are refused with RuntimeError."""
        ...


class ThreadOffload:
    """One thread per lane, started by the lane's first call.

    Its own thread, and not `run_in_executor`: that wraps each call in two futures and chains them,
    which makes a lone commit durable in 0.27 ms instead of 0.18 ms.
    """

    def __init__(self, name: str = "tailrace") -> None:
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lanes: list[ThreadOffload] = []
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

    def lane(self, name: str) -> ThreadOffload:
        lane = ThreadOffload(f"{self._name}-{name}")
        self._lanes.append(lane)
        return lane

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
        self._closed = True
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            call, future, loop = item
            if not future.cancelled():
                _perform(call, future, loop)
            del item, call, future, loop  # or the last call's arguments live until the next


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
