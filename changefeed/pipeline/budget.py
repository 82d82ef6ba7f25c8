"""The memory budget: what bounds a feed that reads faster than its sink takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...kvlayer.events import ValueBatch
from ...kvlayer.settings import declare_int
from ..targets import Versions

MEMORY_LIMIT = declare_int(
    "changefeed.memory.per_changefeed_limit",
    512 * 1024 * 1024,
    "bytes of changes that one changefeed may hold between its range feed and its sink",
)

ROW_OVERHEAD_BYTES = 120
"""What a row costs beside its bytes: two Python objects' headers, a timestamp, list slots."""


def batch_bytes(batch: ValueBatch | Versions) -> int:
    """The charge for a batch: its keys and values and a flat sum for each row."""
    values = sum([len(value) for value in batch.values if value is not None])
    if batch.previous:
        values += sum([len(value) for value in batch.previous if value is not None])
    return values + sum(map(len, batch.keys)) + ROW_OVERHEAD_BYTES * len(batch)


class MemoryBudget:
    """Counts the bytes between the range feed and the flushed sink.

    `charge` never refuses: the reader asks for room before it takes the next events, so the sum
    passes the limit by at most what one read brings. A batch is released when its sink has flushed
    it, so a slow sink stops the reader, and through it nobody else: the range feed overflows and
    catches up later.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._room: asyncio.Event = asyncio.Event()
        self.used = 0
        self.held = 0
        """Bytes that wait at a boundary of their table. What they wait for may itself need room, so
        they have a limit of their own, as great again."""

    @property
    def full(self) -> bool:
        """Whether no more should be read. One read fits, whatever the limit."""
        return self.used > 0 and self.used >= self._limit()

    @property
    def overheld(self) -> bool:
        """Whether more waits at boundaries than should."""
        return self.held > 0 and self.held >= self._limit()

    def set_aside(self, size: int) -> None:
        """Charged bytes now wait at a boundary."""
        self.release(size)
        self.held += size

    def take_back(self, size: int) -> None:
        """Bytes that waited at a boundary are charged again."""
        assert 0 <= size <= self.held, (size, self.held)
        self.held -= size
        self.charge(size)
        self._room.set()

    def drop(self, size: int) -> None:
        """Bytes that waited at a boundary are gone."""
        assert 0 <= size <= self.held, (size, self.held)
        self.held -= size

    def charge(self, size: int) -> None:
        assert size >= 0, size
        self.used += size

    def release(self, size: int) -> None:
        assert 0 <= size <= self.used, (size, self.used)
        self.used -= size
        self._room.set()

    async def wait_for_room(self) -> None:
        """Returns when less than the limit is charged."""
        while self.full:
            self._room.clear()
            await self._room.wait()
