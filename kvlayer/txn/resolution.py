"""The end of transactions: intents become versions, or go away.

A transaction whose intents fit one command ends in it. A larger one commits by its durable record
first, and its intents follow in slices; until then whoever meets one consults the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from .. import keys
from ..command import (
    AbortIntent,
    AbortTxn,
    CommitIntent,
    EngineDelete,
    EnginePut,
    LogicalOp,
    UpdateIntent,
    WriteValue,
)
from ..engine import EngineStall
from ..errors import StoreClosed, StoreFull, TransactionAborted
from ..mvcc import Intent, intents_on
from ..process.background import give_way
from ..transaction_modes import Isolation
from .host import TransactionHost
from .limits import (
    COMMAND_BYTES_MAX,
    COMMAND_ROWS_MAX,
    COMMANDS_AHEAD_MAX,
    STALL_BACKOFF_SECONDS,
)
from .record import (
    COMMITTED,
    PENDING,
    CommitRecord,
    TransactionRecord,
    TransactionStatus,
    encode_commit_record,
)

FULL_BACKOFF_SECONDS = 0.25
"""Between tries while the disk is full."""

INTENTS_READ_AT_ONCE = 16
"""Each may be as long as a command."""


def commit(host: TransactionHost, record: TransactionRecord, *, commit_called_ns: int) -> int:
    """Commits at the write timestamp, in this step. The index whose durability is the ack.

    Raises EngineStall, having changed nothing.
    """
    assert record.status is PENDING, record
    proven = record.write_timestamp == record.read_timestamp
    assert proven or record.isolation is not Isolation.SERIALIZABLE, record
    assert proven or not record.read_spans, record
    if record.buffer:
        return _commit_buffer(host, record, commit_called_ns)
    at = record.write_timestamp
    few = len(record.intents) <= COMMAND_ROWS_MAX
    resolved, operations = (
        _commit_slice(host, record, record.intents.first(COMMAND_ROWS_MAX)) if few else ([], [])
    )
    whole = len(resolved) == len(record.intents)
    if whole:
        index = host.propose(operations, commit_called_ns=commit_called_ns)
    else:
        verdict = EnginePut(keys.TRANSACTION + record.id, encode_commit_record(CommitRecord(at)))
        index = host.propose((verdict,))
    record.status = TransactionStatus.COMMITTED
    host.committed(at, index)
    _cover_locks(host, record)
    free_locks(host, record)
    if whole:
        _release(host, record, resolved)
        host.ended(record, index)
    else:
        host.locks.decided(record)
        host.background(
            _resolve(host, record, lambda: _commit_step(host, record, commit_called_ns))
        )
    return index


def _commit_buffer(host: TransactionHost, record: TransactionRecord, commit_called_ns: int) -> int:
    """In one phase: what was buffered becomes versions, and was never anything else."""
    assert not record.intents, ("intents are committed by their record", record)
    at, written = record.write_timestamp, record.buffer.written
    version = WriteValue(at, list(written), [value for _, value in written.values()])
    index = host.propose((version,), lowest=at, commit_called_ns=commit_called_ns)
    record.status = COMMITTED
    host.committed(at, index)
    if record.shares or len(record.locks) > len(written):
        _cover_locks(host, record)
    record.buffer.clear()
    free_locks(host, record)
    host.ended(record, index)
    return index


def abort(host: TransactionHost, record: TransactionRecord, because: str) -> None:
    """Aborts, in this step; what is left of the intents goes away soon after."""
    assert record.status is TransactionStatus.PENDING, record
    record.status = TransactionStatus.ABORTED
    record.aborted_because = because
    record.buffer.clear()
    host.locks.interrupt(record, TransactionAborted(because))
    free_locks(host, record)
    if not record.intents:
        host.ended(record, host.applied_index)
        return
    host.locks.decided(record)
    first = AbortTxn(record.id)
    try:
        done = _abort_step(host, record, first)
    except (EngineStall, StoreFull):
        host.background(_resolve(host, record, lambda: _abort_step(host, record, first)))
    except StoreClosed:
        # Nothing can be written any more; at the next start the intents are an aborted one's.
        host.ended(record, host.applied_index)
    else:
        if not done:
            host.background(_resolve(host, record, lambda: _abort_step(host, record)))


def push(host: TransactionHost, record: TransactionRecord) -> None:
    """Moves a running transaction's write timestamp to the present. Raises EngineStall."""
    assert record.status is TransactionStatus.PENDING, record
    at = host.clock.now()
    if record.intents:
        host.propose((UpdateIntent(record.id, at),))
        host.closed.hold(record.id, at)
    record.move(at)


