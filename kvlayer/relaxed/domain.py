"""A domain, as those see it who write: batches, and writes that become events.

    with domain.batch():
        domain.write(cells.exchange, "crashes", b"7", "signal", b"SIGSEGV")
        domain.write(cells.exchange, "crashes", b"7", "frames", b"31")

A write outside a batch gets one of its own. There is no getter of "the current batch": whoever
needs an id says `with domain.ensure_batch() as id`, and has one for as long as the block lasts.

HAZARD: batches are found by `contextvars`, so a task that is started inside a batch inherits it and
may outlive it, and so may a callback or a thread that was given a copy of the context. A batch that
is closed counts as none: what is written then gets another. A write that has begun before the batch
is closed holds the batch's end back until it is done. A child that is forked inside a batch
inherits its parent's: that counts as none too, and the child has a domain of its own, or a slot of
its own in the domain that it shares.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import TracebackType

from .attachment import QUIESCE_WITHIN_NS, Attachment
from .errors import BatchLimit, QuiescenceOverdue
from .events import ORDINAL_MAX, Snapshot, Write
from .ids import Nanoseconds
from .sequencer import Slot

EVENTS_HELD_MAX = 1000
"""A batch's events that are not in the log: a longer batch is written, and counted, by pieces."""

Value = bytes | None
Exchange = Callable[[bytes, str, Value], Value]
"""Stores a cell's new value and returns the one that it replaced, as one atom."""

Pause = Callable[[], None]
"""Lets a moment pass."""

PATIENCE_NS = QUIESCE_WITHIN_NS
"""How long a batch waits for quiescence before its writer is told who keeps it away."""

_fork_count = 0
_domains: weakref.WeakSet[Domain] = weakref.WeakSet()


class Domain:
    """Cells whose writes are ordered with one another, as one process sees them."""

    def __init__(
        self,
        attachment: Attachment,
        now_ns: Nanoseconds,
        pause: Pause,
        *,
        patience_ns: int = PATIENCE_NS,
    ) -> None:
        self.attachment = attachment
        self._now_ns = now_ns
        self._pause = pause
        self._patience_ns = patience_ns
        # One variable a domain, which the interpreter keeps for good: domains are few.
        self._current: ContextVar[Batch | None] = ContextVar("batch", default=None)
        _domains.add(self)

    @property
    def id(self) -> int:
        return self.attachment.domain

    def batch(self) -> BatchScope:
        """`with domain.batch():` the writes inside belong together; one inside it shadows it."""
        return BatchScope(self)

    def ensure_batch(self) -> BatchUse:
        """`with domain.ensure_batch() as id:` the batch that is there, or a short one."""
        return BatchUse(self)

    def write(self, exchange: Exchange, table: str, row: bytes, column: str, new: Value) -> Value:
        """Exchanges a cell's value and notes the event. Returns the value that was replaced.

        What `exchange` raises is raised, and is no event.
        """
        batch = self._current.get()
        if batch is None or not batch.pin():
            with BatchScope(self) as batch:
                old = exchange(row, column, new)
                batch.note((table, row, column, old, new))
            return old
        try:
            old = exchange(row, column, new)
        except BaseException:
            batch.unpin()
            raise
        batch.note_and_unpin((table, row, column, old, new))
        return old

    def note(self, table: str, row: bytes, column: str, old: Value, new: Value) -> None:
        """Notes an exchange that was made inside `ensure_batch`, before that block ends."""
        batch = self._current.get()
        assert batch is not None, "an exchange outside ensure_batch has no batch"
        batch.note((table, row, column, old, new))

    def quiescence(self) -> Quiescence:
        """`with domain.quiescence() as cut:` no batch is in flight and none begins inside.

        What is read of the store there is its state at `cut`, for a `Snapshot`.
        """
        return Quiescence(self)

    def in_flight(self) -> Sequence[Slot]:
        """The processes that have batches in flight. Those of processes that have died are ended
        first: for whoever reads the log of a domain in which nobody writes."""
        return self.attachment.in_flight()

    def snapshot(self, read: Callable[[], Mapping[tuple[str, bytes, str], bytes]]) -> int:
        """Keeps the whole store in the log: what `read` returns at quiescence, by table, row and
        column. A reader needs it of a domain that it has not seen before, and behind a death.
        Returns the cut. Raises QuiescenceOverdue, and what the log raises."""
        with self.quiescence() as cut:
            cells = read()
        self.attachment.log.snapshot(Snapshot(domain=self.id, cut=cut, cells=cells))
        return cut

    def _open(self, outer: Batch | None) -> Batch:
        nested = outer is not None and outer.open
        id = self.attachment.try_enter(nested=nested)
        if id is None:
            since = self._now_ns()
            while (id := self.attachment.try_enter(nested=nested)) is None:
                self._wait(since)
        return Batch(self.attachment, id)

    def _wait(self, since_ns: int) -> None:
        """Raises QuiescenceOverdue when it has waited long enough."""
        busy = self.attachment.in_flight()  # which also ends those who died
        if self._now_ns() - since_ns > self._patience_ns:
            who = [
                f"process {slot.pid or os.getpid()} has {slot.active} in flight, the first since "
                f"batch {slot.since:016x}"
                for slot in busy
            ]
            raise QuiescenceOverdue(
                f"domain {self.id:016x} has to come to rest before a new batch begins: "
                + ("; ".join(who) or "somebody looks at it")
            )
        self._pause()

    def forked(self) -> None:
        """Attaches a child process anew: its parent's batches are of no use to it."""
        self.attachment = self.attachment.forked()


