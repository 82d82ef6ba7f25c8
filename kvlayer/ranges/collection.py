"""Garbage collection of a span: the threshold first, then what lies below it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..clock import Timestamp
from ..command import EngineDelete, EnginePut, RemoveVersions
from ..mvcc import DeadBody, find_garbage, find_outdated, find_tombstones
from ..protected_timestamp import low_water, records
from ..span import Span
from ..txn.limits import COMMANDS_AHEAD_MAX
from ..txn.locks import Turn
from ..txn.steps import run_step
from .range_store import RangeStore

SLICE_ENTRIES = 500
"""Versions looked at in one step: removing all of them takes about a millisecond."""

SLICE_KEYS = 1000
"""Keys of entries of the time index looked at in one step, which take as long where each key has an
entry of its own."""


async def collect_garbage(
    store: RangeStore,
    span: Span,
    threshold: Timestamp,
    dead_at: Callable[[Timestamp, Timestamp], DeadBody] | None = None,
) -> int:
    """Removes what no reader above `threshold` can see of the span, and says how many versions.

    The threshold is that of the span's keys alone, in every range that holds some, and stays below
    everything that is protected among them: then less is removed than was asked for.
    `dead_at(threshold, now)` says which bodies count as deletions, for the threshold that is held.

    HAZARD: the raised threshold is durable before anything is removed. Were it lost in a crash
    that kept the removals, a read below it would be answered, wrongly.
    """

    def raise_threshold(_: Turn | None) -> tuple[Timestamp, int]:
        # In the step that raises: see `ProtectedTimestamps`.
        now = store.clock.now()
        expired = [record for record in records(store.engine) if record.expired(now)]
        store.metrics.put("kv_protected_timestamps_expired", len(expired))
        protected = low_water(store.engine, span, now)
        held = threshold if protected is None else min(threshold, Timestamp(protected - 1))
        replica = store.replica_of(span)
        if replica is not None:
            # It is read at what is resolved of it, and takes versions above that.
            held = min(held, Timestamp(max(replica.closed - 1, 0)))
        store.raise_threshold(span, held)
        return held, store.applied_index

    held, index = await run_step(store, raise_threshold, waiter=None, lock_timeout=None)
    await store.released(index)
    dead = None if dead_at is None else dead_at(held, store.clock.last)

    def lift_tombstones(_: Turn | None) -> None:
        # Last, and in the log behind the versions that they hid.
        operations: list[EnginePut | EngineDelete] = []
        for found in find_tombstones(store.engine, span, held):
            operations.append(EngineDelete(found.engine_key))
            parts = found.outside(span)
            operations += [EnginePut(part.engine_key, part.engine_value) for part in parts]
        if operations:
            store.propose_plain(operations)

    removed = 0
    resume: bytes | None = None
    while True:

        def remove(_: Turn | None, at: bytes | None = resume) -> tuple[int, bytes | None]:
            garbage = find_garbage(
                store.engine, span, held, resume=at, entries=SLICE_ENTRIES, dead=dead
            )
            if garbage.keys:
                store.propose((RemoveVersions(garbage.keys, garbage.timestamps),))
            return len(garbage.keys), garbage.resume

        count, resume = await run_step(store, remove, waiter=None, lock_timeout=None)
        removed += count
        if resume is None:
            break
        await store.released(store.applied_index - COMMANDS_AHEAD_MAX)
        await asyncio.sleep(0)
    await run_step(store, lift_tombstones, waiter=None, lock_timeout=None)
    await _trim_time_index(store, span, held)
    store.metrics.add("kv_versions_collected_total", removed)
    return removed


async def _trim_time_index(store: RangeStore, span: Span, held: Timestamp) -> None:
    """Takes the span's keys out of the entries of the time index up to its threshold."""
    resume: bytes | None = None
    while True:

        def trim(_: Turn | None, at: bytes | None = resume) -> bytes | None:
            found = find_outdated(store.engine, span, held, resume=at, entries=SLICE_KEYS)
            operations: list[EnginePut | EngineDelete] = [
                EngineDelete(key) for key in found.deletes
            ]
            operations += [EnginePut(key, value) for key, value in found.puts]
            if operations:
                store.propose_plain(operations)
            return found.resume

        resume = await run_step(store, trim, waiter=None, lock_timeout=None)
        if resume is None:
            return
        await store.released(store.applied_index - COMMANDS_AHEAD_MAX)
        await asyncio.sleep(0)