def _cover_locks(host: TransactionHost, record: TransactionRecord) -> None:
    """From this step on nobody writes what the transaction had locked at or below its commit.

    Who waited for the lock may stand below: its write would lie before the commit, and show a time
    at which the one that came later was there alone. What a serializable transaction has read is
    proven and covered up to its commit already.
    """
    if record.isolation is Isolation.SERIALIZABLE:
        return
    for locked in (record.locks, record.shares):
        if len(locked) <= COMMAND_ROWS_MAX:
            host.points_read(list(locked), record.write_timestamp, record)
        else:
            for span in locked.spans():
                host.span_read(span, record.write_timestamp, record)


def free_locks(host: TransactionHost, record: TransactionRecord) -> None:
    """Frees the keys of a transaction that has ended, in this step."""
    if host.locks.release_locks(record):
        host.background(_forget_locks(host, record))


async def _forget_locks(host: TransactionHost, record: TransactionRecord) -> None:
    more = True
    while more:
        await give_way()
        more = host.locks.forget_locks(record)


async def _resolve(
    host: TransactionHost, record: TransactionRecord, step: Callable[[], bool]
) -> None:
    """Runs slices until none is left, or the store is closed: start-up does what remains."""
    while True:
        try:
            host.check_open()
            if step():
                return
            await host.released(host.applied_index - COMMANDS_AHEAD_MAX)
        except EngineStall:
            await asyncio.sleep(STALL_BACKOFF_SECONDS)
        except StoreFull:
            await asyncio.sleep(FULL_BACKOFF_SECONDS)
        except StoreClosed:
            return
        else:
            # Nobody waits for it but feeds. Twice: a scan takes two turns a slice, and one that
            # reads these rows as intents meanwhile is not to be slowed to half its speed.
            await give_way()
            await give_way()


def _intents_read(
    host: TransactionHost, wanted: Sequence[bytes], *, dense: bool
) -> Iterator[tuple[bytes, Intent | None]]:
    """The intents on the keys, read INTENTS_READ_AT_ONCE at a time."""
    for start in range(0, len(wanted), INTENTS_READ_AT_ONCE):
        part = wanted[start : start + INTENTS_READ_AT_ONCE]
        yield from zip(part, intents_on(host.engine, part, dense=dense), strict=True)


def _commit_slice(
    host: TransactionHost, record: TransactionRecord, wanted: list[bytes], *, dense: bool = False
) -> tuple[list[bytes], list[LogicalOp]]:
    resolved: list[bytes] = []
    values: list[bytes] = []
    size = 0
    for key, intent in _intents_read(host, wanted, dense=dense):
        assert intent is not None, ("the lock table names an intent that is not there", key)
        assert intent.transaction_id == record.id, (intent, record)
        if resolved and size + len(intent.value) > COMMAND_BYTES_MAX:
            break
        resolved.append(key)
        values.append(intent.value)
        size += len(intent.value)
    return resolved, [CommitIntent(record.id, record.write_timestamp, resolved, values)]


def _commit_step(host: TransactionHost, record: TransactionRecord, commit_called_ns: int) -> bool:
    resolved, operations = _commit_slice(
        host, record, record.intents.first(COMMAND_ROWS_MAX), dense=True
    )
    last = len(resolved) == len(record.intents)
    if last:
        operations.append(EngineDelete(keys.TRANSACTION + record.id))
    index = host.propose(operations, commit_called_ns=commit_called_ns)
    _release(host, record, resolved)
    if last:
        host.ended(record, index)
    return last


def _abort_step(host: TransactionHost, record: TransactionRecord, *before: LogicalOp) -> bool:
    removed = record.intents.first(COMMAND_ROWS_MAX)
    index = host.propose((*before, AbortIntent(record.id, removed)))
    _release(host, record, removed)
    last = not record.intents
    if last:
        host.ended(record, index)
    return last


def _release(host: TransactionHost, record: TransactionRecord, resolved: list[bytes]) -> None:
    """Releases the first of the transaction's intents."""
    record.intents.drop_first(resolved)
    host.locks.release_intents(resolved, record)
