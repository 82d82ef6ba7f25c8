"""The sink of messages: from changes to acknowledgements.

    emit -> changes -> encoder -> lanes -> receiver
            (budget)   (window)

Changes wait as they are, charged to the feed's budget, and are encoded while fewer than
`IN_FLIGHT_BYTES` of messages wait for their acknowledgement. A message's key chooses its lane.
A receiver keeps no progress: after a failure the feed sends again what was emitted since the
progress that was saved last, so each message arrives at least once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any
from zlib import crc32

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import Timestamp
from ....kvlayer.settings import declare_bytes, declare_int
from ...contract.changes import ChangeBatch
from ...contract.sink_config import FlushConfig, RetryConfig
from ...encode import EncodedBatch, Encoder, RegisteredSchema, RegisteringEncoder, Topics
from ..protocol import Sink, SinkContext, SinkProgress
from ..registry import SchemaRegistry
from ..transaction_sink import FramedMessage
from .lane import DeliveryLane
from .retries import Retries
from .sender import BatchRefused, Message, MessageRows, Messages, MessageSender

IN_FLIGHT_BYTES = declare_bytes(
    "changefeed.sink_in_flight_bytes",
    16 * 1024 * 1024,
    "bytes of encoded messages that one changefeed may hold until its receiver acknowledges them",
)

REQUESTS = declare_int(
    "changefeed.sink_io_workers",
    8,
    "requests to its receiver that one changefeed may have under way at a time",
)


class MessageSink(Sink):
    """Feeds one receiver for one attempt of one feed.

    After a failure the sink is of no further use: each flush raises it.
    """

    def __init__(
        self,
        sender: MessageSender,
        context: SinkContext,
        encoder: Encoder,
        topics: Topics,
        *,
        flush: FlushConfig,
        retry: RetryConfig,
        requests: int | None = None,
    ) -> None:
        """`requests` may be under way at a time; None for what the setting says."""
        self._sender = sender
        self._encoder = encoder
        self._topics = topics
        self._retries = Retries(retry, context.note_trouble)
        self._bad_rows = bad_rows = context.bad_rows
        self._window_bytes = context.settings.get(IN_FLIGHT_BYTES)
        self._lanes = [
            DeliveryLane(
                sender,
                flush,
                self._retries,
                self._note_acknowledged,
                self._refuse,
                isolates=bad_rows is not None and bad_rows.isolates,
            )
            for _ in range(requests or max(1, context.settings.get(REQUESTS)))
        ]
        self._registering = encoder if isinstance(encoder, RegisteringEncoder) else None
        self._registry = (
            None
            if self._registering is None
            else SchemaRegistry.of(context.options, context.settings)
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._topic_names: tuple[str, ...] = ()
        self._waiting: deque[ChangeBatch] = deque()
        self._emitted = 0
        self._encoded = 0
        self._in_flight_bytes = 0
        self._moved = asyncio.Event()
        """Set whenever something was emitted, encoded or acknowledged, or has failed."""
        self._work = asyncio.Event()
        """Set when the encoder may find work."""
        self._failure: Exception | None = None

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        self._topic_names = tuple(dict.fromkeys(map(self._topics.of, tables)))
        await self._sender.open()
        for work in (self._encode, *(lane.run for lane in self._lanes)):
            self._tasks.append(asyncio.create_task(self._guarded(work)))

    def emit(self, batch: ChangeBatch) -> None:
        self._waiting.append(batch)
        self._emitted += 1
        self._work.set()

    async def flush(self, progress: SinkProgress | None) -> None:
        emitted = self._emitted
        await self._until(lambda: self._encoded >= emitted)
        given = [lane.given for lane in self._lanes]
        await self._until(
            lambda: all(
                lane.acknowledged >= count for lane, count in zip(self._lanes, given, strict=True)
            )
        )

    async def emit_resolved(self, resolved: Timestamp) -> None:
        by_topic = self._sender.resolved_by_topic
        topics: Sequence[str | None] = self._topic_names if by_topic else (None,)
        for topic in topics:
            if self._registering is not None:
                await self._give_ids(self._registering.resolved_schemas(topic))
            value = self._encoder.encode_resolved(topic, resolved)
            await self._retries.run(partial(self._sender.send_resolved, topic, value))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._waiting.clear()
        try:
            if self._registry is not None:
                await self._registry.close()
        finally:
            await self._sender.close()

    async def _encode(self) -> None:
        """Encodes what was emitted, one batch a turn of the loop, while there is room."""
        while True:
            while not self._waiting or self._in_flight_bytes >= self._window_bytes:
                self._work.clear()
                await self._work.wait()
            batch = self._waiting.popleft()
            if self._registering is not None:
                await self._give_ids(self._registering.schemas(batch))
            self._give(batch)
            await asyncio.sleep(0)

    async def _give_ids(self, schemas: Sequence[RegisteredSchema]) -> None:
        assert self._registry is not None, "an option of the format"
        await self._retries.run(partial(self._registry.give_ids, schemas))

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        return self._encoder.encode(batch)

    def put(self, messages: Sequence[FramedMessage]) -> None:
        """With one request at a time they arrive in this order."""
        assert len(self._lanes) == 1, len(self._lanes)
        made = [Message(topic or "", key or b"", value) for topic, key, value in messages]
        self._in_flight_bytes += self._lanes[0].put(Messages.of(made))

    def _give(self, batch: ChangeBatch) -> None:
        encoded = self.encode(batch)
        keys, values, lane_count = encoded.keys, encoded.values, len(self._lanes)
        headers = encoded.headers
        rows = MessageRows.of(batch)
        places: list[list[int]] = [[] for _ in range(lane_count)]
        for place, key in enumerate(keys):
            places[crc32(key) % lane_count].append(place)
        for lane, own in zip(self._lanes, places, strict=True):
            if own:
                messages = Messages(
                    [encoded.topic] * len(own),
                    [keys[place] for place in own],
                    [values[place] for place in own],
                    [rows] * len(own),
                    own,
                    [() if headers is None else headers[place] for place in own],
                )
                self._in_flight_bytes += lane.put(messages)
        self._encoded += 1
        self._moved.set()

    async def _refuse(self, message: Message, error: BatchRefused) -> None:
        """The receiver will never take the message. Returns when it is a dead letter; else raises
        what ends the attempt."""
        row = message.bad_row()
        if self._bad_rows is None or row is None:
            raise error
        await self._bad_rows.refuse(row, error)

    def _note_acknowledged(self, size: int) -> None:
        self._in_flight_bytes -= size
        assert self._in_flight_bytes >= 0, self._in_flight_bytes
        self._work.set()
        self._moved.set()

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Returns when `reached` says so. Raises what has failed meanwhile."""
        while True:
            if self._failure is not None:
                raise self._failure
            if reached():
                return
            self._moved.clear()
            await self._moved.wait()

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:  # whatever it was, the flush that waits for it raises it
            self._failure = self._failure or error
            self._moved.set()
