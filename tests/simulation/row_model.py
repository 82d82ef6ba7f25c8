"""The oracle of rows: exactly what was committed, told by the commits themselves.

    ticket = model.submit({key: body, other: None})     # None deletes
    model.commit(ticket, ts)                            # acknowledged
    model.abort(ticket)                                 # refused: nothing was written

What was submitted and neither acknowledged nor refused when the process died is *in doubt*: it is
read back once, after recovery (`adopt`), whole or not at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import count

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store

Writes = Mapping[bytes, bytes | None]
Version = tuple[bytes, Timestamp]


class RowModel:
    """Transactions of one table by commit timestamp, and those in doubt."""

    def __init__(self) -> None:
        self.commits: dict[Timestamp, Writes] = {}
        self.frozen = False
        """Set when the process has died: what its tasks still hear is heard by nobody."""
        self._submitted: dict[int, Writes] = {}
        self._tickets = count()

    def submit(self, writes: Writes) -> int:
        ticket = next(self._tickets)
        if not self.frozen:
            self._submitted[ticket] = writes
        return ticket

    def commit(self, ticket: int, at: Timestamp) -> None:
        if not self.frozen:
            assert at not in self.commits, f"two transactions committed at {at}"
            self.commits[at] = self._submitted.pop(ticket)

    def abort(self, ticket: int) -> None:
        if not self.frozen:
            del self._submitted[ticket]

    @property
    def last(self) -> Timestamp:
        return max(self.commits, default=Timestamp(0))

    def adopt(self, found: Mapping[Timestamp, Writes]) -> None:
        """What recovery found, every version of the table: all that was acknowledged, and whole
        transactions in doubt."""
        for at, writes in self.commits.items():
            assert found.get(at) == writes, f"acknowledged at {at}: {writes}, found {found.get(at)}"
        doubtful = list(self._submitted.values())
        for at, writes in sorted(found.items()):
            if at not in self.commits:
                assert writes in doubtful, f"nobody wrote {writes} at {at}"
                doubtful.remove(writes)
                self.commits[at] = writes
        self._submitted.clear()
        self.frozen = False

    def rows_at(self, at: Timestamp) -> dict[bytes, tuple[Timestamp, bytes]]:
        """The table as of `at`: for each key when its row was written, and the row."""
        state: dict[bytes, tuple[Timestamp, bytes | None]] = {}
        for ts in sorted(self.commits):
            if ts <= at:
                state |= {key: (ts, body) for key, body in self.commits[ts].items()}
        return {key: (ts, body) for key, (ts, body) in state.items() if body is not None}

    def versions(self) -> Iterator[Version]:
        for ts, writes in self.commits.items():
            for key in writes:
                yield key, ts

    def deleted_from(self, key: bytes, at: Timestamp) -> Timestamp | None:
        """When the key was deleted first, at `at` or above."""
        gone = (ts for ts, writes in self.commits.items() if writes.get(key, b"") is None)
        return min((ts for ts in gone if ts >= at), default=None)

    def newer(self, key: bytes, at: Timestamp) -> bool:
        """Whether the key was written above `at`."""
        return any(ts > at and key in writes for ts, writes in self.commits.items())


async def read_history(store: Store, span: Span) -> dict[Timestamp, Writes]:
    """Every version that a store holds, by transaction."""
    found: dict[Timestamp, dict[bytes, bytes | None]] = {}
    async for versions in store.versions(span, Timestamp(0), store.clock.now()):
        for key, ts, body in versions:
            found.setdefault(ts, {})[key] = body
    return dict(found)


class PrefixMaximum:
    """Claims in the order in which they were made: which was the first to reach a timestamp?"""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._reached: list[Timestamp] = []

    def note(self, number: int, reached: Timestamp) -> None:
        if not self._reached or reached > self._reached[-1]:
            self._numbers.append(number)
            self._reached.append(reached)

    def first_at(self, ts: Timestamp) -> int | None:
        """The number of the first claim at or above `ts`."""
        place = bisect_right(self._reached, ts - 1)
        return self._numbers[place] if place < len(self._numbers) else None
