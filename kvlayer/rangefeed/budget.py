"""The memory that waiting events may take: of one feed, and of all feeds of a store."""

from __future__ import annotations

from ..process.memory import share
from ..settings import Settings, declare_bytes

BUFFER_BYTES = declare_bytes(
    "kv.rangefeed.buffer_bytes",
    share(32, at_most=64 * 1024 * 1024),
    "bytes of events that wait for a range feed's consumer before it is cut off",
)
MEMORY_BUDGET = declare_bytes(
    "kv.rangefeed.memory_budget",
    share(16, at_most=256 * 1024 * 1024),
    "bytes of events that wait for consumers of range feeds, in the whole store",
)

ENTRY_OVERHEAD_BYTES = 1024
"""What an entry costs beside its bytes in the log: the objects that it was decoded to."""

CHECKPOINT_BYTES = 128
"""What a waiting checkpoint costs. Were it free, idle ranges alone could fill the memory."""


class MemoryBudget:
    """The bytes of events that wait for the consumers of all feeds of one store.

    An entry that waits for several feeds is counted for each, though they share it: whoever is
    slow must not ride on the others' room.
    """

    __slots__ = ("_settings", "used_bytes")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.used_bytes = 0

    def take(self, count: int) -> bool:
        """Takes `count` bytes if there is room, and says whether there was."""
        if self.used_bytes + count > self._settings.get(MEMORY_BUDGET):
            return False
        self.used_bytes += count
        return True

    def force(self, count: int) -> None:
        """Takes `count` bytes in any case: what a feed cannot end or go on without."""
        self.used_bytes += count

    def give_back(self, count: int) -> None:
        assert count <= self.used_bytes, (count, self.used_bytes)
        self.used_bytes -= count

    def __repr__(self) -> str:
        return f"<MemoryBudget {self.used_bytes} bytes used>"
