"""The sinkless sink: rows stream back to the one who asked for the feed.

A row is (table, key, value): the topic, and the message. A message without a value has an empty
one here, and a resolved message has a value alone. Rows wait here until they are taken, and a flush
ends when all rows before it were taken. So a consumer that is slow fills the feed's memory budget,
and the feed stops reading; the store never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import Timestamp
from ...schemafeed.table_events import TableEvent
from ..contract.changes import ChangeBatch
from ..contract.options import JOB_OPTIONS, MESSAGE_OPTIONS, PIPELINE_OPTIONS, ChangefeedOptions
from ..encode import EncodedBatch, FeedOrigin, Topics, encoder_for, schema_message
from .protocol import Sink, SinkProgress
from .transaction_sink import FramedMessage

OBEYED = (PIPELINE_OPTIONS - JOB_OPTIONS) | MESSAGE_OPTIONS | {"schema_events", "transactions"}
"""Options of a sinkless changefeed."""


class ChangefeedRow(NamedTuple):
    """One row of a sinkless changefeed. Table and key are None in a resolved message, and the key
    alone in one of a schema change."""

    table: str | None
    key: bytes | None
    value: bytes


class SinklessSink(Sink):
    """Hands rows to one consumer, in order.

    `take` and the feed run in one loop. The sink outlives the feed's attempts: what one of them
    left untaken the next one drops, since it sends all of that again. After `end`, what is left can
    still be taken.
    """

    def __init__(
        self,
        options: ChangefeedOptions,
        topics: Topics,
        origin: FeedOrigin | None = None,
    ) -> None:
        self._encoder = encoder_for(options, topics, origin)
        self._topics = topics
        self._tells_schema = options.schema_events
        self._waiting: deque[list[ChangefeedRow]] = deque()
        """Rows that are taken together."""
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._emitted_count = 0
        self._taken_count = 0
        self._ended = False

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """Drops rows that an earlier attempt left untaken: the feed sends them again."""
        self._waiting.clear()
        self._taken_count = self._emitted_count

    def emit(self, batch: ChangeBatch) -> None:
        encoded = self.encode(batch)
        rows = [
            ChangefeedRow(encoded.topic, key, value or b"")
            for key, value in zip(encoded.keys, encoded.values, strict=True)
        ]
        self._put(rows)

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        return self._encoder.encode(batch)

    def put(self, messages: Sequence[FramedMessage]) -> None:
        self._put([ChangefeedRow(*message) for message in messages])

    def change_schema(self, event: TableEvent) -> None:
        """Messages carry their own schema: those behind the event are under the new one."""
        message = schema_message(event) if self._tells_schema else None
        if message is not None:
            self._put([ChangefeedRow(self._topics.of(event.after), None, message)])

    async def flush(self, progress: SinkProgress | None) -> None:
        upto = self._emitted_count
        while self._taken_count < upto:
            self._taken.clear()
            await self._taken.wait()

    async def emit_resolved(self, resolved: Timestamp) -> None:
        self._put([ChangefeedRow(None, None, self._encoder.encode_resolved(None, resolved))])

    async def close(self) -> None:
        """An attempt is over. There may be another."""

    def end(self) -> None:
        """No attempt will follow."""
        self._ended = True
        self._arrived.set()

    @property
    def ready(self) -> bool:
        """Whether there are rows to take."""
        return bool(self._waiting)

    async def take(self) -> list[ChangefeedRow]:
        """The next rows, as they came together; an empty list when the feed has ended."""
        while not self._waiting:
            if self._ended:
                return []
            self._arrived.clear()
            await self._arrived.wait()
        rows = self._waiting.popleft()
        self._taken_count += 1
        self._taken.set()
        return rows

    def _put(self, rows: list[ChangefeedRow]) -> None:
        self._waiting.append(rows)
        self._emitted_count += 1
        self._arrived.set()
