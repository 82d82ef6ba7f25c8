"""Foresight: who is told of a write while it is on its way.

A commit is applied at once, and durable half a millisecond later, when the log is synced. Only then
does any feed hear of it. But whoever will have to do something about it may use that time to get
ready: a thread that sleeps, a database whose code has left the processor's caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .command import CommitIntent, LogicalOp, WriteValue
from .span import Span

Told = Callable[[], None]


class Foresight:
    """Tells watchers that a version of a key of theirs was written and is not durable yet.

    It is a hint, and no more: it comes with a write that may still be lost, says nothing of what
    was written, and may stay away.
    """

    def __init__(self) -> None:
        self._watchers: list[tuple[tuple[Span, ...], Told]] = []

    def watch(self, spans: Sequence[Span], told: Told) -> Callable[[], None]:
        """Calls `told`, which must not wait, with each such write. Returns what ends that."""
        watcher = (tuple(spans), told)
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def note(self, operations: Sequence[LogicalOp]) -> None:
        """A command with these operations was applied. Looks at the first key of each."""
        if not self._watchers:
            return
        for op in operations:
            if isinstance(op, WriteValue | CommitIntent) and op.keys:
                key = op.keys[0]
                for spans, told in self._watchers:
                    if any(span.start <= key < span.end for span in spans):
                        told()
