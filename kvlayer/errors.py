"""The errors of the KV layer: whose fault, and whether to try again.

The class says what to do; the message names the thing and what was wrong with it.
"""

from __future__ import annotations

from enum import Enum

from .clock import Timestamp, format_timestamp


class KVError(Exception):
    """Root of the KV layer's errors."""


class RetryableTransaction(KVError):
    """The transaction cannot commit as it stands, and would if it were run again (40001)."""


class TransactionAborted(RetryableTransaction):
    """Somebody pushed the transaction out of the way, or it stopped heartbeating."""


class WriteConflict(RetryableTransaction):
    """A key that the transaction writes or locks has a version newer than what it reads.

    Under READ COMMITTED its coordinator looks again; under REPEATABLE READ the first committer has
    won (40001).
    """

    def __init__(self, key: bytes) -> None:
        super().__init__(f"key {key.hex()} was changed by a transaction that committed since")
        self.key = key


class Deadlock(RetryableTransaction):
    """The transaction waits for one that waits for it (40P01)."""


class LockTimeout(KVError):
    """Another transaction held the key for longer than the lock timeout (55P03)."""

    def __init__(self, key: bytes, holder: bytes, seconds: float) -> None:
        super().__init__(
            f"key {key.hex()} is held by transaction {holder.hex()} for more than {seconds:g} s"
        )
        self.key = key
        self.holder = holder


class LockUnavailable(KVError):
    """Another transaction holds the key, and the caller asked not to wait for it (55P03)."""

    def __init__(self, key: bytes) -> None:
        super().__init__(f"key {key.hex()} is held by another transaction")
        self.key = key


class TransactionState(KVError):
    """The transaction is already committed, rolled back, or read-only: a caller's mistake."""


class DeadlineExceeded(RetryableTransaction):
    """The commit timestamp is at or above the deadline that the transaction's leases set."""

    def __init__(self, commit: Timestamp, deadline: Timestamp) -> None:
        super().__init__(
            f"commit at {format_timestamp(commit)} is not below the leases' deadline "
            f"{format_timestamp(deadline)}"
        )


class BatchTimestampBeforeGC(KVError):
    """A read or a feed starts at or below the garbage-collection threshold."""

    def __init__(self, ts: Timestamp, threshold: Timestamp) -> None:
        super().__init__(
            f"timestamp {format_timestamp(ts)} is at or below the garbage collection threshold "
            f"{format_timestamp(threshold)}"
        )
        self.timestamp = ts
        self.threshold = threshold


class KeyTooLarge(KVError):
    """A key or a value is over the documented limit (54000)."""


class StoreClosed(KVError):
    """The store is shut or has stopped accepting writes; the message says why."""


class ReadConflict(KVError):
    """A read asked not to wait met another transaction's intent."""


class FeedEnd(Enum):
    """Why a range feed ended. Reference table 4.8; the client's reaction stands beside each."""

    SLOW_CONSUMER = "slow consumer"  # start again from the last checkpoint
    RANGE_SPLIT = "range split"  # divide the span anew, start again
    RANGE_MERGED = "range merged"  # divide the span anew, start again
    RANGEFEED_CLOSED = "range feed closed"  # start again
    UNRESOLVED_INTENTS = "too many unresolved transactions"  # start again, later


class RangeFeedEnded(KVError):
    """A range feed ended for a reason that its client can act on."""

    def __init__(self, reason: FeedEnd, detail: str = "") -> None:
        super().__init__(reason.value + (f": {detail}" if detail else ""))
        self.reason = reason
