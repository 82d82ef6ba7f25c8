"""Splits and merges: which range holds which keys, changed in one entry of the log.

    split 1 at m       1: a..z           ->  1: a..m   7: m..z
    merge 1            1: a..m  7: m..z  ->  1: a..z

The descriptors, thresholds and next id are written by one command, and the range map follows in
that step; so whoever runs in another step, and whoever starts after a crash, sees the ranges of
before or of after. No key is read or moved: ranges share engine and log. The feeds of the old
ranges end when the entry is consumed.
"""

from __future__ import annotations

from .. import keys
from ..clock import Timestamp
from ..command import EngineDelete, EnginePut, LogicalOp
from ..errors import FeedEnd, RangeRefused
from ..span import Span
from .delivery import Ending
from .descriptor import (
    NEXT_ID_KEY,
    RangeDescriptor,
    descriptor_key,
    encode_descriptor,
    encode_id,
    read_next_id,
    resolved_key,
    size_key,
    thresholds_key,
)
from .range import Range
from .range_store import RangeStore
from .size import MEASURED_BYTES_MAX, MEASURED_MAX, RangeSize
from .thresholds import Thresholds


def split(store: RangeStore, key: bytes, sticky_until: Timestamp) -> int:
    """Makes `key` the start of a range, in this step. The index of the entry.

    A split that nobody asked for has no `sticky_until` (zero). Where a range begins at `key`
    already, only `sticky_until` rises. Raises RangeRefused for a key that is none of the store's;
    EngineStall and StoreClosed, having changed nothing.
    """
    _check_border(store, key)
    old = store.ranges.holding(key)
    if old.span.start == key:
        return make_sticky(store, old, max(sticky_until, old.descriptor.sticky_until))
    right_id = read_next_id(store.engine)
    left_size, right_size = _sizes(store, old, key)
    left_of, right_of = old.descriptor, RangeDescriptor(right_id, key, old.span.end, sticky_until)
    left_of = RangeDescriptor(left_of.id, left_of.start, key, left_of.sticky_until)
    halves = tuple(
        Range(
            descriptor,
            store.parts,
            store,
            thresholds=Thresholds.of(descriptor.span, (old.thresholds,)),
            load=old.load.share(2),
            closed=old.closed,
            max_timestamp=old.max_timestamp,
            persisted_resolved=old.persisted_resolved,
            size=size,
        )
        for descriptor, size in ((left_of, left_size), (right_of, right_size))
    )
    operations: list[LogicalOp] = [EnginePut(NEXT_ID_KEY, encode_id(right_id + 1))]
    for half in halves:
        operations += _facts(half)
    reason = FeedEnd.MANUAL_RANGE_SPLIT if sticky_until else FeedEnd.RANGE_SPLIT
    index = store.propose_ending(operations, (Ending(old, reason),))
    if store.ranges.only is not None:
        store.whereabouts.begin(store.with_intents(), old)
    store.replace((old,), halves)
    store.metrics.add("kv_range_splits_total")
    return index


def merge(store: RangeStore, range_id: int) -> int:
    """Joins a range with the one behind it, in this step. The index of the entry.

    Raises RangeRefused when there is no such range, none behind it, or one that closes by another
    rule.
    """
    left = store.ranges.with_id(range_id)
    if left is None:
        raise RangeRefused(f"range {range_id} does not exist")
    right = store.ranges.after(left)
    if right is None:
        raise RangeRefused(f"range {range_id} is the last: there is none behind it to merge with")
    if left.closed is not right.closed:
        raise RangeRefused(
            f"ranges {left.id} and {right.id} cannot be merged: one of them is a replica's, and "
            "closes timestamps by itself"
        )
    old = left.descriptor
    descriptor = RangeDescriptor(old.id, old.start, right.span.end, old.sticky_until)
    whole = Range(
        descriptor,
        store.parts,
        store,
        thresholds=Thresholds.of(descriptor.span, (left.thresholds, right.thresholds)),
        load=left.load.joined(right.load),
        closed=left.closed,
        max_timestamp=max(left.max_timestamp, right.max_timestamp),
        persisted_resolved=min(left.persisted_resolved, right.persisted_resolved),
        size=left.size.joined(right.size),
    )
    gone = (descriptor_key, thresholds_key, resolved_key, size_key)
    operations = [*_facts(whole), *(EngineDelete(name(right.id)) for name in gone)]
    endings = (Ending(left, FeedEnd.RANGE_MERGED), Ending(right, FeedEnd.RANGE_MERGED))
    index = store.propose_ending(operations, endings)
    store.replace((left, right), (whole,))
    store.metrics.add("kv_range_merges_total")
    return index


def unsplit(store: RangeStore, key: bytes) -> int:
    """The border at `key` may be merged away from now on. The index of the entry.

    Raises RangeRefused where no range begins, or the border is not sticky.
    """
    _check_border(store, key)
    found = store.ranges.holding(key)
    if found.span.start != key or not found.descriptor.sticky_until:
        raise RangeRefused(f"key {key.hex()} is not the border of a manual split")
    return make_sticky(store, found, Timestamp(0))


def make_sticky(store: RangeStore, found: Range, until: Timestamp) -> int:
    """Changes how long the border at the range's start stays."""
    old = found.descriptor
    if until == old.sticky_until:
        return store.applied_index
    descriptor = RangeDescriptor(old.id, old.start, old.end, until)
    data = encode_descriptor(descriptor)
    index = store.propose_plain((EnginePut(descriptor_key(old.id), data),))
    found.descriptor = descriptor
    return index


def _sizes(store: RangeStore, old: Range, key: bytes) -> tuple[RangeSize, RangeSize]:
    if old.size.version_count > MEASURED_MAX or old.size.byte_count > MEASURED_BYTES_MAX:
        return old.size.split_at(key)
    left, right = Span(old.span.start, key), Span(key, old.span.end)
    measured = RangeSize.measured(store.engine, left), RangeSize.measured(store.engine, right)
    if measured[0] is None or measured[1] is None:
        return old.size.split_at(key)
    return measured[0], measured[1]


def _facts(made: Range) -> list[LogicalOp]:
    """The engine's facts about a range, as operations."""
    return [
        EnginePut(descriptor_key(made.id), encode_descriptor(made.descriptor)),
        EnginePut(thresholds_key(made.id), made.thresholds.encode()),
        EnginePut(resolved_key(made.id), keys.big_endian(made.persisted_resolved)),
        EnginePut(size_key(made.id), made.size.encode()),
    ]


def _check_border(store: RangeStore, key: bytes) -> None:
    span = store.ranges.span
    if not span.contains(key) or key == span.start:
        raise RangeRefused(
            f"key {key.hex()!r} cannot be a border of ranges: it is not within "
            f"[{span.start.hex()}, {span.end.hex()})"
        )
    if len(key) > keys.KEY_BYTES_MAX:
        raise RangeRefused(
            f"a key of {len(key)} bytes cannot be a border of ranges: the limit is "
            f"{keys.KEY_BYTES_MAX}"
        )
