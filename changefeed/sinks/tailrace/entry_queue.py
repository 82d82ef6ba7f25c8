"""The queue of entries on their way to a replica.

    put  ->  | a3 b2 c1 a2 |  ->  [a1 b1]  [d1 e1]  ->  replica
               wait               under way, until acknowledged

A request takes the oldest entries of keys that are not under way, as many as it may hold. One that
would not be full waits until none is under way: a trickle costs one request for each way there and
back, and a backlog has as many under way as there may be.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import NamedTuple

from ...contract.changes import ChangeBatch

REQUEST_BYTES_MAX = 1024 * 1024
"""Of a request with several entries: the target decodes it in one step of its loop."""

WAITING_REQUESTS = 2
"""Requests whose entries wait encoded: where keys of the first are under way, the second goes."""


class _Entry(NamedTuple):
    """An encoded entry. `batch` is the number of the batch that it was put with."""

    key: bytes
    message: bytes
    batch: int


class EntryQueue:
    """Encodes batches when requests want their entries, and sends these.

    Promises: no key is in two requests at once, and the entries of a key are sent in the order in
    which they were put. After a failure the queue is of no further use: `acknowledged` raises it.
    """

    def __init__(
        self,
        encode: Callable[[ChangeBatch], Sequence[tuple[bytes, bytes]]],
        send: Callable[[Sequence[bytes]], Awaitable[None]],
        *,
        requests_max: int,
        entries_max: int,
    ) -> None:
        """`encode` returns a key and a message for each change. `send` returns when its messages
        are durable."""
        self._encode = encode
        self._send = send
        self._requests_max = requests_max
        self._entries_max = entries_max
        self._batches: deque[ChangeBatch] = deque()
        self._waiting: list[_Entry] = []
        self._waiting_bytes = 0
        self._keys_under_way: set[bytes] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._put_count = 0
        self._encoded_count = 0
        self._unacknowledged: dict[int, int] = {}
        """How many entries of each encoded batch, the oldest batch first."""
        self._work = asyncio.Event()
        """Set when something was put, or a request has ended."""
        self._acknowledged = asyncio.Event()
        """Set when a batch was acknowledged, or something has failed."""
        self._failure: Exception | None = None
        self._task = asyncio.create_task(self._run(), name="entry queue")

    def put(self, batch: ChangeBatch) -> None:
        self._batches.append(batch)
        self._put_count += 1
        self._work.set()

    async def acknowledged(self) -> None:
        """Returns when all that was put before the call is durable. Raises what has failed."""
        put = self._put_count
        while self._failure is None and self._acknowledged_count < put:
            self._acknowledged.clear()
            await self._acknowledged.wait()
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        tasks = (self._task, *self._requests)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._batches.clear()

    @property
    def _acknowledged_count(self) -> int:
        """Batches, counted from the first, that are durable without a gap."""
        return next(iter(self._unacknowledged), self._encoded_count)

    async def _run(self) -> None:
        """Keeps requests under way, encoding one batch a turn of the loop."""
        try:
            while True:
                self._request_all()
                if self._batches and not self._enough:
                    self._encode_next()
                    await asyncio.sleep(0)
                else:
                    self._work.clear()
                    await self._work.wait()
        except Exception as error:  # whatever it was, who waits for the entries raises it
            self._fail(error)

    @property
    def _enough(self) -> bool:
        """Whether requests have entries to take, were they to take them now."""
        return (
            len(self._waiting) >= WAITING_REQUESTS * self._entries_max
            or self._waiting_bytes >= WAITING_REQUESTS * REQUEST_BYTES_MAX
        )

    def _encode_next(self) -> None:
        number = self._encoded_count
        entries = [_Entry(*entry, number) for entry in self._encode(self._batches.popleft())]
        self._waiting += entries
        self._waiting_bytes += sum(len(entry.message) for entry in entries)
        assert entries, "a batch has changes"
        self._unacknowledged[number] = len(entries)
        self._encoded_count += 1

    def _request_all(self) -> None:
        """Begins as many requests as may be."""
        while len(self._requests) < self._requests_max and (entries := self._take()):
            self._keys_under_way.update(entry.key for entry in entries)
            request = asyncio.create_task(self._request(entries), name="entries")
            self._requests.add(request)
            request.add_done_callback(self._note_ended)

    def _take(self) -> list[_Entry]:
        """The entries of the next request, in order; empty where it has to wait."""
        waiting, under_way = self._waiting, self._keys_under_way
        free = (place for place, entry in enumerate(waiting) if entry.key not in under_way)
        places = list(islice(free, self._entries_max + 1))
        count = size = 0
        for place in places[: self._entries_max]:
            size += len(waiting[place].message)
            if count and size > REQUEST_BYTES_MAX:
                size -= len(waiting[place].message)
                break
            count += 1
        full = count == self._entries_max or count < len(places)
        if not count or not (full or self._may_trickle):
            return []
        taken = frozenset(places[:count])
        upto = places[count - 1] + 1
        entries = [waiting[place] for place in places[:count]]
        waiting[:upto] = [waiting[place] for place in range(upto) if place not in taken]
        self._waiting_bytes -= size
        return entries

    @property
    def _may_trickle(self) -> bool:
        """Whether a request that is not full may go: none is under way, nor can it be fuller."""
        return not self._requests and (self._enough or not self._batches)

    async def _request(self, entries: Sequence[_Entry]) -> None:
        try:
            await self._send([entry.message for entry in entries])
        except Exception as error:  # as in `_run`
            self._fail(error)
            return
        self._keys_under_way.difference_update([entry.key for entry in entries])
        for batch, count in Counter(entry.batch for entry in entries).items():
            self._unacknowledged[batch] -= count
            assert self._unacknowledged[batch] >= 0, batch
            if not self._unacknowledged[batch]:
                del self._unacknowledged[batch]
        self._acknowledged.set()

    def _note_ended(self, request: asyncio.Task[None]) -> None:
        self._requests.discard(request)
        self._work.set()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._acknowledged.set()
