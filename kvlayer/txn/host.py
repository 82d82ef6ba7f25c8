"""The interface of ranges to the transactions that read and write them."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from ..access import Release
from ..clock import Clock, Timestamp
from ..closed_timestamp import ClosedTimestamps
from ..command import LogicalOp
from ..engine import Engine
from ..metrics import Metrics
from ..settings import Settings
from ..span import Span
from .locks import LockTable
from .record import TransactionRecord
from .timestamp_cache import TimestampCache


class TransactionHost(Protocol):
    """All ranges of a store, as its transactions see them. All of it is called on the loop."""

    @property
    def clock(self) -> Clock: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def closed(self) -> ClosedTimestamps: ...
    @property
    def locks(self) -> LockTable: ...
    @property
    def timestamp_cache(self) -> TimestampCache: ...

    @property
    def greatest_threshold(self) -> Timestamp:
        """The greatest garbage-collection threshold of any key."""
        ...

    @property
    def applied_index(self) -> int:
        """The last entry that is applied."""
        ...

    @property
    def visible_index(self) -> int:
        """The last entry that a read in this step sees anything of: not those of intents alone,
        which are nobody's but their transaction's until its commit."""
        ...

    @property
    def all_durable(self) -> bool:
        """Whether every commit is durable."""
        ...

    def undurable(self, at: Timestamp) -> int | None:
        """The entry that must be durable before a version of timestamp `at` may leave, if one
        must."""
        ...

    def check_open(self) -> None:
        """Raises StoreClosed, with the reason, once nothing can be done any more."""
        ...

    def check_readable(self, where: Span | bytes, at: Timestamp) -> None:
        """Raises BatchTimestampBeforeGC when versions of the span's keys (or of one key) that are
        seen at `at` may be gone."""
        ...

    def point_read(self, key: bytes, at: Timestamp, reader: TransactionRecord | None) -> None:
        """From this step on no transaction other than `reader` writes the key at or below `at`."""
        ...

    def points_read(
        self, keys: Sequence[bytes], at: Timestamp, reader: TransactionRecord | None
    ) -> None:
        """The same, for several keys."""
        ...

    def span_read(self, span: Span, at: Timestamp, reader: TransactionRecord | None) -> None:
        """The same, for every key of a span."""
        ...

    def propose(
        self,
        operations: Sequence[LogicalOp],
        *,
        lowest: Timestamp | None = None,
        commit_called_ns: int = 0,
        provisional: bool = False,
    ) -> int:
        """Applies and appends a command in this step, and returns its index.

        `lowest` is the lowest timestamp of the versions and intents that are new with it.
        `provisional` are the intents of a transaction that goes on: they are seen by no read of
        another, and are made durable when somebody waits for what comes behind them, or soon.
        Raises EngineStall or StoreClosed, having changed nothing.
        """
        ...

    async def released(self, index: int) -> None:
        """Returns when what was seen of the entries up to `index` may leave: when it is durable."""
        ...

    def release(self, index: int) -> Release | None:
        """The registration of a callback for the moment when `released` would return, or raise;
        None where that is so already. It is called as the last thing of its step, for it may call
        back."""
        ...

    def serve_alone(self, alone: bool) -> None:
        """Says whether one client alone asks, and waits for each answer."""
        ...

    def committed(self, at: Timestamp, index: int) -> None:
        """A transaction committed at `at`, by the entry at `index`. Asserts that no other did."""
        ...

    def ended(self, record: TransactionRecord, index: int) -> None:
        """The transaction has ended, and the entry at `index` resolved the last of its intents."""
        ...

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` to its end, which `close` waits for."""
        ...
