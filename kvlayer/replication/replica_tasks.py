"""Tasks of a replica: the parts of it that its source sends each by itself.

    open [a, m) of [a, z)     [a, m) is epoch 1's, and [m, z) is nobody's: resolved 0
    open [m, z) of [a, z)     [m, z) is epoch 2's
    epoch 1 resolves 30       resolved 0, of [m, z)
    epoch 2 resolves 40       resolved 30
    open [a, k) of [a, z)     [a, k) is epoch 3's, from 30 on, and [k, m) is nobody's, at 30
    epoch 1 sends             refused: its task is no more

The tasks of a replica cover what its source sends of it, and what is resolved of the replica is the
least of theirs. Each opening has an epoch of its own; it takes its keys from whatever tasks had
them, and those are over, also where some of their keys are left.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from ..clock import Timestamp
from ..span import Span


class ReplicaTask(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A part of a replica, and how far it has come. Epoch zero is of nobody.

    `note` is what its source has left for itself.
    """

    start: bytes
    end: bytes
    epoch: int = 0
    resolved: Timestamp
    note: bytes = b""

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


Tasks = tuple[ReplicaTask, ...]


def opened(tasks: Tasks, span: Span, whole: Span, *, epoch: int, resolved: Timestamp) -> Tasks:
    """The tasks that cover `whole` when `span` of it is opened. What had no task is `resolved`."""
    assert whole.covers(span), (span, whole)
    pieces = _tiles(tasks, whole, resolved)
    left = [cut for piece in pieces for cut in _cut(piece, piece.span.minus(span))]
    under = [piece for piece in pieces if piece.span.overlaps(span)]
    same = next((piece.note for piece in under if piece.span == span), b"")
    least = min(piece.resolved for piece in under)
    task = ReplicaTask(start=span.start, end=span.end, epoch=epoch, resolved=least, note=same)
    found = tuple(sorted([*left, task], key=lambda each: each.start))
    assert all(a.end == b.start for a, b in pairwise(found)), found
    return found


def least_resolved(tasks: Tasks) -> Timestamp:
    return min(task.resolved for task in tasks)


def _tiles(tasks: Tasks, whole: Span, resolved: Timestamp) -> list[ReplicaTask]:
    """The tasks within `whole`, and one of nobody in each gap."""
    gaps = [whole]
    for task in tasks:
        gaps = [left for gap in gaps for left in gap.minus(task.span)]
    within = [(task, part) for task in tasks if (part := task.span.intersect(whole)) is not None]
    return [
        *[each for task, part in within for each in _cut(task, [part])],
        *[ReplicaTask(start=gap.start, end=gap.end, resolved=resolved) for gap in gaps],
    ]


def _cut(task: ReplicaTask, parts: list[Span]) -> list[ReplicaTask]:
    """The task without the `parts`: of nobody, unless it is all of it."""
    return [
        task
        if part == task.span
        else ReplicaTask(start=part.start, end=part.end, resolved=task.resolved)
        for part in parts
    ]
