"""The queue of entries on their way to a replica.

    put  ->  | a3 b2 c1 a2 |  ->  [a1 b1]  [d1 e1]  ->  replica
               wait               under way, until acknowledged

A request takes the oldest entries of keys that are not under way, as many as it may hold. One that
would not be full waits until none is under way and a flush wants its entries. So a trickle costs
one request for each way there and back, which takes the flush's progress along, and a backlog has
as many under way as there may be.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Protocol, TypeVar

from ....kvlayer.clock import Timestamp

T = TypeVar("T")

REQUEST_BYTES_MAX = 1024 * 1024
"""Of a request with several entries: the target decodes it in one step of its loop."""

WAITING_REQUESTS = 2
"""Requests whose entries wait: where keys of the first are under way, the second goes."""


@dataclass(slots=True)
class Entries:
    """Versions as they are stored: `bodies[i]` of `keys[i]`, which are without what all keys of
    their keyspace begin with, at `timestamps[i]`."""

    keys: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    timestamps: list[Timestamp] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Told:
    """The feed's progress, and its note of it: true once everything up to there is durable."""

    note: bytes
    resolved: Timestamp | None


class Send(Protocol):
    async def __call__(self, entries: Entries, told: Told | None) -> None:
        """Returns when the entries are durable, and what is told with them."""
        ...


