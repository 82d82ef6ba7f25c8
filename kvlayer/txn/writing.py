"""Writing and locking of keys by a transaction. Each function is part of a step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import islice

from .. import keys as key_format
from ..clock import MAX_TIMESTAMP, Timestamp
from ..command import WriteIntent
from ..errors import BatchTimestampBeforeGC, LockUnavailable, WriteConflict
from ..mvcc import body_at, newest_each, newest_version
from ..transaction_modes import Isolation, LockMode, WhenLocked
from .host import TransactionHost
from .intent_history import write_operations
from .limits import COMMAND_ROWS_MAX, slices
from .locks import LockConflict, Turn
from .record import TransactionRecord


def buffer_step(
    host: TransactionHost,
    record: TransactionRecord,
    keys: list[bytes],
    values: list[bytes],
    turn: Turn | None,
) -> bool:
    """As `write_step`, but the store hears of nothing: others find the keys locked.

    Who reads one of them reads what was there before, and so the transaction will commit above
    (`settle`). It holds no closed timestamp back, for where it stands is nothing to a feed yet.
    """
    if host.locks.locked(keys, record):  # since it locked them nobody else has written them
        record.sequence += 1
        record.buffer.put(keys, values, record.sequence)
        return False
    host.locks.check_writable(keys, record, turn)
    newer = _newer_version(host, record, keys)
    if newer:
        record.move(host.clock.now())
    record.sequence += 1
    host.locks.add_locks(keys, record)
    record.buffer.put(keys, values, record.sequence)
    return newer


def insert_step(
    host: TransactionHost, record: TransactionRecord, values: dict[bytes, bytes]
) -> bool:
    """Reads the keys, locks and buffers them, where they have no value that the transaction could
    see, and none that is newer. Returns False otherwise, having done nothing."""
    keys, at = list(values), record.read_timestamp
    if not record.buffer.written.keys().isdisjoint(keys):
        return False
    try:
        host.locks.check_writable(keys, record, None)
        for key in keys:
            host.check_readable(key, at)
    except (LockConflict, BatchTimestampBeforeGC):
        return False
    for found in newest_each(host.engine, keys, MAX_TIMESTAMP):
        if found is not None:
            newest = key_format.split_version_key(found[0])[1]
            if (
                newest > at
                or host.undurable(newest) is not None
                or body_at(found[1], at) is not None
            ):
                return False
    host.points_read(keys, at, record)
    record.sequence += 1
    host.locks.add_locks(keys, record)
    record.buffer.put(keys, list(values.values()), record.sequence)
    return True


def settle(host: TransactionHost, record: TransactionRecord) -> None:
    """Moves the transaction to where what it has buffered may be written, which is where it
    stands unless somebody has read one of the keys, or time has gone on, since it stood there.

    From then on it holds the closed timestamp: its reads may be many to refresh.
    """
    if _blocked(host, record, record.buffer.written):
        record.move(host.clock.now())
        host.closed.hold(record.id, record.write_timestamp)


def spill_step(host: TransactionHost, record: TransactionRecord) -> None:
    """Makes intents of a slice of the buffer, with what savepoints may restore of it."""
    buffer = record.buffer
    first = list(islice(buffer.written, COMMAND_ROWS_MAX))
    ((keys, _), *_) = slices(first, [buffer.written[key][1] for key in first])
    if _blocked(host, record, keys):
        record.move(host.clock.now())
    at = record.write_timestamp
    by_sequence: dict[int, WriteIntent] = {}
    for key in keys:
        sequence, value = buffer.written[key]
        if sequence not in by_sequence:
            by_sequence[sequence] = WriteIntent(record.id, at, sequence, [], [], {})
        made = by_sequence[sequence]
        made.keys.append(key)
        made.values.append(value)
        if history := buffer.history(key):
            made.histories[key] = history
    host.propose(list(by_sequence.values()), lowest=at, provisional=True)
    _add_spilled(host, record, keys)
    buffer.forget(keys)
    host.closed.hold(record.id, at)


def _add_spilled(host: TransactionHost, record: TransactionRecord, keys: list[bytes]) -> None:
    """Adds the keys of a spilled slice to the intents, a run for each set of savepoints that undo
    their first writing: a run for each sequence could be as many as keys."""
    undone_by: dict[int, list[bytes]] = {}
    for key in keys:
        sequence, _ = record.buffer.written[key]
        if history := record.buffer.history(key):
            record.intents.rewritten.put((key,), sequence)
            sequence, _ = history[0]
        undone_by.setdefault(bisect_left(record.savepoints, sequence), []).append(key)
    until = [*record.savepoints, record.sequence]
    for count, written in undone_by.items():
        host.locks.intents.add(record, until[count], written)


def write_step(
    host: TransactionHost,
    record: TransactionRecord,
    keys: list[bytes],
    values: list[bytes],
    turn: Turn | None,
) -> bool:
    """Writes intents, where the transaction stands or above. Raises LockConflict, WriteConflict.

    Says whether a key had a newer version, and the transaction had to move above it.
    """
    replaced = host.locks.check_writable(keys, record, turn)
    newer = _newer_version(host, record, keys)
    if newer or _blocked(host, record, keys):
        record.move(host.clock.now())
    at = record.write_timestamp
    operations = write_operations(host.engine, record, keys, values, replaced)
    host.propose(operations, lowest=at, provisional=True)
    record.sequence += 1
    if record.savepoints:
        record.intents.rewritten.put(replaced, record.sequence)
    intents = host.locks.intents
    if replaced:
        keys = [key for key in keys if intents.get(key) is None]
    intents.add(record, record.sequence, keys)
    host.closed.hold(record.id, at)
    return newer


def lock_all_step(host: TransactionHost, record: TransactionRecord, keys: Sequence[bytes]) -> bool:
    """Locks all the keys and returns True, where nobody is in the way and none can have a version
    newer than what the transaction reads; else does nothing."""
    try:
        host.locks.check_writable(keys, record, None)
    except LockConflict:
        return False
    if _newer_committed(host, keys, record.read_timestamp):
        return False
    record.sequence += 1
    host.locks.add_locks(keys, record)
    return True


def lock_step(
    host: TransactionHost,
    record: TransactionRecord,
    key: bytes,
    mode: LockMode,
    when_locked: WhenLocked,
    turn: Turn | None,
) -> bool | None:
    """Locks the key; says whether it has a version newer than what the transaction reads.

    None where it is locked and to be skipped. Raises LockConflict, LockUnavailable, WriteConflict,
    and BatchTimestampBeforeGC where nobody can tell; after WriteConflict the key is locked.
    """
    host.check_readable(key, record.read_timestamp)
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
        if record.intents:
            host.closed.hold(record.id, record.write_timestamp)
    return True


def hold_key(host: TransactionHost, record: TransactionRecord, key: bytes, mode: LockMode) -> None:
    """The transaction, which may, holds the key from now on.

    What is not written is no reason to hold the closed timestamp back.
    """
    record.sequence += 1
    host.locks.add_lock(key, record, mode)


def _newer_version(host: TransactionHost, record: TransactionRecord, keys: list[bytes]) -> bool:
    """Whether one of the keys has a version above where the transaction would write.

    Where it is only above what a weakly isolated one reads, raises WriteConflict.
    """
    if record.isolation is Isolation.SERIALIZABLE:
        return _newer(host, keys, record.write_timestamp) is not None
    newer = _newer(host, keys, record.read_timestamp)
    if newer is not None:
        raise WriteConflict(newer)
    return False


def _blocked(host: TransactionHost, record: TransactionRecord, keys: Collection[bytes]) -> bool:
    """Whether nobody may write the keys any more where the transaction stands."""
    at = record.write_timestamp
    return at <= host.closed.closed or host.timestamp_cache.blocks(keys, at, record.id)


def _newer(host: TransactionHost, keys: list[bytes], at: Timestamp) -> bytes | None:
    """Returns a key with a version above `at`, or one that may have had it: a deletion that garbage
    collection has taken is not written below, either."""
    if not _newer_committed(host, keys, at):
        return None
    if at < host.greatest_threshold:
        for key in keys:
            try:
                host.check_readable(key, at)
            except BatchTimestampBeforeGC:
                return key
    newest = newest_each(host.engine, keys, MAX_TIMESTAMP)
    for key, found in zip(keys, newest, strict=True):
        if found is not None and key_format.split_version_key(found[0])[1] > at:
            return key
    return None


def _newer_committed(host: TransactionHost, keys: Sequence[bytes], at: Timestamp) -> bool:
    """Whether anything was committed above `at` in a keyspace of the keys."""
    length = key_format.KEYSPACE_LENGTH
    deletions = host.engine.range_tombstones
    first, last = min(keys)[:length], max(keys)[:length]
    for keyspace in {first} if first == last else {key[:length] for key in keys}:
        bounds = key_format.time_index_bounds(keyspace, at, Timestamp(MAX_TIMESTAMP - 1))
        if (
            at < host.greatest_threshold
            or host.engine.first(*bounds) is not None
            or deletions.last > at
        ):
            return True
    return False
