"""The resolved timestamp of a range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from ..clock import ZERO, Timestamp, format_timestamp
from ..command import (
    AbortIntent,
    AbortTxn,
    CommitIntent,
    DeleteRangeOp,
    EngineDelete,
    EnginePut,
    LogicalOp,
    RemoveVersions,
    UpdateIntent,
    WriteIntent,
    WriteValue,
    WriteVersions,
)
from .unresolved_intents import ABORTED_INTENT, UnresolvedIntents


class ResolvedTimestamp:
    """`resolved = min(closed, oldest unresolved intent - 1)`.

    The closed timestamp says that nothing new will be written at or below it. But a feed sends a
    row when its intent becomes a version, and an intent at 100 may do so long after 100 was closed.
    So everything at or below `resolved` has been *delivered*: no new version and no intent at or
    below it is left, and none will come.

    It stays where it began until the lock table at the start index is merged (`scanned`): an intent
    that was there before the first entry is known only from the table. It begins at what an earlier
    tracker of the same range had resolved, or at ZERO. Operations before that are counted,
    in whatever order, except `AbortTxn`, which is ignored: it would forget increments whose
    decrements are still to come.

    Two things would mean that a row is lost, and are assertions: an operation at or below
    `resolved`, and a `resolved` that falls.
    """

    def __init__(self, start: Timestamp = ZERO) -> None:
        self.intents = UnresolvedIntents()
        self._closed = start
        self._resolved = start
        self._scanned = False

    @property
    def resolved(self) -> Timestamp:
        return self._resolved

    @property
    def closed(self) -> Timestamp:
        return self._closed

    @property
    def ready(self) -> bool:
        """Whether the lock table is merged."""
        return self._scanned

    def scan(self, intents: Iterable[tuple[bytes, Timestamp]]) -> None:
        """Merges a slice of the lock table, as it was at the start index.

        An intent there bears the timestamp at which it was laid, and its transaction may have been
        pushed since. One at or below where we began says only that: it cannot commit down there.
        """
        assert not self._scanned
        lowest = Timestamp(self._resolved + 1)
        for transaction_id, timestamp in intents:
            self.intents.add(transaction_id, max(timestamp, lowest), 1)

    def scanned(self) -> bool:
        """The whole lock table is merged. Returns whether `resolved` moved."""
        self.intents.scanned()
        self._scanned = True
        return self._advance()

    def close(self, closed: Timestamp) -> bool:
        """`closed` takes effect. Returns whether `resolved` moved."""
        if closed <= self._closed:
            return False
        self._closed = closed
        return self._advance()

    def consume(self, ops: Sequence[LogicalOp]) -> bool:
        """Takes one command, which is one step. Returns whether `resolved` moved.

        Resolved is computed at the end only: between two operations of a command a transaction may
        have no intents, because one operation removes what the next one writes anew.
        """
        counted = False
        for op in ops:
            if type(op) is WriteValue:
                assert op.timestamp > self._resolved, (op.timestamp, self)
            elif type(op) is WriteVersions:
                assert min(op.timestamps) > self._resolved, (min(op.timestamps), self)
            else:
                counted |= self._count(op)
        return counted and self._advance()

    def moved(self, transaction_id: bytes, timestamp: Timestamp) -> bool:
        """The transaction can only commit at or above `timestamp`. Returns whether we moved."""
        self.intents.forward(transaction_id, timestamp)
        return self._advance()

    def aborted(self, transaction_id: bytes) -> bool:
        """The transaction will never commit. Returns whether `resolved` moved."""
        if not self._scanned:
            return False
        self.intents.drop(transaction_id)
        return self._advance()

    def _count(self, op: LogicalOp) -> bool:
        match op:
            case WriteIntent():
                assert op.timestamp > self._resolved, (op.timestamp, self)
                self.intents.add(op.transaction_id, op.timestamp, len(op.keys))
            case UpdateIntent():
                self.intents.forward(op.transaction_id, op.timestamp)
            case CommitIntent():
                assert op.timestamp > self._resolved, (op.timestamp, self)
                self.intents.add(op.transaction_id, op.timestamp, -len(op.keys))
            case AbortIntent():
                self.intents.add(op.transaction_id, ABORTED_INTENT, -len(op.keys))
            case AbortTxn():
                if self._scanned:
                    self.intents.drop(op.transaction_id)
            case WriteValue() | DeleteRangeOp():
                assert op.timestamp > self._resolved, (op.timestamp, self)
                return False
            case WriteVersions() | EnginePut() | EngineDelete() | RemoveVersions():
                return False
            case _:
                assert_never(op)
        return True

    def _advance(self) -> bool:
        if not self._scanned:
            return False
        resolved = self._closed
        oldest = self.intents.oldest
        if oldest is not None and oldest <= resolved:
            resolved = Timestamp(oldest - 1)
        assert resolved >= self._resolved, (resolved, self)
        if resolved == self._resolved:
            return False
        self._resolved = resolved
        return True

    def __repr__(self) -> str:
        return (
            f"<ResolvedTimestamp {format_timestamp(self._resolved)} "
            f"closed={format_timestamp(self._closed)} {self.intents!r}>"
        )
