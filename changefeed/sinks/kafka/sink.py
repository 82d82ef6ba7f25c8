"""The sink of Kafka with `exactly_once`: rows and progress in one transaction.

    emit          a@10  b@20              c@30  d@50
    flush         progress to 20          progress to 40
    transaction   a b, progress 20        c, progress 40        d waits

A transaction holds all changes up to where the feed has come and nothing above it; those wait
(`HeldMessages`). The feed that begins again does so there, so what comes again was not committed,
and who reads what is committed sees each change once, whatever was killed when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import ZERO, Timestamp
from ...contract.changes import ChangeBatch
from ...encode import Encoder, Topics
from ..delivery import Message, Messages
from ..held_rows import (
    KEY,
    MEMORY_BYTES_MAX,
    TOPIC,
    VALUE,
    Cut,
    HeldMessages,
)
from ..protocol import Sink, SinkContext, SinkProgress, SinkRefused, SinkStand
from .progress_topic import ProgressTopic
from .transactions import TransactionalSender

SLICE_MESSAGES = 1000
"""Messages handed to librdkafka in one step of the loop."""


class TransactionalSink(Sink):
    """Feeds Kafka for one attempt of one feed. After a failure the sink is of no further use."""

    def __init__(
        self,
        sender: TransactionalSender,
        progress: ProgressTopic,
        context: SinkContext,
        encoder: Encoder,
        topics: Topics,
    ) -> None:
        self._sender = sender
        self._progress = progress
        self._encoder = encoder
        self._topics = topics
        self._known = context.known
        self._position = context.position
        self._lane = context.offload.lane("kafka-held")
        self._topic_names: tuple[str, ...] = ()
        self._pending: list[ChangeBatch] = []
        self._held: dict[int, HeldMessages] = {}
        """By table: the tables of a feed come on at different paces."""
        self._cut = Cut([], outside=ZERO)
        """The frontier of the committed transactions, key by key."""
        self._transactions = asyncio.Lock()
        """A producer has one under way: a resolved record may be due while a flush runs."""

    async def stand(self) -> SinkStand | None:
        await self._sender.open()
        with self._sender.telling(f"topic {self._progress.name}"):
            stand = await self._progress.read()
        if stand is not None:
            self._cut = Cut(stand.progress.frontier, outside=ZERO)
        elif self._known is not None:
            raise SinkRefused(
                f"the topic {self._progress.name} no longer tells how far the changefeed has come: "
                "create the changefeed again, with a cursor where this one is resolved"
            )
        return stand

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        self._topic_names = tuple(dict.fromkeys(map(self._topics.of, tables)))
        each_bytes = MEMORY_BYTES_MAX // max(1, len(tables))
        self._held = {table.id: HeldMessages(self._lane, each_bytes) for table in tables}

    def emit(self, batch: ChangeBatch) -> None:
        self._pending.append(batch)

    async def flush(self, progress: SinkProgress | None) -> None:
        batches, self._pending = self._pending, []
        for batch in batches:
            held = self._held[batch.descriptor.id]
            await held.add(batch, self._encoder.encode(batch), self._cut)
        if progress is not None:
            # Rows of a backfill wait until it has ended: another attempt begins with it again.
            await self._commit(
                SinkStand(progress=replace(progress, backfills=()), position=self._position())
            )

    async def emit_resolved(self, resolved: Timestamp) -> None:
        async def sends() -> None:
            for topic in self._topic_names:
                value = self._encoder.encode_resolved(topic, resolved)
                await self._sender.send_resolved(topic, value)

        async with self._transactions:
            await self._sender.commit(sends)

    async def close(self) -> None:
        self._pending.clear()
        await self._sender.close()
        await self._progress.close()
        for held in self._held.values():
            await held.close()
        self._lane.close()

    async def _commit(self, stand: SinkStand) -> None:
        progress = stand.progress
        cut = Cut(progress.frontier)

        async def sends() -> None:
            for held in filter(None, self._held.values()):
                async for rows in held.take_once(cut):
                    for messages in _slices(rows):
                        await self._sender.send(messages)
            await self._sender.send(Messages.of([self._progress.record(stand)]))

        async with self._transactions:
            await self._sender.commit(sends)
        for held in filter(None, self._held.values()):
            await held.drop(cut)
        self._cut = Cut(progress.frontier, outside=ZERO)


def _slices(rows: pa.Table) -> Iterator[Messages]:
    for start in range(0, rows.num_rows, SLICE_MESSAGES):
        columns = rows.slice(start, SLICE_MESSAGES)
        parts = (columns.column(name).to_pylist() for name in (TOPIC, KEY, VALUE))
        yield Messages.of(Message(*message) for message in zip(*parts, strict=True))