class EntryQueue:
    """Sends entries.

    Promises: no key is in two requests at once, and the entries of a key are sent in the order in
    which they were put. After a failure the queue is of no further use: `flushed` raises it.
    """

    def __init__(self, send: Send, *, requests_max: int, entries_max: int) -> None:
        self._send = send
        self._requests_max = requests_max
        self._entries_max = entries_max
        self._batches: deque[Entries] = deque()
        self._waiting = Entries()
        self._numbers: list[int] = []
        """With which batch each of those that wait came. They ascend."""
        self._waiting_bytes = 0
        self._keys_under_way: set[bytes] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._put_count = 0
        self._taken_count = 0
        """Batches whose entries have come to wait."""
        self._unacknowledged: dict[int, int] = {}
        """How many entries of each of these batches, the oldest batch first."""
        self._wanted_count = 0
        """Batches that a flush waits for."""
        self._told: Told | None = None
        """The progress of the flush that waits, until a request takes it along."""
        self._work = asyncio.Event()
        """Set when something was put, or is wanted, or a request has ended."""
        self._acknowledged = asyncio.Event()
        """Set when a batch was acknowledged, or something has failed."""
        self._failure: Exception | None = None
        self._task = asyncio.create_task(self._run(), name="entry queue")

    def put(self, entries: Entries) -> None:
        self._batches.append(entries)
        self._put_count += 1
        self._work.set()

    async def flushed(self, told: Told | None = None) -> bool:
        """Returns when all that was put before the call is durable: True where `told` is, too.
        Raises what has failed."""
        wanted = self._wanted_count = self._put_count
        self._told = told
        self._work.set()
        while self._failure is None and self._acknowledged_count < wanted:
            self._acknowledged.clear()
            await self._acknowledged.wait()
        if self._failure is not None:
            raise self._failure
        untold, self._told = self._told, None
        return told is not None and untold is None

    async def close(self) -> None:
        tasks = (self._task, *self._requests)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._batches.clear()

    @property
    def _acknowledged_count(self) -> int:
        """Batches, counted from the first, that are durable without a gap."""
        return next(iter(self._unacknowledged), self._taken_count)

    async def _run(self) -> None:
        """Keeps requests under way."""
        try:
            while True:
                while self._request_next():
                    pass
                self._work.clear()
                await self._work.wait()
        except Exception as error:  # whatever it was, who waits for the entries raises it
            self._fail(error)

    def _request_next(self) -> bool:
        """Begins a request, if one may be; says whether it did."""
        if len(self._requests) >= self._requests_max:
            return False
        self._fill()
        taken = self._take()
        if taken is None:
            return False
        entries, numbers = taken
        told = None
        if not self._requests and self._oldest_waiting >= self._wanted_count:
            told, self._told = self._told, None  # it covers what goes along and what is durable
        self._keys_under_way.update(entries.keys)
        request = asyncio.create_task(self._request(entries, numbers, told), name="entries")
        self._requests.add(request)
        request.add_done_callback(self._note_ended)
        return True

    def _fill(self) -> None:
        """Has entries wait, until there are enough for some requests."""
        waiting, rows_wanted = self._waiting, WAITING_REQUESTS * self._entries_max
        bytes_wanted = WAITING_REQUESTS * REQUEST_BYTES_MAX
        while self._batches and len(waiting) < rows_wanted and self._waiting_bytes < bytes_wanted:
            batch = self._batches.popleft()
            waiting.keys += batch.keys
            waiting.bodies += batch.bodies
            waiting.timestamps += batch.timestamps
            self._numbers += [self._taken_count] * len(batch)
            self._waiting_bytes += sum(map(len, batch.bodies))
            self._unacknowledged[self._taken_count] = len(batch)
            assert len(batch), "a batch has changes"
            self._taken_count += 1

    @property
    def _oldest_waiting(self) -> int:
        """The number of the oldest batch with entries that are in no request yet."""
        return self._numbers[0] if self._numbers else self._taken_count

    def _take(self) -> tuple[Entries, list[int]] | None:
        """The entries of the next request, in order, with the numbers of their batches; None where
        it has to wait."""
        waiting, under_way = self._waiting, self._keys_under_way
        many = len(waiting) >= self._entries_max or self._waiting_bytes > REQUEST_BYTES_MAX
        if not (many or self._may_trickle):
            return None
        places: Sequence[int] = range(min(len(waiting), self._entries_max))
        if not under_way.isdisjoint(waiting.keys[: len(places)]):
            free = (place for place, key in enumerate(waiting.keys) if key not in under_way)
            places = list(islice(free, self._entries_max))
        sizes = accumulate(len(waiting.bodies[place]) for place in places)
        count = sum(size <= REQUEST_BYTES_MAX for size in sizes)
        full = count < len(places) or count == self._entries_max
        places = places[: max(count, 1)]
        if not places or not (full or self._may_trickle):
            return None
        return self._pick(places)

    @property
    def _may_trickle(self) -> bool:
        """Whether a request that is not full may go."""
        return not self._requests and self._acknowledged_count < self._wanted_count

    def _pick(self, places: Sequence[int]) -> tuple[Entries, list[int]]:
        """Takes what waits at these places, which ascend."""
        waiting = self._waiting
        chosen = frozenset(places)
        left = [place for place in range(places[-1] + 1) if place not in chosen]
        taken = Entries(
            _taken(waiting.keys, places, left),
            _taken(waiting.bodies, places, left),
            _taken(waiting.timestamps, places, left),
        )
        self._waiting_bytes -= sum(map(len, taken.bodies))
        return taken, _taken(self._numbers, places, left)

    async def _request(self, entries: Entries, numbers: list[int], told: Told | None) -> None:
        try:
            await self._send(entries, told)
        except Exception as error:  # as in `_run`
            self._fail(error)
            return
        self._keys_under_way.difference_update(entries.keys)
        for number, count in Counter(numbers).items():
            self._unacknowledged[number] -= count
            assert self._unacknowledged[number] >= 0, number
            if not self._unacknowledged[number]:
                del self._unacknowledged[number]
        self._acknowledged.set()

    def _note_ended(self, request: asyncio.Task[None]) -> None:
        self._requests.discard(request)
        self._work.set()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._acknowledged.set()


def _taken(column: list[T], places: Sequence[int], left: Sequence[int]) -> list[T]:
    """Takes the values at `places` out of the column's front; those at `left` move together."""
    taken = [column[place] for place in places]
    column[: len(places) + len(left)] = [column[place] for place in left]
    return taken
