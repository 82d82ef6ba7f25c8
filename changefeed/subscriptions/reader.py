"""A client's way through a subscription: a sinkless feed from its position, read by portions."""

from __future__ import annotations

import asyncio
from collections import deque

from ..jobs.services import ChangefeedServices
from ..sinks.sinkless import ChangefeedRow
from ..streams.stream import ChangefeedStream, stream_from
from .subscription import Subscription

PORTION_BYTES_MAX = 16 * 1024 * 1024
"""Keys and values that are taken at once, where the client names no number of rows."""


class SubscriptionReader:
    """Reads on from where the subscription stood when this reader began; `close` it.

    Acknowledgements move the position, not a reader. Several readers of one subscription each get
    all rows.
    """

    def __init__(self, subscription: Subscription, user: str, stream: ChangefeedStream) -> None:
        self._of = subscription.definition.protection_id
        self._user = user
        self._stream = stream
        self._waiting: deque[ChangefeedRow] = deque()

    @classmethod
    async def open(
        cls, services: ChangefeedServices, subscription: Subscription, user: str
    ) -> SubscriptionReader:
        """Raises SQLError where the subscription has failed, or what it is to read is collected."""
        subscription.check_live()
        stream = await stream_from(
            services,
            subscription.definition.tables,
            subscription.position,
            subscription.options,
            user,
        )
        await stream.__aenter__()
        return cls(subscription, user, stream)

    def reads(self, subscription: Subscription, user: str) -> bool:
        """Whether this reader is of that subscription, and not of another one of the same name."""
        return self._of == subscription.definition.protection_id and self._user == user

    async def take(self, count: int | None, seconds: float | None) -> list[ChangefeedRow]:
        """The next rows, `count` at most: as soon as there is one, all that are there by then.
        An empty list where none has come for `seconds`. A feed that has ended raises its end,
        behind its last row, each time."""
        if not self._waiting:
            try:
                async with asyncio.timeout(seconds):
                    await self._receive()
            except TimeoutError:
                return []
        taken: list[ChangefeedRow] = []
        left = PORTION_BYTES_MAX
        while left > 0 and (count is None or len(taken) < count):
            if not self._waiting:
                if not self._stream.ready:
                    break
                await self._receive()
            row = self._waiting.popleft()
            left -= len(row.key or b"") + len(row.value)
            taken.append(row)
        return taken

    async def _receive(self) -> None:
        self._waiting.extend(await self._stream.take())

    async def close(self) -> None:
        """Ends the feed."""
        await self._stream.__aexit__()
