"""The feed contract: what a range feed, or any feed of values with timestamps, delivers.

A feed is a stream of `Event`s over some spans from a start timestamp (exclusive). Its promises,
which every validator in the tests is named for:

1. at-least-once: every version committed above the start arrives; duplicates come only after a
   restart, and only above the restart's timestamp;
2. after `SteadyState`, per key in ascending timestamp order;
3. after a checkpoint at `t`, no value at or below `t` in its spans is new;
4. every value is eventually followed by a checkpoint at or above it; a checkpoint that has no
   effect is to be ignored;
5. never a value at or below the start timestamp (a checkpoint may be).

Values come in batches, as parallel lists rather than an object a row: a bulk load's transaction of
a thousand rows is one `ValueBatch`. For a batch that put `a` and deleted `b` at 120:

    ValueBatch(keys=[a, b], values=[b"...", None], timestamps=[120, 120])

Source: the range feed RFC (20170613_range_feeds_storage_primitive), "Types of events" and
"Semantics".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .clock import Timestamp
from .span import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueBatch:
    """Versions of keys, in an order that ascends per key.

    `values[i]` is the body that was written (without the version header), or None where the key
    was deleted. `previous[i]`, where the feed was asked for previous values, is the body that it
    replaced. A batch never mixes keys of two keyspaces. The stage times are monotonic nanoseconds,
    zero where unknown (catch-up): when commit was called, when the entry stood in the log's buffer,
    and when it was durable.
    """

    keys: Sequence[bytes]
    values: Sequence[bytes | None]
    timestamps: Sequence[Timestamp]
    previous: Sequence[bytes | None] | None = None
    commit_called_ns: int = 0
    appended_ns: int = 0
    durable_ns: int = 0

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class DeleteRange:
    """Every key in `span` was deleted at `timestamp`.

    It stands for a deletion of each key that had a value, without naming one: versions at its own
    timestamp or above, whether they came before it or come later, are not touched. In a catch-up
    scan it comes before the values, older ones too.
    """

    span: Span
    timestamp: Timestamp


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All events at or below `resolved` in `spans` have been delivered."""

    spans: tuple[Span, ...]
    resolved: Timestamp


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The catch-up scan over `span` has ended: from here on, keys come in timestamp order."""

    span: Span


Event = ValueBatch | DeleteRange | Checkpoint | SteadyState
