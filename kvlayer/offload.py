"""The one door to threads.

A store runs on one event loop. Threads are for calls that release the interpreter lock
(`fdatasync`, DuckDB, an engine flush), and every such call goes through an `Offload`, so that a
simulation can run the same call inline, at a moment that its seed chooses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Offload(Protocol):
    """Runs blocking calls beside the loop, one at a time and in order of submission."""

    async def run(self, call: Callable[[], T]) -> T:
        """Runs `call` off the loop and returns what it returns, or raises what it raises."""
        ...

    def lane(self, name: str) -> Offload:
        """Another Offload whose calls do not queue behind this one's."""
        ...

    def close(self) -> None:
        """Waits for calls under way; later calls are refused with RuntimeError."""
        ...


class ThreadOffload:
    """One thread per lane."""

    def __init__(self, name: str = "tailrace") -> None:
        self._name = name
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lanes: list[ThreadOffload] = []

    async def run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def lane(self, name: str) -> ThreadOffload:
        lane = ThreadOffload(f"{self._name}-{name}")
        self._lanes.append(lane)
        return lane

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
        self._executor.shutdown(wait=True)
