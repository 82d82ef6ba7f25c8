"""Division: a step's operations, by the ranges whose keys they are about.

ranges a..f (1), f..z (4);  transaction x has intents on b and g

WriteValue(120, [b, g], [v, w])   1: WriteValue(120, [b], [v])   4: WriteValue(120, [g], [w])
UpdateIntent(x, 130)              1: UpdateIntent(x, 130)        4: UpdateIntent(x, 130)
EnginePut(record)                 with whatever else there is: no feed is told of it
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import assert_never

from ..command import (
    AbortIntent,
    AbortTxn,
    CommitIntent,
    DeleteRangeOp,
    EngineDelete,
    EnginePut,
    LogicalOp,
    RemoveVersions,
    UpdateIntent,
    WriteIntent,
    WriteValue,
    WriteVersions,
)
from ..span import Span
from .range import Range
from .range_map import RangeMap

Parts = dict[Range, list[LogicalOp]]

_KeyedOp = WriteValue | WriteVersions | WriteIntent | CommitIntent | AbortIntent | RemoveVersions


def divide(
    operations: Sequence[LogicalOp],
    ranges: RangeMap,
    ranges_of: Callable[[bytes], Collection[Range]],
) -> Parts:
    """The operations of each range, in their order. Never empty.

    `ranges_of` names the ranges in which a transaction has intents, or may have: it is asked where
    an operation names a transaction and no key.
    """
    parts: Parts = {}
    plain: list[LogicalOp] = []
    for op in operations:
        match op:
            case (
                WriteValue()
                | WriteVersions()
                | WriteIntent()
                | CommitIntent()
                | AbortIntent()
                | RemoveVersions()
            ):
                _divide_keys(op, ranges, parts)
            case UpdateIntent() | AbortTxn():
                for found in (held_in := ranges_of(op.transaction_id)):
                    parts.setdefault(found, []).append(op)
                if not held_in:
                    plain.append(op)
            case DeleteRangeOp():
                _divide_deletion(op, ranges, parts)
            case EnginePut() | EngineDelete():
                plain.append(op)
            case _:
                assert_never(op)
    if plain or not parts:
        first = next(iter(parts), None) or next(iter(ranges))
        parts.setdefault(first, []).extend(plain)
    return parts


def _divide_keys(op: _KeyedOp, ranges: RangeMap, parts: Parts) -> None:
    written = op.keys
    if not written:
        return
    found = ranges.holding(written[0])
    span = found.span
    if len(written) == 1 or (span.start <= min(written) and max(written) < span.end):
        parts.setdefault(found, []).append(op)
        return
    places: dict[Range, list[int]] = {}
    for place, key in enumerate(written):
        if not span.start <= key < span.end:
            found = ranges.holding(key)
            span = found.span
        places.setdefault(found, []).append(place)
    for holder, chosen in places.items():
        parts.setdefault(holder, []).append(_chosen(op, chosen))


def _chosen(op: _KeyedOp, places: Sequence[int]) -> LogicalOp:
    """The operation on the keys at these places alone."""
    written = [op.keys[place] for place in places]
    match op:
        case WriteValue():
            return WriteValue(op.timestamp, written, [op.values[place] for place in places])
        case WriteVersions():
            timestamps = [op.timestamps[place] for place in places]
            return WriteVersions(timestamps, written, [op.values[place] for place in places])
        case WriteIntent():
            values = [op.values[place] for place in places]
            histories = {key: op.histories[key] for key in written if key in op.histories}
            return WriteIntent(
                op.transaction_id, op.timestamp, op.sequence, written, values, histories
            )
        case CommitIntent():
            values = [op.values[place] for place in places]
            return CommitIntent(op.transaction_id, op.timestamp, written, values)
        case AbortIntent():
            return AbortIntent(op.transaction_id, written)
        case RemoveVersions():
            return RemoveVersions(written, [op.timestamps[place] for place in places])
        case _:
            assert_never(op)


def _divide_deletion(op: DeleteRangeOp, ranges: RangeMap, parts: Parts) -> None:
    for found in ranges.overlapping(Span(op.start, op.end)):
        shared = found.span.intersect(Span(op.start, op.end))
        assert shared is not None, (found, op)
        part = DeleteRangeOp(op.timestamp, shared.start, shared.end, op.omitted)
        parts.setdefault(found, []).append(part)


def key_count(operations: Iterable[LogicalOp]) -> int:
    """The number of keys that the operations name: the measure of a part's share of its entry."""
    count = 0
    for op in operations:
        match op:
            case (
                WriteValue(keys=named)
                | WriteVersions(keys=named)
                | WriteIntent(keys=named)
                | CommitIntent(keys=named)
                | AbortIntent(keys=named)
                | RemoveVersions(keys=named)
            ):
                count += len(named)
            case _:
                pass
    return count
