"""Errors of the layers below, in SQL's words.

Everything that leaves a session is an SQLError. What has no entry here is a fault of ours: the
event loop's handler is told of it, and it ends its statement (XX000) and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...catalog.values.errors import SQLError
from ...kvlayer.errors import (
    BatchTimestampBeforeGC,
    ClockStopped,
    Deadlock,
    KeyTooLarge,
    KVError,
    LockTimeout,
    LockUnavailable,
    OutcomeUnknown,
    RetryableTransaction,
    StoreClosed,
    StoreUnreachable,
    TransactionState,
    WriteConflict,
)
from ...kvlayer.log import LogFull
from ...kvlayer.raw import EntryUnreadable
from ...kvlayer.replica import ReplicaRefused

RETRY_HINT = "Run the transaction again from its BEGIN."


def told_of(error: Exception) -> SQLError:
    """What a client is told of whatever its statement ended in."""
    if isinstance(error, SQLError):
        return error
    if isinstance(error, KVError):
        return from_kv(error)
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "a statement failed", "exception": error})
    return SQLError("XX000", f"internal error: {error!r}", hint="The server's log says where.")


def from_kv(error: KVError) -> SQLError:
    """The SQL error that says what `error` says."""
    match error:
        case Deadlock():
            return SQLError("40P01", "deadlock detected", detail=_sentence(error), hint=RETRY_HINT)
        case WriteConflict():
            return SQLError(
                "40001",
                "restart transaction: could not serialize access due to concurrent update",
                detail=_sentence(error),
                hint=RETRY_HINT,
            )
        case StoreUnreachable():
            return SQLError(
                "08006", f"{error}", hint="The node goes on when the store's server is back."
            )
        case OutcomeUnknown():
            return SQLError(
                "08007",
                "it is not known whether the transaction was committed",
                detail=_sentence(error),
                hint="Look for what it wrote before running it again.",
            )
        case RetryableTransaction():
            return SQLError(
                "40001",
                "restart transaction: could not serialize access",
                detail=_sentence(error),
                hint=RETRY_HINT,
            )
        case LockUnavailable():
            return lock_unavailable(error, ())
        case LockTimeout():
            return SQLError(
                "55P03",
                "could not obtain a lock in time",
                detail=_sentence(error),
                hint="Another transaction has written the row and has not ended yet.",
            )
        case BatchTimestampBeforeGC():
            return SQLError(
                "22023",
                f"{error}",
                hint="The history that far back has been removed: choose a later timestamp.",
            )
        case KeyTooLarge():
            return SQLError("54000", f"{error}")
        case ReplicaRefused():
            return SQLError(
                "55000",
                f"{error}",
                hint="SHOW KEYSPACES tells replicas, and how far they have come.",
            )
        case EntryUnreadable():
            return SQLError("XX001", f"{error}", hint="The server's log and disk may say more.")
        case TransactionState():
            return SQLError("25000", f"{error}")
        case LogFull():
            return SQLError(
                "53100",
                "the disk is full: writes are refused, reads go on",
                detail=_sentence(error),
                hint="Free space on the disk of the data folder; writes then go on by themselves.",
            )
        case ClockStopped():
            return SQLError(
                "53100",
                "the disk is full: the clock cannot go on",
                detail=_sentence(error),
                hint="Free space on the disk of the data folder; statements then go on by "
                "themselves.",
            )
        case StoreClosed() if "failed" in f"{error}":
            return SQLError("58030", f"{error}")
        case StoreClosed():
            return SQLError("57P03", f"{error}")
    return SQLError("XX000", f"{error}")


def lock_unavailable(error: LockUnavailable, tables: Sequence[str]) -> SQLError:
    """What a statement with NOWAIT is told, its locked tables being `tables`."""
    where = f' in relation "{tables[0]}"' if len(tables) == 1 else ""
    return SQLError(
        "55P03",
        f"could not obtain lock on row{where}",
        detail=_sentence(error),
        hint="Without NOWAIT the statement waits, for lock_timeout at most.",
    )


def _sentence(error: Exception) -> str:
    text = f"{error}"
    return f"{text[:1].upper()}{text[1:]}." if text else ""
