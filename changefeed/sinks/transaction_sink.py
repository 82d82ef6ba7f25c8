"""A sink of messages that shows whole transactions: it stands before one for an attempt of a feed.

    emitted     orders 1@10  orders 2@30  | refunds 7@10
    resolved    20
    shown       BEGIN 10, orders 1, refunds 7, END 10 {orders: 1, refunds: 1}
    held        orders 2@30

Rows of all tables wait (`HeldMessages`) until the feed has resolved their timestamp, and are shown
in the order of their commits. The rows of an initial scan are of no transaction: they stand between
them, and so does what is shown again below what was shown. The pipeline's progress never passes
what is held (`FeedProgress.whole_transactions`), so another attempt begins below it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.process.offload import Offload
from ..contract.changes import ChangeBatch
from ..contract.message_form import Envelope
from ..encode import EncodedBatch, begin_message, end_message
from .held_rows import APART, COMMIT_TIMESTAMP, KEY, ROW_KEY, TOPIC, VALUE, Cut, HeldMessages
from .protocol import Sink, SinkProgress, SinkStand

SLICE_MESSAGES = 500
"""Messages handed on in one step of the loop. The next step waits until they were taken."""

PART_BYTES = 8 << 20
"""About so much of what is due is in memory at a time, where it came in the order of commits."""

FramedMessage = tuple[str | None, bytes | None, bytes]
"""A topic, a key and a value; the value alone where it is of no row."""


@runtime_checkable
class FramingSink(Sink, Protocol):
    """A sink that keeps the order of its messages, whatever tables they are of."""

    def encode(self, batch: ChangeBatch) -> EncodedBatch: ...

    def put(self, messages: Sequence[FramedMessage]) -> None:
        """Messages behind all others. A flush returns when they are where they belong."""
        ...


class TransactionSink(Sink):
    """Feeds `sink`. After a failure it is of no further use."""

    def __init__(
        self,
        sink: FramingSink,
        envelope: Envelope,
        *,
        offload: Offload,
        known: SinkProgress | None,
    ) -> None:
        """`known` is where the feed stands."""
        self._sink = sink
        self._envelope = envelope
        self._lane = offload.lane("held-transactions")
        self._held = HeldMessages(self._lane)
        self._pending: list[ChangeBatch] = []
        self._shown = Cut([], outside=ZERO) if known is None else _cut(known, outside=ZERO)
        self._turn = asyncio.Lock()
        """A resolved message may be due while a flush runs: it stands in no transaction."""

    async def stand(self) -> SinkStand | None:
        return await self._sink.stand()

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        await self._sink.open(tables)

    def emit(self, batch: ChangeBatch) -> None:
        self._pending.append(batch)

    async def flush(self, progress: SinkProgress | None) -> None:
        batches, self._pending = self._pending, []
        for batch in batches:
            await self._held.add(batch, self._sink.encode(batch), self._shown)
        if progress is not None:
            async with self._turn:
                await self._show(_cut(progress, outside=progress.resolved))
            self._shown = _cut(progress, outside=ZERO)

    async def emit_resolved(self, resolved: Timestamp) -> None:
        async with self._turn:
            await self._sink.emit_resolved(resolved)

    async def close(self) -> None:
        self._pending.clear()
        await self._sink.close()
        await self._held.close()
        self._lane.close()

    async def _show(self, cut: Cut) -> None:
        for upto in self._held.parts(cut, PART_BYTES):
            part = cut.upto(upto)
            await self._show_part(part)
            await self._held.drop(part)

    async def _show_part(self, part: Cut) -> None:
        """The rows of a part are sorted in memory, unless they are of one transaction: that may be
        larger than any memory, and goes through batch by batch."""
        frames = _Frames(self._envelope)
        first, last = self._held.bounds(part)
        if first < last:
            await self._put(frames, await self._held.in_order(part))
        else:
            for apart in (True, False):
                async for rows in self._held.take(part):
                    await self._put(
                        frames, rows.filter(pc.equal(rows.column(APART), pa.scalar(apart)))
                    )
        await self._deliver(frames.end())

    async def _put(self, frames: _Frames, rows: pa.Table) -> None:
        for start in range(0, rows.num_rows, SLICE_MESSAGES):
            await self._deliver(frames.messages(rows.slice(start, SLICE_MESSAGES)))

    async def _deliver(self, messages: Sequence[FramedMessage]) -> None:
        if messages:
            self._sink.put(messages)
            await self._sink.flush(None)


class _Frames:
    """Puts begin and end around rows in the order of their commits. A change that came twice is
    shown once."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._at: Timestamp | None = None
        self._counts: Counter[str] = Counter()
        self._seen: set[bytes] = set()

    def messages(self, rows: pa.Table) -> list[FramedMessage]:
        columns = (TOPIC, KEY, VALUE, ROW_KEY, COMMIT_TIMESTAMP, APART)
        found: list[FramedMessage] = []
        for topic, key, value, row_key, at, apart in zip(
            *(rows.column(name).to_pylist() for name in columns), strict=True
        ):
            if apart:
                found += [*self.end(), (topic, key, value or b"")]
                continue
            if at != self._at:
                assert self._at is None or at > self._at, (self._at, at)
                found += [*self.end(), (None, None, begin_message(self._envelope, at))]
                self._at = at
            if row_key not in self._seen:
                self._seen.add(row_key)
                self._counts[topic] += 1
                found.append((topic, key, value or b""))
        return found

    def end(self) -> list[FramedMessage]:
        """The end of a transaction that was begun."""
        if self._at is None:
            return []
        message = end_message(self._envelope, self._at, self._counts)
        self._at = None
        self._counts.clear()
        self._seen.clear()
        return [(None, None, message)]


def _cut(progress: SinkProgress, *, outside: Timestamp) -> Cut:
    return Cut(progress.frontier, outside=outside)
