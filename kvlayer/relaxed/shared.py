"""A domain of several processes: its sequencer's state in memory that they share.

The memory holds two copies of the state and a byte that says which is valid. A step writes the
other copy and turns that byte, so a process that dies in the critical section leaves either the
state before its step or the one behind it. The lock is one that the kernel frees. Records of a step
are part of its state until they have been published; whoever finds some that may not have been
publishes them again, and readers drop doubles.

    magic  slots  domain  offset | valid  published  dirty | copy 0 | copy 1

`dirty` says that a step was under way. Who finds it set, or waits, or enters a domain that has been
busy for a second, looks for processes that are gone: each holds the lock of its slot for as long as
it lives, whatever becomes of its id. What they had in flight is ended, and its epochs are not
complete.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Protocol

from .attachment import DEATHS_LOOKED_FOR_NS, QUIESCE_WITHIN_NS, Attachment, Log, record_of
from .errors import SharedStateDamaged, SlotsTaken
from .ids import Nanoseconds
from .sequencer import Sequencer, Slot, packed_size

SLOTS_MAX = 64
"""Processes of a domain. A step costs what there are, not what there may be."""

MAGIC = b"relaxed1"
_HEADER = struct.Struct("<8sQq")
VALID = _HEADER.size
"""Where the byte is whose writing makes a step valid."""

_PUBLISHED = VALID + 1
_DIRTY = VALID + 2
_COPIES = 64
_COPY_SIZE = packed_size(SLOTS_MAX)
MEMORY_SIZE = _COPIES + 2 * _COPY_SIZE


class SharedMemory(Protocol):
    """Bytes that all processes of a domain see."""

    def read(self, start: int, end: int) -> bytes: ...

    def write(self, start: int, data: bytes) -> None:
        """Writes in order with the calls before it; only a single byte is one atom."""
        ...


class KernelLock(Protocol):
    """A lock that is free when its owner is gone."""

    def acquire(self) -> None: ...

    def release(self) -> None: ...


class Lives(Protocol):
    """Tells the slots whose processes live."""

    def take(self, slot: int) -> bool:
        """Claims a slot for as long as this process lives; False where another one has it."""
        ...

    def alive(self, slot: int) -> bool: ...

    def leave(self, slot: int) -> None: ...


class SharedAttachment:
    """A process's part in a domain that others share."""

    def __init__(
        self,
        memory: SharedMemory,
        lock: KernelLock,
        lives: Lives,
        log: Log,
        now_ns: Nanoseconds,
        *,
        pid: int,
        renew: Callable[[], Attachment],
        quiesce_within_ns: int = QUIESCE_WITHIN_NS,
        deaths_looked_for_ns: int = DEATHS_LOOKED_FOR_NS,
    ) -> None:
        """Takes a slot. Raises SharedStateDamaged, or SlotsTaken."""
        self.domain = domain_of(memory)
        self.log = log
        self._memory = memory
        self._lock = lock
        self._lives = lives
        self._now_ns = now_ns
        self._renew = renew
        self._quiesce_within_ns = quiesce_within_ns
        self._deaths_looked_for_ns = deaths_looked_for_ns
        self._looked_at_ns = 0
        self._known: Sequencer | None = None
        self._packed = b""
        """What `_known` was unpacked from, or packed into: with the domain's lock held."""
        self._slot = -1
        self._slot = self._take_slot(pid)

    def try_enter(self, *, nested: bool) -> int | None:
        with self._step() as sequencer:
            now_ns = self._now_ns()
            self._look_for_deaths(sequencer, now_ns)
            if not nested and sequencer.waits(now_ns, self._quiesce_within_ns):
                return None
            id = sequencer.enter(self._slot, now_ns)
            self._commit(sequencer)
        return id

    def count(self, id: int, events: int) -> None:
        with self._step() as sequencer:
            sequencer.count(self._slot, id, events)
            self._commit(sequencer)

    def leave(self, id: int, events: int, *, complete: bool) -> None:
        with self._step() as sequencer:
            if events:
                sequencer.count(self._slot, id, events)
            sequencer.leave(self._slot, id, self._now_ns(), complete=complete)
            self._commit(sequencer)

    def try_hold(self) -> bool:
        with self._step() as sequencer:
            if sequencer.holder:
                return False
            sequencer.holder, sequencer.outbox = self._slot + 1, []
            self._commit(sequencer)
        return True

    def release(self) -> None:
        with self._step() as sequencer:
            assert sequencer.holder == self._slot + 1, sequencer.holder
            sequencer.holder, sequencer.outbox = 0, []
            self._commit(sequencer)

    def cut(self) -> int | None:
        with self._step() as sequencer:
            return sequencer.begin if sequencer.quiescent else None

    def in_flight(self) -> Sequence[Slot]:
        with self._step() as sequencer:
            self._bury_dead(sequencer)
            return [replace(slot) for slot in sequencer.slots if slot.active]

    def close(self) -> None:
        """Leaves the domain: what this process still has in flight counts as dead."""
        with self._step() as sequencer:
            sequencer.bury(self._slot, self._now_ns())
            self._commit(sequencer)
        self._lives.leave(self._slot)

    def forked(self) -> Attachment:
        return self._renew()

    # The critical section

    @contextmanager
    def _step(self) -> Iterator[Sequencer]:
        """The state, with the lock held. What is not committed has not happened."""
        self._lock.acquire()
        try:
            memory = self._memory
            dirty = memory.read(_DIRTY, _DIRTY + 1) != b"\0"
            if not dirty:
                memory.write(_DIRTY, b"\1")
            sequencer = self._state()
            if sequencer.outbox and memory.read(_PUBLISHED, _PUBLISHED + 1) == b"\0":
                self._publish(sequencer)
            if dirty:
                self._bury_dead(sequencer)
            yield sequencer
            memory.write(_DIRTY, b"\0")
        except BaseException:
            self._known = None
            raise
        finally:
            self._lock.release()

    def _state(self) -> Sequencer:
        """The state that is valid, which is mostly the one that this process wrote last."""
        packed = _valid_copy(self._memory)
        if self._known is None or not packed.startswith(self._packed):
            self._known, self._packed = Sequencer.unpack(packed), packed
        return self._known

    def _commit(self, sequencer: Sequencer) -> None:
        """Makes a step valid, and publishes its records."""
        memory = self._memory
        other = 1 - memory.read(VALID, VALID + 1)[0]
        self._packed = sequencer.pack()
        memory.write(_COPIES + other * _COPY_SIZE, self._packed)
        memory.write(_PUBLISHED, b"\0")
        memory.write(VALID, bytes((other,)))
        self._publish(sequencer)

    def _publish(self, sequencer: Sequencer) -> None:
        for closed in sequencer.outbox:
            self.log.record(record_of(self.domain, closed))
        self._memory.write(_PUBLISHED, b"\1")

    def _look_for_deaths(self, sequencer: Sequencer, now_ns: int) -> None:
        """A batch that has died would keep quiescence away from a domain in which nobody waits."""
        if sequencer.quiescent:
            return
        since_ns = max(sequencer.busy_since, self._looked_at_ns)
        if now_ns - since_ns > self._deaths_looked_for_ns:
            self._looked_at_ns = now_ns
            self._bury_dead(sequencer)

    def _bury_dead(self, sequencer: Sequencer) -> None:
        for index, slot in enumerate(sequencer.slots):
            if slot.pid and index != self._slot and not self._lives.alive(index):
                sequencer.bury(index, self._now_ns())
                self._commit(sequencer)

    def _take_slot(self, pid: int) -> int:
        with self._step() as sequencer:
            self._bury_dead(sequencer)
            for index in range(SLOTS_MAX):
                if index == len(sequencer.slots):
                    sequencer.slots.append(Slot())
                if not sequencer.slots[index].pid and self._lives.take(index):
                    sequencer.slots[index].pid, sequencer.outbox = pid, []
                    self._commit(sequencer)
                    return index
        raise SlotsTaken(f"domain {self.domain:016x} has {SLOTS_MAX} processes: end one of them")


