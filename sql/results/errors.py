"""Errors of the layers below, in SQL's words.

Everything that leaves a session is an SQLError. What has no entry here is a fault of ours, which
ends its statement (XX000) and nothing else. The event loop's handler is told of it, as it is of a
disk that fails reads: whoever runs the server finds both in its log.

DuckDB passes on nothing but a text of what our functions raise: an SQLError is marked in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...catalog.values.errors import SQLError
from ...kvlayer import errors as kv
from ...kvlayer.engine import EngineDamaged, EngineFailed
from ...kvlayer.raw import EntryUnreadable
from ...kvlayer.replication.replica import ReplicaRefused

RETRY_HINT = "Run the transaction again from its BEGIN."


def told_of(error: Exception) -> SQLError:
    """Returns the SQLError that a client is told for any error that ends a statement."""
    if isinstance(error, SQLError):
        return error
    if isinstance(error, kv.KVError) and not isinstance(error, EngineFailed):
        return from_kv(error)
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "a statement failed", "exception": error})
    if isinstance(error, EngineFailed):
        return from_kv(error)
    return SQLError("XX000", f"internal error: {error!r}", hint="The server's log says where.")


_WORDS: tuple[tuple[type[kv.KVError], str, str | None, str | None], ...] = (
    (kv.Deadlock, "40P01", "deadlock detected", RETRY_HINT),
    (
        kv.WriteConflict,
        "40001",
        "restart transaction: could not serialize access due to concurrent update",
        RETRY_HINT,
    ),
    (kv.StoreUnreachable, "08006", None, "The node goes on when the store's server is back."),
    (
        kv.OutcomeUnknown,
        "08007",
        "it is not known whether the transaction was committed",
        "Look for what it wrote before running it again.",
    ),
    (
        kv.RetryableTransaction,
        "40001",
        "restart transaction: could not serialize access",
        RETRY_HINT,
    ),
    (
        kv.LockTimeout,
        "55P03",
        "could not obtain a lock in time",
        "Another transaction has written the row and has not ended yet.",
    ),
    (
        kv.BatchTimestampBeforeGC,
        "22023",
        None,
        "The history that far back has been removed: choose a later timestamp.",
    ),
    (kv.KeyTooLarge, "54000", None, None),
    (ReplicaRefused, "55000", None, "SHOW KEYSPACES tells replicas, and how far they have come."),
    (
        kv.FollowerAway,
        "55000",
        None,
        "The keyspace is written here as before. What is to lead it must be a replica of it, to "
        "which a replication of this store sends.",
    ),
    (kv.NotLeader, "57P03", None, "Nothing was written: try again there, or here later."),
    (
        kv.OracleAway,
        "57P03",
        None,
        "Raw writes go on by themselves when the oracle answers. SQL is served meanwhile.",
    ),
    (EntryUnreadable, "XX001", None, "The server's log and disk may say more."),
    (EngineDamaged, "XX001", None, "What lies in sound blocks can be read, and saved, until then."),
    (EngineFailed, "58030", None, "The server's log and disk may say more."),
    (kv.TransactionState, "25000", None, None),
    (
        kv.StoreFull,
        "53100",
        "the disk is full: writes are refused, reads go on",
        "Free space on the disk of the data folder; writes then go on by themselves.",
    ),
    (
        kv.ClockStopped,
        "53100",
        "the disk is full: the clock cannot go on",
        "Free space on the disk of the data folder; statements then go on by themselves.",
    ),
)
"""SQLSTATE, message and hint of each error, a class before those that it is derived from. Where
there is no message, the error's own words are it, and elsewhere the detail."""


def from_kv(error: kv.KVError) -> SQLError:
    """The SQL error that says what `error` says."""
    if isinstance(error, kv.LockUnavailable):
        return lock_unavailable(error, ())
    for kind, sqlstate, message, hint in _WORDS:
        if isinstance(error, kind):
            detail = None if message is None else _sentence(error)
            return SQLError(sqlstate, message or f"{error}", detail=detail, hint=hint)
    if isinstance(error, kv.StoreClosed):
        return SQLError("58030" if "failed" in f"{error}" else "57P03", f"{error}")
    return SQLError("XX000", f"{error}")


def lock_unavailable(error: kv.LockUnavailable, tables: Sequence[str]) -> SQLError:
    """Returns the error (55P03) of a statement with NOWAIT; `tables` are those it locks."""
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


_OWN = "SQLSTATE "
_FIELDS = "\x1f"


def passed_on(error: SQLError) -> ValueError:
    """An exception for DuckDB, which passes only its text on, with the SQLError marked in it."""
    told = (error.message, error.detail or "", error.hint or "", "")
    return ValueError(f"{_OWN}{error.sqlstate}: {_FIELDS.join(told)}")


def taken_back(message: str) -> SQLError | None:
    """Returns the SQLError marked in a text; None for an error of DuckDB's own."""
    _, marked, told = message.partition(_OWN)
    if not marked:
        return None
    text, detail, hint, _ = told[7:].rsplit(_FIELDS, 3)  # a message may quote anything
    return SQLError(told[:5], text, detail=detail or None, hint=hint or None)
