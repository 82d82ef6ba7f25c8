"""The errors of the KV layer: whose fault, and whether to try again.

The class says what to do; the message names the thing and what was wrong with it.
"""

from __future__ import annotations

from enum import Enum

from ..error import Error
from .timestamp import Timestamp, format_timestamp


class KVError(Error):
    """Root of the KV layer's errors."""


class TakesWaiting(Exception):
    """A read or a write that was to be done at once would have to wait, and was not done. Its
    caller does it in a way that waits: nobody else hears of it."""


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
        self.seconds = seconds


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
        self.commit = commit
        self.deadline = deadline


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
    """The store has ended, and nothing can be asked of it any more; the message says why."""


class StoreFull(KVError):
    """The disk has no room for what is written, in the log or in the engine; nothing was changed.

    Reads go on, and writes do when there is room.
    """


class StoreUnreachable(RetryableTransaction):
    """The process that serves the store does not answer, and has not done what it was asked."""


class OutcomeUnknown(KVError):
    """The connection to the store was lost while a commit was under way: it may have happened."""


class ClockStopped(KVError):
    """The clock's bound cannot be made durable, so no timestamp may be handed out.

    Its cause is what the disk said; a later draw tries again.
    """


class OracleAway(KVError):
    """The store takes its time from an oracle, of which it has heard nothing, or for too long: raw
    writes are refused until it answers (57P03)."""


class NotLeader(KVError):
    """Another store leads the keyspace, or will in a moment; the message says where to go. The
    write was not done, and may be tried there (57P03)."""


class FollowerAway(KVError):
    """The store that is to lead a keyspace does not answer, or does not catch up, or refuses; the
    message says which. The keyspace stays where it is (55000)."""


class ReadConflict(KVError):
    """A read asked not to wait met another transaction's intent."""


class RangeRefused(KVError):
    """A split or a merge that cannot be done: the key is none of the store's, or there is no such
    range."""


class FeedReaction(Enum):
    """The reaction of a range feed's client to the feed's end."""

    RETRY = "start again"  # from the last checkpoint, on the same span
    DIVIDE = "divide the span anew"  # the ranges have changed; then start each part again
    WAIT = "start again later"  # the cause needs time to go away
    FAIL = "give up"  # what is missing will not come back: the feed's owner must know


class FeedEnd(Enum):
    """The end of a range feed, and what its client does.

    The reasons are those of CockroachDB (`RangeFeedRetryError`, and the errors that its client
    knows), so that who knows them there knows them here. Some cannot occur in a store that is one
    replica on one node; they stand here, each with why, so that the table is whole and a store of
    several nodes adds no new kind of end.
    """

    SLOW_CONSUMER = "slow consumer", FeedReaction.RETRY
    RANGEFEED_CLOSED = "range feed closed", FeedReaction.RETRY
    # A range that has ended by a split at a key that load or size chose, or that somebody named.
    RANGE_SPLIT = "range split", FeedReaction.DIVIDE
    MANUAL_RANGE_SPLIT = "range split by hand", FeedReaction.DIVIDE
    RANGE_MERGED = "range merged", FeedReaction.DIVIDE
    # No one range holds the whole span: it was divided before a split or a merge.
    RANGE_KEY_MISMATCH = "the span is not within one range", FeedReaction.DIVIDE
    RANGE_NOT_FOUND = "no such range", FeedReaction.DIVIDE
    # The bound of the unresolved-intent queue.
    UNRESOLVED_INTENTS = "too many unresolved transactions", FeedReaction.WAIT
    # Raised as BatchTimestampBeforeGC.
    BATCH_TIMESTAMP_BEFORE_GC = "start below the garbage collection threshold", FeedReaction.FAIL

    # Cannot occur: a store is the only replica of its ranges, and keeps them while it lives.
    REPLICA_REMOVED = "replica removed", FeedReaction.RETRY
    # Cannot occur: no replica is brought up to date by a snapshot instead of by entries.
    RAFT_SNAPSHOT = "replica overtaken by a snapshot", FeedReaction.RETRY
    # Cannot occur: the engine batch is made from the logical operations, so none lacks them.
    LOGICAL_OPS_MISSING = "entry without logical operations", FeedReaction.RETRY
    # Cannot occur: a store leads all its ranges; one that has failed raises StoreClosed.
    NO_LEASEHOLDER = "no leaseholder", FeedReaction.DIVIDE
    # Cannot occur: there is one store. A client of another process's store sees StoreClosed.
    STORE_NOT_FOUND = "store not found", FeedReaction.RETRY
    NODE_UNAVAILABLE = "node unavailable", FeedReaction.RETRY
    # Cannot occur: history is only ever removed below the threshold, by garbage collection.
    MVCC_HISTORY_MUTATION = "history was rewritten", FeedReaction.FAIL

    reaction: FeedReaction

    def __new__(cls, text: str, reaction: FeedReaction) -> FeedEnd:
        member = object.__new__(cls)
        member._value_ = text
        member.reaction = reaction
        return member


class RangeFeedEnded(KVError):
    """A range feed ended for a reason that its client can act on."""

    def __init__(self, reason: FeedEnd, detail: str = "") -> None:
        super().__init__(reason.value + (f": {detail}" if detail else ""))
        self.reason = reason