class Batch:
    """A write batch: its id, its events that are not in the log, and who is writing in it.

    It ends when it is closed and nobody has it pinned; whoever is last ends it.
    """

    __slots__ = ("_attachment", "_lock", "_pins", "_process", "_writes", "_written",
                 "failed", "id", "open")  # fmt: skip

    def __init__(self, attachment: Attachment, id: int) -> None:
        self.id = id
        self.open = True
        self.failed = False
        """Whether an event could not be kept: the epoch is not complete."""
        self._attachment = attachment
        self._process = _fork_count
        self._writes: list[Write] = []
        self._written = 0
        self._pins = 1
        self._lock = threading.Lock()

    def pin(self) -> bool:
        """Holds the batch's end back; False where it is closed, or another process's."""
        if self._process != _fork_count:
            return False
        with self._lock:
            if not self.open:
                return False
            self._pins += 1
        return True

    def unpin(self) -> None:
        with self._lock:
            self._pins -= 1
            last = not self._pins
        if last:
            self._end()

    def close(self) -> None:
        """Nobody pins it any more."""
        with self._lock:
            self.open = False
        self.unpin()

    def note(self, write: Write) -> None:
        """Notes an event. Called with the batch pinned. Raises OSError where it cannot be kept."""
        with self._lock:
            self._writes.append(write)
            full = len(self._writes) >= EVENTS_HELD_MAX
        if full:
            self._attachment.count(self.id, self._flush())

    def note_and_unpin(self, write: Write) -> None:
        """Both, with the lock taken once. Raises OSError where an event cannot be kept."""
        with self._lock:
            self._writes.append(write)
            busy = self._pins > 1 and len(self._writes) < EVENTS_HELD_MAX
            if busy:
                self._pins -= 1
        if busy:
            return
        try:
            if len(self._writes) >= EVENTS_HELD_MAX:
                self._attachment.count(self.id, self._flush())
        finally:
            self.unpin()

    def _end(self) -> None:
        if self._process != _fork_count:
            return
        kept = 0
        try:
            kept = self._flush()
        finally:
            self._attachment.leave(self.id, kept, complete=not self.failed)

    def _flush(self) -> int:
        """Hands the events noted to the log. Returns how many; raises OSError or BatchLimit."""
        with self._lock:
            noted, self._writes = self._writes, []
            first = self._written
            self._written += len(noted)
        if not noted:
            return 0
        attachment, id = self._attachment, self.id
        try:
            if self._written > ORDINAL_MAX:
                raise BatchLimit(f"batch {id:016x} has more than {ORDINAL_MAX} events: end it")
            attachment.log.append(attachment.domain, id, first, noted)
        except BaseException:
            self.failed = True
            raise
        return len(noted)


class BatchScope:
    """The block of `Domain.batch`."""

    __slots__ = ("_batch", "_domain", "_token")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def __enter__(self) -> Batch:
        current = self._domain._current
        self._batch = self._domain._open(current.get())
        self._token: Token[Batch | None] = current.set(self._batch)
        return self._batch

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._domain._current.reset(self._token)
        self._batch.close()


class BatchUse:
    """The block of `Domain.ensure_batch`."""

    __slots__ = ("_batch", "_domain", "_scope")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._scope: BatchScope | None = None

    def __enter__(self) -> int:
        batch = self._domain._current.get()
        if batch is None or not batch.pin():
            self._scope = BatchScope(self._domain)
            return self._scope.__enter__().id
        self._batch = batch
        return batch.id

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._scope is not None:
            self._scope.__exit__(kind, error, trace)
        else:
            self._batch.unpin()


class Quiescence:
    """The block of `Domain.quiescence`."""

    __slots__ = ("_domain",)

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def __enter__(self) -> int:
        domain, attachment = self._domain, self._domain.attachment
        current = domain._current.get()
        if current is not None and current.open:
            raise QuiescenceOverdue(
                f"batch {current.id:016x} waits for its own end: leave it first"
            )
        since_ns = domain._now_ns()
        while not attachment.try_hold():
            domain._wait(since_ns)
        try:
            while (cut := attachment.cut()) is None:
                domain._wait(since_ns)
        except BaseException:
            attachment.release()
            raise
        return cut

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._domain.attachment.release()


def _forked() -> None:
    global _fork_count
    _fork_count += 1
    for domain in list(_domains):
        domain.forked()


os.register_at_fork(after_in_child=_forked)
