"""A range: one span of a store's keys, and what is known of it alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from .. import keys
from ..clock import ZERO, Timestamp
from ..command import (
    CommitIntent,
    DeleteRangeOp,
    EngineDelete,
    EnginePut,
    LogicalOp,
    RemoveVersions,
    WriteValue,
    WriteVersions,
    decode_command,
)
from ..engine import EngineStall, Reader
from ..errors import StoreClosed, StoreFull
from ..log import Retention
from ..mvcc import intents_in, keyspaces_in
from ..rangefeed import Closing, DurableEntry, PushOutcome, RangeFeeds
from ..span import Span
from ..txn.intents_seen import held_part
from ..txn.record import TransactionRecord
from .descriptor import RangeDescriptor, resolved_key
from .load import RangeLoad
from .parts import StoreParts
from .size import RangeSize
from .thresholds import Thresholds


class RangeOwner(Protocol):
    """The interface of the store to its ranges."""

    async def push(self, transaction_id: bytes) -> PushOutcome: ...

    def propose_plain(self, operations: Sequence[EnginePut | EngineDelete]) -> int:
        """Proposes what is no concern of feeds. Raises EngineStall, StoreFull or StoreClosed."""
        ...

    def holders_above(self, timestamp: Timestamp) -> Collection[TransactionRecord]:
        """Returns the transactions with intents that may commit above `timestamp`."""
        ...

    def gc_threshold_of(self, span: Span) -> Timestamp:
        """The greatest garbage-collection threshold of any key of the span, as of this step."""
        ...

    def feeds_changed(self, changed: Range) -> None:
        """The range has more feeds or fewer, or they wait for something new."""
        ...


class Range:
    """Serves one span: it is the `RangeFeedHost` of its feeds, and keeps its own account.

    Locks, timestamp cache and transaction records are not here but store-wide (`RangeStore`): all
    ranges run on one loop, so nothing is won by dividing them, and a deadlock across ranges is
    found as one within a range is.

    A range is never changed into another: a split or a merge makes new ranges, and this one lives
    on until the entry that ended it is consumed, and with it the last that concerns its feeds.
    """

    def __init__(
        self,
        descriptor: RangeDescriptor,
        parts: StoreParts,
        owner: RangeOwner,
        *,
        thresholds: Thresholds | None = None,
        load: RangeLoad | None = None,
        closed: Closing | None = None,
        max_timestamp: Timestamp = ZERO,
        persisted_resolved: Timestamp = ZERO,
        size: RangeSize | None = None,
    ) -> None:
        self.id = descriptor.id
        self.descriptor = descriptor
        self.span = descriptor.span
        self.clock = parts.clock
        self.settings = parts.settings
        self.metrics = parts.metrics
        self.random = parts.random
        self.engine = parts.engine
        self.closed: Closing = closed or parts.closed
        """The store's own, or that of the replica which the range is a part of."""
        self.thresholds = thresholds or Thresholds(self.span)
        self.load = load or RangeLoad(parts.random)
        self.max_timestamp = max_timestamp
        """No version of the range is above it. At least that, after a merge or a start: the
        greatest timestamp of the keyspaces that the range shares."""
        self.size = size or RangeSize()
        self.persisted_resolved = persisted_resolved
        self.feed_memory = parts.feed_memory
        self.scan_pace = parts.scan_pace
        self._log = parts.log
        self._owner = owner
        self.replaced = False
        """Set in the step that split or merged the range. Its feeds may still have entries to come,
        but nothing of it is kept any more."""
        self.feeds = RangeFeeds(self)

    # What its feeds ask.

    @property
    def applied_index(self) -> int:
        return self.engine.applied_index

    @property
    def durable_index(self) -> int:
        return self._log.durable_index

    def gc_threshold_of(self, span: Span) -> Timestamp:
        """At or below it, versions of the span's keys may be gone.

        HAZARD: the range's own `thresholds` stand still once a split or a merge has replaced it,
        and its feeds still deliver what they have buffered: what garbage collection has done since
        is known to the store alone.
        """
        return self._owner.gc_threshold_of(span)

    def intents(self, reader: Reader, above: Timestamp) -> Iterator[tuple[bytes, Timestamp]]:
        holders = self._owner.holders_above(above)
        held = held_part(self.span, holders)
        if held is None:
            return iter(())
        holder_ids = {holder.id for holder in holders}
        return (
            (intent.transaction_id, intent.timestamp)
            for _, intent in intents_in(reader, held)
            if intent.transaction_id in holder_ids
        )

    def persist_resolved(self, resolved: Timestamp) -> None:
        if self.replaced:
            return  # the name under which it is kept is another range's now
        assert resolved > self.persisted_resolved, (resolved, self.persisted_resolved)
        with suppress(EngineStall, StoreFull, StoreClosed):
            self._owner.propose_plain([EnginePut(resolved_key(self.id), keys.big_endian(resolved))])
            self.persisted_resolved = resolved

    def retain_log(self, first: int) -> Retention:
        return self._log.retain(first)

    def read_log(self, first: int, last: int) -> Iterator[DurableEntry]:
        for index, payload in self._log.read(first, last):
            part = decode_command(payload).part_of(self.id)
            if part is not None:
                yield DurableEntry(index, part, len(payload), 0, 0, 0)

    async def push(self, transaction_id: bytes) -> PushOutcome:
        return await self._owner.push(transaction_id)

    def feeds_changed(self) -> None:
        self._owner.feeds_changed(self)

    # Its account.

    def note_entry(self, operations: Sequence[LogicalOp], byte_count: int) -> None:
        """The range's part of an entry was applied, and is `byte_count` bytes of the log."""
        for op in operations:
            match op:
                case WriteValue() | CommitIntent():
                    if op.keys and op.keys[0].startswith(keys.RAW_KIND):
                        # What a raw key's leaders wrote, here or elsewhere, all lies below.
                        assert op.timestamp > self.max_timestamp, (op.timestamp, self)
                    if op.timestamp > self.max_timestamp:
                        self.max_timestamp = op.timestamp
                    if op.keys:
                        self.load.note_writes(op.keys[0], len(op.keys))
                        self.size.note_written(op.keys, byte_count)
                        byte_count = 0  # of one entry, once
                case WriteVersions():
                    self.max_timestamp = max(self.max_timestamp, *op.timestamps)
                    self.load.note_writes(op.keys[0], len(op.keys))
                    self.size.note_written(op.keys, byte_count)
                    byte_count = 0
                case DeleteRangeOp():
                    self.max_timestamp = max(self.max_timestamp, op.timestamp)
                case RemoveVersions():
                    self.size.note_removed(len(op.keys))
                case _:
                    pass

    def __repr__(self) -> str:
        return f"<Range {self.id} {self.span} {self.size!r} {self.feeds!r}>"


def greatest_timestamp(reader: Reader, span: Span) -> Timestamp:
    """A bound on the versions of the span's keys that are above its garbage-collection threshold:
    the newest of the keyspaces they lie in."""
    greatest = reader.range_tombstones.last
    for keyspace in keyspaces_in(reader, span, keys.TIME_INDEX):
        bounds = keys.time_index_bounds(keyspace, ZERO, Timestamp((1 << 63) - 2))
        newest = next(iter(reader.scan(*bounds, reverse=True)), None)
        if newest is not None:
            greatest = max(greatest, keys.split_time_index_key(newest[0])[1])
    return greatest
