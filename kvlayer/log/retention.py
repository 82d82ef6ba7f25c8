"""Retention: what keeps a part of the log from being deleted while somebody still reads it."""

from __future__ import annotations

from ..settings import declare_bytes

RETAINED_BYTES_MAX = declare_bytes(
    "kv.log.retained_bytes_max",
    512 * 1024 * 1024,
    "bytes of log kept for range feeds that catch up, before the slowest is cut off",
)


class Retention:
    """Keeps the entries from `index` on, until it is released or revoked.

    A retention is revoked when keeping its entries would cost too much: then they are gone, and
    who holds it must find what they said elsewhere (a feed starts again from its checkpoint).
    """

    __slots__ = ("_held", "index", "revoked")

    def __init__(self, index: int, held: set[Retention]) -> None:
        self.index = index
        self.revoked = False
        self._held = held
        held.add(self)

    def advance(self, index: int) -> None:
        """Entries below `index` are no longer needed."""
        assert index >= self.index, (index, self.index)
        self.index = index

    def release(self) -> None:
        """Ends the retention: nothing is needed any more. Releasing twice is once."""
        self._held.discard(self)

    def __repr__(self) -> str:
        return f"<Retention from {self.index}{' revoked' if self.revoked else ''}>"


class Retentions:
    """All that keep a log's entries."""

    def __init__(self) -> None:
        self._held: set[Retention] = set()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, index: int) -> Retention:
        """Keeps the entries from `index` on, in this step."""
        return Retention(index, self._held)

    def needs(self, upto: int) -> bool:
        """Whether any entry up to `upto` is kept."""
        return any(retention.index <= upto for retention in self._held)

    def revoke(self, upto: int) -> None:
        """Takes back all that keep an entry up to `upto`."""
        for retention in [held for held in self._held if held.index <= upto]:
            retention.revoked = True
            retention.release()
