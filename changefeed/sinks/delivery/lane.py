"""A lane: the messages of some keys, sent one batch at a time.

    put  ->  | a3 b2 c1 |  batch [a1 a2 b1]  ->  receiver
              pending       under way, until acknowledged

A key belongs to one lane, so that no two batches of it are ever under way together. A batch that
failed is sent again, and nothing of the lane goes before it. One that the receiver refuses for what
it holds goes in halves, down to the message that is why; what becomes of that one is the feed's to
say, and the lane goes on when that is settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice

from ...contract.sink_config import FlushConfig
from .retries import Retries
from .sender import BatchRefused, Message, Messages, MessageSender, size_of

BATCH_MESSAGES_MAX = 1_000
BATCH_BYTES_MAX = 1024 * 1024
"""The size of a batch where the feed's options do not say: what receivers commonly take."""


class DeliveryLane:
    """Counts what it was given and what was acknowledged, or settled by `refuse`: who compares both
    knows what is durable. `on_acknowledged` is told the bytes of each batch, as `size_of` counts
    them. With `isolates` the message that a batch is refused for is found."""

    def __init__(
        self,
        sender: MessageSender,
        flush: FlushConfig,
        retries: Retries,
        on_acknowledged: Callable[[int], None],
        refuse: Callable[[Message, BatchRefused], Awaitable[None]],
        *,
        isolates: bool,
    ) -> None:
        self._sender = sender
        self._flush = flush
        self._retries = retries
        self._on_acknowledged = on_acknowledged
        self._refuse = refuse
        self._isolates = isolates
        self._messages_max = flush.messages_max or flush.messages or BATCH_MESSAGES_MAX
        self._messages_wanted = flush.messages or self._messages_max
        self._bytes_max = flush.bytes or BATCH_BYTES_MAX
        self._pending = Messages()
        self._sizes: list[int] = []
        """The size of each pending message."""
        self._pending_bytes = 0
        self._arrived = asyncio.Event()
        self.given = 0
        self.acknowledged = 0

    def put(self, messages: Messages) -> int:
        """Takes messages, at least one, and returns their size."""
        sizes = list(map(size_of, messages.keys, messages.values, messages.headers))
        size = sum(sizes)
        self._pending.extend(messages)
        self._sizes.extend(sizes)
        self._pending_bytes += size
        self.given += len(messages)
        self._arrived.set()
        return size

    async def run(self) -> None:
        """Sends batches until it is cancelled. Raises SinkError when a batch was sent as often as
        it may be, and what the sender raises otherwise."""
        while True:
            await self._due()
            batch, size = self._take()
            await self._deliver(batch)
            self.acknowledged += len(batch)
            assert self.acknowledged <= self.given, (self.acknowledged, self.given)
            self._on_acknowledged(size)

    async def _deliver(self, batch: Messages) -> None:
        """Returns when the receiver has acknowledged every message, but for such as it will never
        take, of which `refuse` has returned. Batches behind one that is too large are smaller."""
        try:
            await self._retries.run(partial(self._sender.send, batch))
        except BatchRefused as refused:
            if len(batch) == 1:
                await self._refuse(next(iter(batch)), refused)
                return
            if not (refused.too_large or self._isolates):
                raise
            if refused.too_large:
                size = sum(map(size_of, batch.keys, batch.values, batch.headers))
                self._bytes_max = min(self._bytes_max, size // 2)
            middle = len(batch) // 2
            await self._deliver(batch[:middle])
            await self._deliver(batch[middle:])

    async def _due(self) -> None:
        """Returns when a batch is to be sent."""
        while not self._pending:
            self._arrived.clear()
            await self._arrived.wait()
        if not self._flush.gathers:
            return
        try:
            async with asyncio.timeout(self._flush.frequency):
                while not self._full:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            pass

    @property
    def _full(self) -> bool:
        return len(self._pending) >= self._messages_wanted or self._pending_bytes >= self._bytes_max

    def _take(self) -> tuple[Messages, int]:
        """The next batch, and its bytes: the oldest messages, at least one."""
        count = size = 0
        for each in islice(self._sizes, self._messages_max):
            if count and size + each > self._bytes_max:
                break
            count += 1
            size += each
        del self._sizes[:count]
        self._pending_bytes -= size
        return self._pending.take(count), size
