"""An event loop on a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..error import Error

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads, each call blocking its caller until the result is there.

    A caller that is interrupted (Ctrl-C) cancels its coroutine.
    """

    def __init__(self, name: str = "tailrace-store") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns what the coroutine returns, or raises what it raises. Raises Error when the loop
        is closed."""
        assert threading.current_thread() is not self._thread, "would wait for itself"
        if self._loop.is_closed():
            coroutine.close()
            raise Error("the database is closed: open it again")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def outcome(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """As `run`. An error of ours is raised without the frames of the loop."""
        try:
            return self.run(coroutine)
        except Error as error:
            raise error.with_traceback(None) from None

    def submit(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Begins the coroutine; nobody hears what comes of it."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @property
    def closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        """Ends what still runs, then the loop and its thread."""
        if self._loop.is_closed():
            return
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
