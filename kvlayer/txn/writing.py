"""How a transaction takes keys, by writing or by locking them. Each function is part of a step."""

from __future__ import annotations

from .. import keys as key_format
from ..clock import MAX_TIMESTAMP, Timestamp
from ..errors import LockUnavailable, WriteConflict
from ..mvcc import newest_version
from ..transaction_modes import Isolation, LockMode, WhenLocked
from .host import TransactionHost
from .intent_history import write_operations
from .locks import LockConflict, Turn
from .record import TransactionRecord


def write_step(
    host: TransactionHost,
    record: TransactionRecord,
    keys: list[bytes],
    values: list[bytes],
    turn: Turn | None,
) -> None:
    """Writes intents, where the transaction stands or above. Raises LockConflict, WriteConflict."""
    host.locks.check_writable(keys, record, turn)
    if _must_move(host, record, keys):
        record.move(host.clock.now())
    at = record.write_timestamp
    host.propose(write_operations(host.engine, record, keys, values), lowest=at)
    record.sequence += 1
    host.locks.add_intents(keys, record)
    host.closed.hold(record.id, at)


def lock_step(
    host: TransactionHost,
    record: TransactionRecord,
    key: bytes,
    mode: LockMode,
    when_locked: WhenLocked,
    turn: Turn | None,
) -> bool | None:
    """Locks the key; says whether it has a version newer than what the transaction reads.

    None where it is locked and to be skipped. Raises LockConflict, LockUnavailable, WriteConflict;
    after the last the key is locked.
    """
    try:
        host.locks.check_lockable(key, record, turn, mode)
    except LockConflict:
        match when_locked:
            case WhenLocked.WAIT:
                raise
            case WhenLocked.NOWAIT:
                raise LockUnavailable(key) from None
            case WhenLocked.SKIP:
                return None
    hold_key(host, record, key, mode)
    newest = newest_version(host.engine, key)
    if newest is None or newest <= record.read_timestamp:
        return False
    if record.isolation is not Isolation.SERIALIZABLE:
        raise WriteConflict(key)
    if newest > record.write_timestamp:
        record.move(host.clock.now())
        host.closed.hold(record.id, record.write_timestamp)
    return True


def hold_key(host: TransactionHost, record: TransactionRecord, key: bytes, mode: LockMode) -> None:
    """The transaction, which may, holds the key from now on."""
    record.sequence += 1
    host.locks.add_lock(key, record, mode)
    host.closed.hold(record.id, record.write_timestamp)


def _must_move(host: TransactionHost, record: TransactionRecord, keys: list[bytes]) -> bool:
    """Whether a write of the keys may not land at the write timestamp. Raises WriteConflict."""
    at = record.write_timestamp
    serializable = record.isolation is Isolation.SERIALIZABLE
    if not serializable:
        newer = _newer(host, keys, record.read_timestamp)
        if newer is not None:
            raise WriteConflict(newer)
    if at <= host.closed.closed or host.timestamp_cache.blocks(keys, at, record.id):
        return True
    # What a weaker one has found is not newer than its reads, let alone than its writes.
    return serializable and _newer(host, keys, at) is not None


def _newer(host: TransactionHost, keys: list[bytes], at: Timestamp) -> bytes | None:
    """One of the keys that has a version above `at`."""
    length = key_format.KEYSPACE_LENGTH
    deletions = host.engine.range_tombstones
    for keyspace in {key[:length] for key in keys}:
        bounds = key_format.time_index_bounds(keyspace, at, Timestamp(MAX_TIMESTAMP - 1))
        if host.engine.first(*bounds) is not None or deletions.last > at:
            break
    else:
        return None  # nothing at all was committed there since
    for key in keys:
        newest = newest_version(host.engine, key)
        if newest is not None and newest > at:
            return key
    return None
