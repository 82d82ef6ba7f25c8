"""Transaction records: how a transaction stands, and what it holds."""

from __future__ import annotations

from enum import Enum
from weakref import ref

import msgspec

from ..clock import Timestamp
from ..locked_keys import LockedKeys
from ..transaction_modes import Isolation, Priority
from .buffer import WriteBuffer
from .intents import Intents
from .read_spans import ReadSpans


class TransactionStatus(Enum):
    PENDING = "pending"  # may still commit
    COMMITTED = "committed"  # at its write timestamp, whether its intents are resolved or not
    ABORTED = "aborted"  # will never commit; its intents are worth nothing


# By themselves, for what asks in every step: to find a member in its class takes sixteen times as
# long.
PENDING, COMMITTED = TransactionStatus.PENDING, TransactionStatus.COMMITTED


class TransactionRecord:
    """One transaction, as everybody in the process sees it.

    It reads at `read_timestamp` and will commit at `write_timestamp`, which is never below and only
    ever moves up; each value was drawn from the clock for this transaction alone. It can commit
    once the reads that it has tracked are proven for the write timestamp too (`refresh`), which
    raises the former. A serializable one tracks all of its reads.

    `sequence` counts writes, locks and savepoints, so that it orders them.

    The record in memory is what coordinator, waiters and pushers share, so it needs no latch: they
    all run on one loop. A durable record is written only by a commit whose intents do not fit the
    committing command. HAZARD: hence an intent found at start-up whose transaction has no durable
    record is an aborted one's, never one whose verdict is yet to come.
    """

    __slots__ = (
        "aborted_because",
        "buffer",
        "heartbeat_at",
        "held",
        "id",
        "intents",
        "isolation",
        "locks",
        "priority",
        "read_spans",
        "read_timestamp",
        "savepoints",
        "sequence",
        "shares",
        "status",
        "write_timestamp",
    )

    def __init__(
        self,
        transaction_id: bytes,
        timestamp: Timestamp,
        *,
        heartbeat_at: float,
        isolation: Isolation = Isolation.SERIALIZABLE,
        priority: Priority = Priority.NORMAL,
    ) -> None:
        assert len(transaction_id) == 16, transaction_id
        self.id = transaction_id
        self.isolation = isolation
        self.priority = priority
        self.status: TransactionStatus = PENDING
        self.read_timestamp = timestamp
        self.write_timestamp = timestamp
        self.heartbeat_at = heartbeat_at  # on the loop's clock
        self.held: ref[object] | None = None
        """A reference to the client's transaction: dead where that was dropped without an end."""
        self.sequence = 0
        self.aborted_because = ""
        self.read_spans = ReadSpans()
        # What nobody else sees of its writes. No key is in it and among the intents.
        self.buffer = WriteBuffer()
        self.intents = Intents()
        # Keys locked for themselves, exclusively and shared. A key may be in both, and among the
        # intents: each is taken, and given back by a savepoint, by itself.
        self.locks = LockedKeys()
        self.shares = LockedKeys()
        # The sequences of the savepoints that stand, ascending.
        self.savepoints: list[int] = []

    def move(self, timestamp: Timestamp) -> None:
        """The transaction will commit at `timestamp` or later, which was just drawn for it."""
        assert self.status is TransactionStatus.PENDING, self
        assert timestamp > self.write_timestamp, (timestamp, self.write_timestamp)
        self.write_timestamp = timestamp

    def __repr__(self) -> str:
        return (
            f"<Transaction {self.id[:4].hex()} {self.status.value} read={self.read_timestamp} "
            f"write={self.write_timestamp} buffered={len(self.buffer.written)} "
            f"intents={len(self.intents)} "
            f"locks={len(self.locks) + len(self.shares)}>"
        )


class CommitRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The durable record: the transaction committed at `timestamp`, and intents may remain."""

    timestamp: Timestamp


_decoder = msgspec.msgpack.Decoder(CommitRecord)

encode_commit_record = msgspec.msgpack.Encoder().encode


def decode_commit_record(data: bytes) -> CommitRecord:
    return _decoder.decode(data)
