"""Ranges: contiguous spans of keys, each served as one unit.

A *range* takes the commands on its span, one step of the loop each: it applies them to the engine,
appends them to the log, and hands them to its feeds once they are durable. It promises that what a
step sees was not changed by another, and that nothing it did is undone short of a crash that robs
the log of entries that were never durable.

A store begins with one range that holds every key. What belongs to a range here (lock table,
timestamp cache, feeds, garbage-collection threshold) is reached through its range, so that there
can be many.

Never knows: tables, rows, SQL.
"""

from .collection import collect_garbage
from .descriptor import RangeDescriptor
from .range import Range, StoreParts
from .recovery import recover, replay

__all__ = ["Range", "RangeDescriptor", "StoreParts", "collect_garbage", "recover", "replay"]