def new_state(memory: SharedMemory, domain: int, offset_ns: int) -> None:
    """Writes a new domain into memory that is all zero."""
    memory.write(_COPIES, Sequencer([]).pack())
    memory.write(VALID, b"\0\1\0")
    memory.write(0, _HEADER.pack(MAGIC, domain, offset_ns))


def fresh(memory: SharedMemory) -> bool:
    """Whether no domain has been written, or not wholly."""
    return memory.read(0, len(MAGIC)) == bytes(len(MAGIC))


def domain_of(memory: SharedMemory) -> int:
    """The domain whose state this is. Raises SharedStateDamaged."""
    magic, domain, _ = _HEADER.unpack(memory.read(0, _HEADER.size))
    if magic != MAGIC:
        raise SharedStateDamaged(f"shared memory begins with {magic!r}: it is no domain's")
    return int(domain)


def load_state(memory: SharedMemory) -> Sequencer:
    """The state that is valid. Raises SharedStateDamaged."""
    return Sequencer.unpack(_valid_copy(memory))


def _valid_copy(memory: SharedMemory) -> bytes:
    valid = memory.read(VALID, VALID + 1)[0]
    if valid > 1:
        raise SharedStateDamaged(f"shared memory of a domain has no copy {valid} of its state")
    start = _COPIES + valid * _COPY_SIZE
    return memory.read(start, start + _COPY_SIZE)


def ends_drawn(memory: SharedMemory) -> list[int]:
    """The ends of epochs that the last step fixed, or found fixed: where cuts may be.

    Whoever looks at the store when a step becomes valid (`VALID` is written) sees what it was at
    each of them, should it turn out to be a quiescence point.
    """
    state = load_state(memory)
    return [*(closed.end for closed in state.outbox), state.older_end or state.begin]


def offset_of(memory: SharedMemory) -> int:
    """The offset of real time that the domain's processes add to the boot clock."""
    return int(_HEADER.unpack(memory.read(0, _HEADER.size))[2])


class MappedMemory:
    """A file's bytes, mapped."""

    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, MEMORY_SIZE)

    def read(self, start: int, end: int) -> bytes:
        return self._map[start:end]

    def write(self, start: int, data: bytes) -> None:
        self._map[start : start + len(data)] = data

    def close(self) -> None:
        self._map.close()


class FileLock:
    """`flock` among processes, and a lock among the threads of this one.

    HAZARD: an open file that was inherited by a fork is the same lock as its parent's. A child
    opens the file anew, and never unlocks what it inherited.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._threads = Lock()

    def acquire(self) -> None:
        self._threads.acquire()
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except BaseException:
            self._threads.release()
            raise

    def release(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._threads.release()


class FileLives:
    """A locked file for each slot."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[int, int] = {}

    def take(self, slot: int) -> bool:
        descriptor = os.open(self._folder / f"slot-{slot}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._held[slot] = descriptor
        return True

    def alive(self, slot: int) -> bool:
        if not self.take(slot):
            return True
        self.leave(slot)
        return False

    def leave(self, slot: int) -> None:
        os.close(self._held.pop(slot))

    def abandon(self) -> None:
        """In a child: what was inherited is closed, and stays locked by the parent."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
