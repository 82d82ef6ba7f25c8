"""Garbage collection of a range: the threshold first, then what lies below it."""

from __future__ import annotations

import asyncio

from .. import keys
from ..clock import Timestamp
from ..command import EngineDelete, EnginePut, LogicalOp, RemoveVersions
from ..mvcc import find_garbage, find_tombstones
from ..protected_timestamp import low_water
from ..span import Span
from ..txn.limits import COMMANDS_AHEAD_MAX
from ..txn.locks import Turn
from ..txn.steps import run_step
from .descriptor import threshold_key
from .range import Range

SLICE_ENTRIES = 500
"""Versions looked at in one step: removing all of them takes about a millisecond."""


async def collect_garbage(range_: Range, span: Span, threshold: Timestamp) -> int:
    """Removes what no reader above `threshold` can see of the span, and says how many versions.

    The threshold is the whole range's, and stays below everything that is protected in it: then
    less is removed than was asked for.

    HAZARD: the raised threshold is durable before anything is removed. Were it lost in a crash
    that kept the removals, a read below it would be answered, wrongly.
    """

    def raise_threshold(_: Turn | None) -> tuple[Timestamp, int]:
        # In the step that raises: see `ProtectedTimestamps`.
        protected = low_water(range_.engine, range_.span, range_.clock.now())
        held = threshold if protected is None else min(threshold, Timestamp(protected - 1))
        if held > range_.gc_threshold:
            name = threshold_key(range_.descriptor.id)
            range_.raise_gc_threshold(held, EnginePut(name, keys.big_endian(held)))
        return held, range_.applied_index

    held, index = await run_step(range_, raise_threshold, waiter=None, lock_timeout=None)
    await range_.released(index)

    def lift_tombstones(_: Turn | None) -> None:
        # Last, and in the log behind the versions that they hid.
        operations: list[LogicalOp] = []
        for found in find_tombstones(range_.engine, span, held):
            operations.append(EngineDelete(found.engine_key))
            parts = found.outside(span)
            operations += [EnginePut(part.engine_key, part.engine_value) for part in parts]
        if operations:
            range_.propose(operations)

    removed = 0
    resume: bytes | None = None
    while True:

        def remove(_: Turn | None, at: bytes | None = resume) -> tuple[int, bytes | None]:
            garbage = find_garbage(range_.engine, span, held, resume=at, entries=SLICE_ENTRIES)
            if garbage.keys:
                range_.propose((RemoveVersions(garbage.keys, garbage.timestamps),))
            return len(garbage.keys), garbage.resume

        count, resume = await run_step(range_, remove, waiter=None, lock_timeout=None)
        removed += count
        if resume is None:
            await run_step(range_, lift_tombstones, waiter=None, lock_timeout=None)
            range_.metrics.add("kv_versions_collected_total", removed)
            return removed
        await range_.released(range_.applied_index - COMMANDS_AHEAD_MAX)
        await asyncio.sleep(0)
