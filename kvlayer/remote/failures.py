"""Errors of the KV layer on their way to another process.

An error arrives as what it was, made anew from its fields; one without an entry here arrives as a
KVError with its text. That the store is closed means to a distant node only that it cannot be
reached now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..clock import Timestamp
from ..engine import EngineDamaged, EngineFailed
from ..errors import (
    BatchTimestampBeforeGC,
    ClockStopped,
    DeadlineExceeded,
    Deadlock,
    FeedEnd,
    FollowerAway,
    KeyTooLarge,
    KVError,
    LockTimeout,
    LockUnavailable,
    NotLeader,
    OracleAway,
    OutcomeUnknown,
    RangeFeedEnded,
    RangeRefused,
    ReadConflict,
    RetryableTransaction,
    StoreClosed,
    StoreFull,
    StoreUnreachable,
    TransactionAborted,
    TransactionState,
    WriteConflict,
)
from ..protected_timestamp import ProtectionRefused
from ..raw.entry import EntryUnreadable
from ..replication.replica import ReplicaRefused
from .messages import Failure

_TEXT_ONLY: tuple[type[KVError], ...] = (
    RetryableTransaction,
    TransactionAborted,
    Deadlock,
    TransactionState,
    KeyTooLarge,
    ReadConflict,
    ClockStopped,
    StoreFull,
    NotLeader,
    OracleAway,
    OutcomeUnknown,
    FollowerAway,
    RangeRefused,
    ReplicaRefused,
    EntryUnreadable,
    EngineDamaged,
    EngineFailed,
    KVError,
)
_BY_TEXT = {kind.__name__: kind for kind in _TEXT_ONLY}

_MAKERS: dict[str, Callable[..., KVError]] = {
    "DeadlineExceeded": lambda commit, deadline: DeadlineExceeded(commit, deadline),
    "BatchTimestampBeforeGC": lambda ts, threshold: BatchTimestampBeforeGC(ts, threshold),
    "ProtectionRefused": lambda ts, threshold: ProtectionRefused(ts, threshold),
    "LockTimeout": lambda key, holder, seconds: LockTimeout(key, holder, seconds),
    "LockUnavailable": lambda key: LockUnavailable(key),
    "WriteConflict": lambda key: WriteConflict(key),
    "RangeFeedEnded": lambda name, detail: RangeFeedEnded(FeedEnd[name], detail),
    "StoreClosed": lambda text: StoreUnreachable(f"the store is closed: {text}"),
}


def failure_of(error: KVError) -> Failure:
    """The form in which an error is sent."""
    fields: list[Any]
    match error:
        case DeadlineExceeded(commit=commit, deadline=deadline):
            return Failure("DeadlineExceeded", [commit, deadline])
        case BatchTimestampBeforeGC(timestamp=timestamp, threshold=threshold):
            return Failure("BatchTimestampBeforeGC", [timestamp, threshold])
        case ProtectionRefused(timestamp=timestamp, threshold=threshold):
            return Failure("ProtectionRefused", [timestamp, threshold])
        case LockTimeout(key=key, holder=holder, seconds=seconds):
            fields = [key, holder, seconds]
            return Failure("LockTimeout", fields)
        case LockUnavailable(key=key):
            return Failure("LockUnavailable", [key])
        case WriteConflict(key=key):
            return Failure("WriteConflict", [key])
        case RangeFeedEnded(reason=reason):
            return Failure("RangeFeedEnded", [reason.name, ""])
        case StoreClosed():
            return Failure("StoreClosed", [str(error)])
    for kind in type(error).__mro__:
        if kind.__name__ in _BY_TEXT:
            return Failure(kind.__name__, [str(error)])
    raise AssertionError(f"{error!r} is no KVError")


def error_of(failure: Failure) -> KVError:
    """The error that was sent."""
    fields = [Timestamp(field) if isinstance(field, int) else field for field in failure.fields]
    maker = _MAKERS.get(failure.name) or _BY_TEXT[failure.name]
    return maker(*fields)
