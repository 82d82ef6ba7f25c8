"""The interface of a range to its range feeds, and the types that pass between them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import Protocol

import msgspec

from ..clock import Clock, Timestamp
from ..command import Command
from ..engine import Engine, Reader
from ..log import Retention
from ..metrics import Metrics
from ..settings import Settings, declare_duration
from ..span import Span
from .budget import MemoryBudget
from .scan_pace import ScanPace

TICK_INTERVAL = declare_duration(
    "kv.closed_timestamp.side_transport_interval",
    0.01,
    "how often an idle range closes timestamps and emits checkpoints",
)
"""The host calls `RangeFeeds.tick` this often. An idle range closes beside the log, not through it:
nothing is written."""


class DurableEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry of the log that is durable, as the range hands it to its feeds.

    `byte_count` is the entry's length in the log, which feeds count their buffers by. The times are
    monotonic nanoseconds; `commit_called_ns` is zero where nobody measured it.
    """

    index: int
    command: Command
    byte_count: int
    commit_called_ns: int
    appended_ns: int
    durable_ns: int


class Closing(Protocol):
    """The closing of timestamps of a range: no write will be at or below a closed one.

    Most ranges close by the store's clock (`closed_timestamp.ClosedTimestamps`), together. One
    that is part of a replica takes versions from outside, far below that, and closes by what its
    source has said (`ranges.replica.Replica`).
    """

    @property
    def store_wide(self) -> bool:
        """Whether the store's tick says a closing once for all ranges. Those of another closing
        are told by themselves, and so are always busy."""
        ...

    @property
    def durable_index(self) -> int:
        """The index up to which a reader must have seen the log before the closing takes effect."""
        ...

    def close(self) -> Timestamp:
        """Closes what can be closed now, and returns the greatest closed timestamp. Raises
        ClockStopped."""
        ...


class PushVerdict(Enum):
    """The outcome of a push."""

    MOVED = "moved"  # still running; it will commit at or above the outcome's timestamp, if ever
    COMMITTED = "committed"  # at the outcome's timestamp; its intents are being resolved
    ABORTED = "aborted"  # it will never commit; its intents are worth nothing


class PushOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a transaction, true of the range's state from log index `index` on.

    HAZARD: a feed may believe the verdict only once every entry up to `index` was delivered to it.
    Aborted may be the answer because the record is gone, and it may be gone because the
    transaction committed and was resolved in entries that the feed has not seen yet; dropping its
    intents then would resolve past rows that were never sent (CockroachDB advisory a104309).
    """

    verdict: PushVerdict
    timestamp: Timestamp
    index: int


class RangeFeedHost(Protocol):
    """A range, as its feeds see it.

    The host calls `RangeFeeds.consume` for every entry of the range, once, in log order, after
    `durable_index` has reached the entry and after `closed.entries_durable` was told; and
    `RangeFeeds.tick` every `TICK_INTERVAL`.

    What the log must hold for intents to be counted rightly, per transaction: `WriteIntent.keys`
    add, `CommitIntent.keys` and `AbortIntent.keys` take away. A transaction that writes a key
    again replaces its intent: the command then holds an `AbortIntent` of the replaced keys before
    the `WriteIntent` (an aborted intent is not an aborted transaction). A command is one step:
    nothing is resolved between its operations. An intent is never moved down.
    """

    @property
    def span(self) -> Span: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def random(self) -> Random: ...

    @property
    def engine(self) -> Engine: ...

    @property
    def closed(self) -> Closing: ...

    @property
    def applied_index(self) -> int:
        """The last entry that the engine holds; it may not be durable yet."""
        ...

    @property
    def durable_index(self) -> int: ...

    @property
    def feed_memory(self) -> MemoryBudget:
        """Shared by all feeds of the store."""
        ...

    @property
    def scan_pace(self) -> ScanPace:
        """Shared by all catch-up scans of the store's raw keyspaces."""
        ...

    @property
    def persisted_resolved(self) -> Timestamp:
        """The last argument of `persist_resolved`, crashes included; zero if it was never
        called."""
        ...

    def gc_threshold_of(self, span: Span) -> Timestamp:
        """At or below it, versions of the span's keys may be gone."""
        ...

    def feeds_changed(self) -> None:
        """Tells the host that feeds began or ended, or have come to need ticks."""
        ...

    def persist_resolved(self, resolved: Timestamp) -> None:
        """Makes the resolved timestamp a fact of the range, as of the next log index.

        It may silently not happen (the store is closing, the disk is full): nothing depends on it
        but how much the next processor has to look at.
        """
        ...

    def retain_log(self, first: int) -> Retention:
        """Keeps entry `first`, which was delivered just now, and all behind it readable."""
        ...

    def read_log(self, first: int, last: int) -> Iterator[DurableEntry]:
        """The range's entries with indexes in `[first, last]`, which are retained. Lazy."""
        ...

    def intents(self, reader: Reader, above: Timestamp) -> Iterator[tuple[bytes, Timestamp]]:
        """The transaction and timestamp of the intents in the range, one pair an intent.

        Intents of transactions that can commit at or below `above` only, and so never will, may be
        left out, all or none of a transaction. Whether to is decided in the step of the call; what
        follows is read lazily, so that a feed can scan a large lock table of a snapshot in slices.
        A timestamp may be older than what the transaction was pushed to, never newer.
        """
        ...

    async def push(self, transaction_id: bytes) -> PushOutcome:
        """Moves a running transaction's timestamp to the present, or finds out how it ended.

        Intents of a transaction that has ended are resolved on the way.
        """
        ...
