"""The memory budget: what bounds a feed that reads faster than its sink takes."""

from __future__ import annotations

import asyncio

from ...kvlayer.events import ValueBatch
from ...kvlayer.process.memory import share
from ...kvlayer.settings import Settings, declare_bytes
from ..targets import Versions

MEMORY_LIMIT = declare_bytes(
    "changefeed.memory.per_changefeed_limit",
    share(8, at_most=512 * 1024 * 1024),
    "bytes of changes that one changefeed may hold between its range feed and its sink",
)

NODE_MEMORY_LIMIT = declare_bytes(
    "changefeed.memory.node_limit",
    share(4, at_most=5 * 512 * 1024 * 1024),
    "bytes of changes that all changefeeds of a node may hold between their range feeds and sinks",
)

PART_OF_LEFT = 4
"""A feed holds at most this part of what the node has left, which bounds what it takes from others:
behind 20 sinks that take nothing, 1 % of the limit is still free."""

ROW_OVERHEAD_BYTES = 120
"""The cost of a row beside its bytes: two Python objects' headers, a timestamp, list slots."""


def batch_bytes(batch: ValueBatch | Versions) -> int:
    """The charge for a batch: its keys and values and a flat sum for each row."""
    values = sum([len(value) for value in batch.values if value is not None])
    if batch.previous:
        values += sum([len(value) for value in batch.previous if value is not None])
    return values + sum(map(len, batch.keys)) + ROW_OVERHEAD_BYTES * len(batch)


class FeedMemory:
    """The sum of what the budgets of a node's feeds count, streams to clients among them."""

    def __init__(self) -> None:
        self.used = 0


class MemoryBudget:
    """Counts the bytes between the range feed and the flushed sink.

    `charge` never refuses: the reader asks for room before it takes the next events, so the sum
    passes the limit by at most what one read brings. A batch is released when its sink has flushed
    it, so a slow sink stops the reader, and through it nobody else: the range feed overflows and
    catches up later.

    A feed holds at most a quarter of what the node has left, so many slow sinks together stay below
    the node's limit, and a further feed always finds room.
    """

    def __init__(self, settings: Settings, memory: FeedMemory) -> None:
        self._settings = settings
        self._memory = memory
        self._room: asyncio.Event = asyncio.Event()
        self.used = 0
        self.held = 0
        """Bytes that wait at a boundary of their table. What they wait for may itself need room, so
        they have a limit of their own, as great again."""

    @property
    def full(self) -> bool:
        """Whether no more should be read. One read fits, whatever the limit."""
        return self.used > 0 and self.used >= self._limit[0]

    @property
    def overheld(self) -> bool:
        """Whether more waits at boundaries than should."""
        return self.held > 0 and self.held >= self._limit[0]

    @property
    def limited_by(self) -> str:
        """The name of the setting whose limit a full budget has reached."""
        return self._limit[1]

    @property
    def _limit(self) -> tuple[int, str]:
        own = self._settings.get(MEMORY_LIMIT)
        left = self._settings.get(NODE_MEMORY_LIMIT) - self._memory.used
        return min((own, MEMORY_LIMIT.name), (left // PART_OF_LEFT, NODE_MEMORY_LIMIT.name))

    def set_aside(self, size: int) -> None:
        """Charged bytes now wait at a boundary."""
        self.release(size)
        self.held += size
        self._memory.used += size

    def take_back(self, size: int) -> None:
        """Bytes that waited at a boundary are charged again."""
        self.drop(size)
        self.charge(size)
        self._room.set()

    def drop(self, size: int) -> None:
        """Bytes that waited at a boundary are gone."""
        assert 0 <= size <= self.held, (size, self.held)
        self.held -= size
        self._memory.used -= size

    def charge(self, size: int) -> None:
        assert size >= 0, size
        self.used += size
        self._memory.used += size

    def release(self, size: int) -> None:
        assert 0 <= size <= self.used, (size, self.used)
        self.used -= size
        self._memory.used -= size
        self._room.set()

    def close(self) -> None:
        """Gives back what an attempt held when it ended."""
        self.release(self.used)
        self.drop(self.held)

    async def wait_for_room(self) -> None:
        """Returns when less than the limit is charged."""
        while self.full:
            self._room.clear()
            await self._room.wait()
