"""A run of commits to a raw keyspace that became durable together, for feeds as one entry.

    entry 7  a@100
    entry 8  b@101   ->   entry 9  a@100, b@101, a@102
    entry 9  a@102

Raw keyspaces are written by many commits of a key each, and an entry costs a range and each of its
feeds what ten rows do. The versions of a key stay in the order of the log.
"""

from __future__ import annotations

from ..clock import ZERO, Timestamp
from ..command import Command, WriteValue, WriteVersions
from ..keys import RAW_KIND
from ..rangefeed import DurableEntry


class CommitRun:
    """Neighbours in the log of which each does nothing but write to one range, in `RAW_KIND`. The
    stage times are those of the first, which waited longest."""

    __slots__ = ("_first", "_keys", "_timestamps", "_values", "byte_count", "index")

    def __init__(self, first: DurableEntry, op: WriteValue) -> None:
        self._first = first
        self._timestamps: list[Timestamp] = []
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self.byte_count = 0
        self.add(first.index, op, first.byte_count)

    def add(self, index: int, op: WriteValue, byte_count: int) -> None:
        self.index = index
        self.byte_count += byte_count
        self._keys += op.keys
        self._values += op.values
        self._timestamps += [op.timestamp] * len(op.keys)

    def entry(self) -> DurableEntry:
        """One entry of all the commits, at the index of the last."""
        first = self._first
        if first.index == self.index:
            return first
        written = WriteVersions(self._timestamps, self._keys, self._values)
        return DurableEntry(
            self.index,
            Command(first.command.range_id, ZERO, [written]),
            self.byte_count,
            first.commit_called_ns,
            first.appended_ns,
            first.durable_ns,
        )


def raw_commit(command: Command) -> WriteValue | None:
    """Returns the write of a command that only writes to a raw keyspace; None of any other."""
    ops = command.ops
    if len(ops) != 1 or type(op := ops[0]) is not WriteValue:
        return None
    return op if op.keys and op.keys[0].startswith(RAW_KIND) else None
