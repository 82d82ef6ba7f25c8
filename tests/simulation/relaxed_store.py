"""A relaxed store and the machine under it, for simulations: every call hands the baton over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tailrace.kvlayer.relaxed import shared
from tailrace.kvlayer.relaxed.attachment import Attachment
from tailrace.kvlayer.relaxed.events import Line, Record, Snapshot, Write, events_of
from tests.simulation.baton import Baton, Process

Place = tuple[str, bytes, str]
State = dict[Place, bytes]


class RelaxedCells:
    """The store: cells, each exchanged as one atom, and nothing else."""

    def __init__(self, baton: Baton) -> None:
        self.cells: State = {}
        self._baton = baton

    def exchange(self, table: str, row: bytes, column: str, new: bytes | None) -> bytes | None:
        self._baton.pause()
        old = self.cells.pop((table, row, column), None)
        if new is not None:
            self.cells[table, row, column] = new
        self._baton.pause()
        return old


class SimMemory:
    """Shared memory, which also records the store whenever an epoch gets its end.

    The record is made by the step that draws the end, with the lock held: the oracle of what the
    store was at that cut, should it turn out to be one.
    """

    def __init__(self, baton: Baton, store: RelaxedCells) -> None:
        self.cuts: dict[int, State] = {}
        self._bytes = bytearray(shared.MEMORY_SIZE)
        self._baton = baton
        self._store = store
        self.quiet = True
        """Whether writing hands the baton over not at all: before the run, and behind it."""

    def read(self, start: int, end: int) -> bytes:
        return bytes(self._bytes[start:end])

    def write(self, start: int, data: bytes) -> None:
        if not self.quiet:
            self._baton.pause()
        self._bytes[start : start + len(data)] = data
        if start == shared.VALID and not self.quiet:
            shared.load_state(self).check_invariants()
            for end in shared.ends_drawn(self):
                self.cuts.setdefault(end, dict(self._store.cells))


class SimLock:
    """A lock that the kernel frees."""

    def __init__(self, baton: Baton, counts: Counter[str]) -> None:
        self.owner: Process | None = None
        self._baton = baton
        self._counts = counts

    def acquire(self) -> None:
        self._baton.pause()
        while self.owner is not None:
            self._baton.pause()
        self.owner = self._baton.process

    def release(self) -> None:
        self._baton.check()
        self.owner = None

    def freed_by(self, process: Process) -> None:
        """The kernel's part in a death."""
        if self.owner is process:
            self.owner = None
            self._counts["killed in the critical section"] += 1


class SimLives:
    """Whose slots are whose."""

    def __init__(self, baton: Baton, owners: dict[int, Process]) -> None:
        self._baton = baton
        self._owners = owners

    def take(self, slot: int) -> bool:
        self._baton.check()
        if self.alive(slot):
            return False
        self._owners[slot] = self._baton.process
        return True

    def alive(self, slot: int) -> bool:
        owner = self._owners.get(slot)
        return owner is not None and not owner.dead

    def leave(self, slot: int) -> None:
        del self._owners[slot]


class SimLog:
    """A process's segment: what was appended stays, whoever dies."""

    def __init__(self, baton: Baton) -> None:
        self.lines: list[Line] = []
        self._baton = baton

    def append(self, domain: int, id: int, ordinal: int, writes: Sequence[Write]) -> None:
        self._baton.pause()
        self.lines += events_of(domain, id, ordinal, writes)
        self._baton.pause()

    def record(self, record: Record) -> None:
        self._baton.pause()
        self.lines.append(record)

    def snapshot(self, snapshot: Snapshot) -> None:
        self._baton.pause()
        self.lines.append(snapshot)


def no_child() -> Attachment:
    raise AssertionError("nobody forks in a simulation")
