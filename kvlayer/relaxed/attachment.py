"""A process's access to a domain: its sequencer behind a lock, and the log for its lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Protocol

from .events import Event, Record, Snapshot, Write, events_of
from .ids import Nanoseconds
from .sequencer import ClosedEpoch, Sequencer, Slot

QUIESCE_WITHIN_NS = 600 * 1_000_000_000
"""How long a domain may be busy before new batches wait for its quiescence: ten minutes."""


DEATHS_LOOKED_FOR_NS = 1_000_000_000
"""How long a shared domain is busy before whoever enters it looks for processes that have died, and
how long until it looks again."""


class Log(Protocol):
    """A process's log. A line that it was given survives the process."""

    def append(self, domain: int, id: int, ordinal: int, writes: Sequence[Write]) -> None:
        """Keeps events of one batch, the first of which has this ordinal. Raises OSError when it
        cannot, and none is kept."""
        ...

    def record(self, record: Record) -> None:
        """Keeps a record. It may come twice, when a process dies behind it. Raises OSError."""
        ...

    def snapshot(self, snapshot: Snapshot) -> None:
        """Keeps the store at a cut. Raises OSError."""
        ...


class Attachment(Protocol):
    """One process's part in a domain."""

    domain: int
    log: Log

    def try_enter(self, *, nested: bool) -> int | None:
        """A batch's id; None while new batches wait. A nested one never does: its outer batch is
        what they would wait for."""
        ...

    def count(self, id: int, events: int) -> None:
        """Counts events of a batch that goes on."""
        ...

    def leave(self, id: int, events: int, *, complete: bool) -> None:
        """Counts the last events of a batch, and ends it."""
        ...

    def try_hold(self) -> bool:
        """Makes new batches wait; False while another process does."""
        ...

    def release(self) -> None:
        """New batches wait no more."""
        ...

    def cut(self) -> int | None:
        """The end of the last epoch, if the domain is quiescent."""
        ...

    def in_flight(self) -> Sequence[Slot]:
        """The processes with batches in flight; those that died are ended first."""
        ...

    def forked(self) -> Attachment:
        """The attachment of a child of this process, in which this one is of no use."""
        ...


class MemoryLog:
    """Lines in lists: for a log that is read where it is written."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.records: list[Record] = []
        self.snapshots: list[Snapshot] = []

    def append(self, domain: int, id: int, ordinal: int, writes: Sequence[Write]) -> None:
        self.events += events_of(domain, id, ordinal, writes)

    def record(self, record: Record) -> None:
        self.records.append(record)

    def snapshot(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)


class LocalAttachment:
    """A domain of one process. A child of it has a domain of its own."""

    def __init__(
        self,
        domain: int,
        log: Log,
        now_ns: Nanoseconds,
        *,
        renew: _Renew,
        quiesce_within_ns: int = QUIESCE_WITHIN_NS,
    ) -> None:
        self.domain = domain
        self.log = log
        self._now_ns = now_ns
        self._renew = renew
        self._quiesce_within_ns = quiesce_within_ns
        self._sequencer = Sequencer([Slot()])
        self._lock = Lock()

    def try_enter(self, *, nested: bool) -> int | None:
        with self._lock:
            now_ns, sequencer = self._now_ns(), self._sequencer
            if not nested and sequencer.waits(now_ns, self._quiesce_within_ns):
                return None
            return sequencer.enter(0, now_ns)

    def count(self, id: int, events: int) -> None:
        with self._lock:
            self._sequencer.count(0, id, events)

    def leave(self, id: int, events: int, *, complete: bool) -> None:
        with self._lock:
            sequencer = self._sequencer
            if events:
                sequencer.count(0, id, events)
            sequencer.leave(0, id, self._now_ns(), complete=complete)
            for closed in sequencer.outbox:
                self.log.record(record_of(self.domain, closed))

    def try_hold(self) -> bool:
        with self._lock:
            held = not self._sequencer.holder
            if held:
                self._sequencer.holder = 1
            return held

    def release(self) -> None:
        with self._lock:
            self._sequencer.holder = 0

    def cut(self) -> int | None:
        with self._lock:
            return self._sequencer.begin if self._sequencer.quiescent else None

    def in_flight(self) -> Sequence[Slot]:
        with self._lock:
            return [replace(slot) for slot in self._sequencer.slots if slot.active]

    def forked(self) -> Attachment:
        return self._renew()


class _Renew(Protocol):
    def __call__(self) -> Attachment: ...


def record_of(domain: int, closed: ClosedEpoch) -> Record:
    return Record(
        domain=domain,
        begin=closed.begin,
        end=closed.end,
        count=closed.count,
        complete=closed.complete,
    )
