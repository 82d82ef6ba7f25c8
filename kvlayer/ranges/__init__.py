"""Ranges: contiguous spans of keys, which together are the store.

A *range* has what belongs to a span alone: its feeds, its garbage-collection thresholds, its size
and load, the greatest timestamp written. The *range map* says which range holds a key. The
*range store* is what transactions see: it takes operations on any keys, evaluated in one step of
the loop, divides them by range, applies them and appends them to the log as one command, and hands
each range its part once it is durable. It promises that what a step sees was not changed by
another, and that nothing it did is undone short of a crash that robs the log of entries that were
never durable.

A store begins with one range. Ranges *split* at a key and *merge* with the one behind them, each in
one entry of the log: when they are asked to, or when the *range queue* finds them too large, too
busy or too small.

Never knows: tables, rows, SQL.
"""

from .collection import collect_garbage
from .ingest import carry_out
from .leadership import change_role
from .parts import StoreParts
from .queue import RangeQueue
from .range_info import RangedStore, RangeInfo
from .range_store import RangeStore
from .recovery import begin_incarnation, load_ranges, recover, replay

__all__ = [
    "RangeInfo",
    "RangeQueue",
    "RangeStore",
    "RangedStore",
    "StoreParts",
    "begin_incarnation",
    "carry_out",
    "change_role",
    "collect_garbage",
    "load_ranges",
    "recover",
    "replay",
]
