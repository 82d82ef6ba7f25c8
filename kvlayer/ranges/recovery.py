"""Recovery: how a store comes back from what the engine flushed and the log kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TypeVar

from .. import keys
from ..clock import ZERO, Timestamp
from ..command import (
    AbortIntent,
    AbortTxn,
    Command,
    CommitIntent,
    DeleteRangeOp,
    EngineDelete,
    LogicalOp,
    UpdateIntent,
    WriteIntent,
    WriteValue,
    WriteVersions,
    decode_command,
    engine_batch,
)
from ..engine import Engine, EngineStall
from ..history import StoreHistory
from ..keys import ALL_KEYS
from ..log import CommandLog
from ..mvcc import Intent, intents_in
from ..span import Span, prefix_end
from ..txn.limits import COMMAND_ROWS_MAX, STALL_BACKOFF_SECONDS
from ..txn.record import decode_commit_record
from .descriptor import RangeDescriptor, read_descriptors, resolved_key, size_key, thresholds_key
from .range import Range, greatest_timestamp
from .range_store import RangeStore
from .replica import read_replicas
from .size import RangeSize
from .thresholds import Thresholds

T = TypeVar("T")

REPLAY_SLICE = 100
"""Entries replayed before the loop may do something else."""


async def replay(log: CommandLog, engine: Engine) -> Timestamp:
    """Applies the entries that the engine lacks. The greatest timestamp found in them."""
    greatest = ZERO
    for replayed, (index, payload) in enumerate(log.replay(engine.applied_index), 1):
        command = decode_command(payload)
        batch = engine_batch(command)
        await _patiently(partial(engine.write, batch, applied_index=index))
        greatest = max(greatest, _greatest_timestamp(command))
        if replayed % REPLAY_SLICE == 0:
            await asyncio.sleep(0)
    return greatest


def load_ranges(store: RangeStore) -> None:
    """Makes the ranges and the replicas that the engine holds the store's."""
    store.replicas.extend(read_replicas(store.engine))
    store.take_up([_load_range(store, found) for found in read_descriptors(store.engine)])


def _load_range(store: RangeStore, descriptor: RangeDescriptor) -> Range:
    engine, span = store.engine, descriptor.span
    thresholds = engine.get(thresholds_key(descriptor.id))
    collected = Thresholds(span) if thresholds is None else Thresholds.decode(span, thresholds)
    size = engine.get(size_key(descriptor.id))
    resolved = engine.get(resolved_key(descriptor.id))
    return Range(
        descriptor,
        store.parts,
        store,
        thresholds=collected,
        closed=store.closing_of(span),
        max_timestamp=max(collected.greatest, greatest_timestamp(engine, span)),
        persisted_resolved=ZERO if resolved is None else Timestamp(int.from_bytes(resolved, "big")),
        size=None if size is None else RangeSize.decode(size),
    )


async def begin_incarnation(store: RangeStore, history: StoreHistory) -> None:
    """Writes the entry with which the store's next incarnation begins.

    It comes before all that recovery writes: every entry that was not found is the incarnation's.
    """
    at_index = store.log.last_index + 1
    index = await _patiently(
        partial(store.propose_plain, history.begin(store.random, at_index=at_index))
    )
    assert index == at_index, (index, at_index)


async def recover(store: RangeStore) -> None:
    """Ends what was under way when the process died. Nobody else uses the store yet.

    An intent's transaction either has a durable record, which says that it committed and when; or
    it has none, and then it was pending or aborted: its coordinator is gone, and it aborts now.
    """
    # Each scan begins behind the last one: it would step over all that those have deleted.
    left = ALL_KEYS
    while intents := list(islice(intents_in(store.engine, left), COMMAND_ROWS_MAX)):
        operations = _resolutions(store.engine, intents)
        await _patiently(partial(store.propose, operations))
        left = Span(intents[-1][0] + b"\x00", left.end)
    start, end = keys.TRANSACTION, prefix_end(keys.TRANSACTION)
    while records := list(islice(store.engine.scan(start, end), COMMAND_ROWS_MAX)):
        deletions: list[LogicalOp] = [EngineDelete(engine_key) for engine_key, _ in records]
        await _patiently(partial(store.propose, deletions))
        start = records[-1][0] + b"\x00"


def _resolutions(engine: Engine, intents: list[tuple[bytes, Intent]]) -> list[LogicalOp]:
    by_transaction: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for key, intent in intents:
        by_transaction.setdefault(intent.transaction_id, []).append((key, intent.value))
    operations: list[LogicalOp] = []
    for transaction_id, written in by_transaction.items():
        found = [key for key, _ in written]
        record = engine.get(keys.TRANSACTION + transaction_id)
        if record is None:
            operations += [AbortTxn(transaction_id), AbortIntent(transaction_id, found)]
        else:
            at = decode_commit_record(record).timestamp
            values = [value for _, value in written]
            operations.append(CommitIntent(transaction_id, at, found, values))
    return operations


async def _patiently(write: Callable[[], T]) -> T:
    """Writes to the engine, once that has room."""
    while True:
        try:
            return write()
        except EngineStall:
            await asyncio.sleep(STALL_BACKOFF_SECONDS)


def _greatest_timestamp(command: Command) -> Timestamp:
    greatest = command.closed
    for op in command.all_ops():
        match op:
            case (
                WriteValue(timestamp=ts)
                | WriteIntent(timestamp=ts)
                | UpdateIntent(timestamp=ts)
                | CommitIntent(timestamp=ts)
                | DeleteRangeOp(timestamp=ts)
            ):
                greatest = max(greatest, ts)
            case WriteVersions(timestamps=several):
                greatest = max(greatest, *several)
            case _:
                pass
    return greatest
