"""A disk that loses what was not synced.

It keeps, for each file, the bytes that are durable and the writes that are not yet. `crash()`
returns the disk that a machine finds when it comes back: each page of an unsynced write is there,
or is not, or is torn at any byte, in any order; a created or removed name may or may not be.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random

from tailrace.kvlayer.files.syncs import LaneSyncs, Syncs
from tailrace.kvlayer.process.offload import OffloadLane

PAGE_BYTES = 4096


class Operation(Enum):
    """What can be made to fail."""

    CREATE = auto()
    WRITE = auto()
    SYNC = auto()
    SYNC_FOLDER = auto()


@dataclass(slots=True)
class _Content:
    """`written` is what a reader sees; `unsynced` are the writes that `durable` lacks, in order."""

    durable: bytearray
    written: bytearray
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)


class SimFile:
    """A file of a SimDisk."""

    descriptor = None

    def __init__(self, disk: SimDisk, content: _Content) -> None:
        self._disk = disk
        self._content = content

    def pwrite(self, data: bytes, offset: int) -> None:
        self._disk.check(Operation.WRITE)
        content = self._content
        end = offset + len(data)
        if end > len(content.written):
            self._disk.take_space(end - len(content.written))
            content.written.extend(bytes(end - len(content.written)))
        content.written[offset:end] = data
        content.unsynced.append((offset, bytes(data)))

    def fdatasync(self) -> None:
        content = self._content
        self._disk.about_to_sync()
        try:
            self._disk.check(Operation.SYNC)
        except OSError:
            self._disk.lose(content)
            raise
        _extend(content.durable, len(content.written))
        for offset, data in content.unsynced:
            content.durable[offset : offset + len(data)] = data
        content.unsynced.clear()
        self._disk.sync_count += 1

    def close(self) -> None:
        """Closing makes nothing durable."""


class SimDisk:
    """The files of one folder, and what a crash would leave of them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._files: dict[str, _Content] = {}
        self._durable_names: dict[str, _Content] = {}
        self._faults: dict[Operation, list[OSError | None]] = {}
        self.space_left: int | None = None
        """Bytes before ENOSPC; None for no limit."""
        self.sync_count = 0
        self.before_sync: Callable[[], None] | None = None
        """Called when writes are about to become durable: the moment to try a crash."""

    def names(self) -> list[str]:
        return sorted(self._files)

    def create(self, name: str, size: int) -> SimFile:
        self.check(Operation.CREATE)
        if name in self._files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        self.take_space(size)
        content = _Content(durable=bytearray(), written=bytearray(size))
        self._files[name] = content
        return SimFile(self, content)

    def open(self, name: str) -> SimFile:
        return SimFile(self, self._content(name))

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        end = None if size is None else offset + size
        return bytes(memoryview(self._content(name).written)[offset:end])

    def replace(self, name: str, content: bytes) -> None:
        """As `RealDisk` does it: the new file is durable before it takes the old one's name."""
        self.check(Operation.CREATE)
        self.take_space(len(content))
        self.about_to_sync()
        self.check(Operation.SYNC)
        old = self._files.get(name)
        self._files[name] = _Content(durable=bytearray(content), written=bytearray(content))
        if old is not None and self.space_left is not None:
            self.space_left += len(old.written)
        self.sync_folder()

    def remove(self, name: str) -> None:
        content = self._content(name)
        if self.space_left is not None:
            self.space_left += len(content.written)
        del self._files[name]

    def sync_folder(self) -> None:
        self.about_to_sync()
        self.check(Operation.SYNC_FOLDER)
        self._durable_names = dict(self._files)

    def syncs(self, lane: OffloadLane) -> Syncs:
        return LaneSyncs(lane)

    def fail(self, operation: Operation, error: OSError, *, after: int = 0) -> None:
        """Makes the operation raise `error` once, after `after` more that succeed."""
        self._faults[operation] = [None] * after + [error]

    def check(self, operation: Operation) -> None:
        """Raises the fault that is due, if one is."""
        due = self._faults.get(operation)
        if due and (error := due.pop(0)) is not None:
            raise error

    def about_to_sync(self) -> None:
        if self.before_sync is not None:
            self.before_sync()

    def lose(self, content: _Content) -> None:
        """What a failed sync does: some pages arrived, and all are marked clean.

        A reader still sees the lost ones in the page cache, and a later sync succeeds without
        them. That is why a failed sync must never be retried.
        """
        for offset, data in content.unsynced:
            self._write_some(content.durable, offset, data)
        content.unsynced.clear()

    def take_space(self, size: int) -> None:
        if self.space_left is None:
            return
        if size > self.space_left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.space_left -= size

    def corrupt(self, name: str, offset: int, *, flip: int = 0xFF) -> None:
        """Changes a byte behind everyone's back."""
        content = self._content(name)
        content.written[offset] ^= flip
        if offset < len(content.durable):
            content.durable[offset] = content.written[offset]

    @property
    def unsynced_bytes(self) -> int:
        """How many bytes were written and not synced: the places where a crash can cut."""
        return sum(len(data) for content in self._files.values() for _, data in content.unsynced)

    @property
    def unsynced_writes(self) -> frozenset[tuple[str, int]]:
        """Those writes, by file and offset."""
        return frozenset(
            (name, offset)
            for name, content in self._files.items()
            for offset, _ in content.unsynced
        )

    def killed(self) -> SimDisk:
        """What the next process finds when this one dies now and the machine goes on.

        All that was written is there to read, and as little of it is durable as before.
        """
        successor = SimDisk(Random(self._random.random()))
        copies = {id(content): _copy(content) for content in self._files.values()}
        copies |= {id(c): _copy(c) for c in self._durable_names.values() if id(c) not in copies}
        successor._files = {name: copies[id(c)] for name, c in self._files.items()}
        successor._durable_names = {n: copies[id(c)] for n, c in self._durable_names.items()}
        return successor

    def crash(self, *, cut_at: int | None = None) -> SimDisk:
        """What survives a crash now. This disk is not changed.

        With `cut_at`, exactly that many of the unsynced bytes are there, counted in the order of
        writing file by file, and every name is; without it the seed decides.
        """
        survivor = SimDisk(Random(self._random.random()))
        names = dict(self._files) if cut_at is not None else self._surviving_names()
        budget = cut_at
        for name, content in sorted(names.items()):
            left = bytearray(content.durable)
            if cut_at is not None:
                _extend(left, len(content.written))
            for offset, data in content.unsynced:
                if budget is None:
                    self._write_some(left, offset, data)
                else:
                    _write(left, offset, data[:budget])
                    budget -= min(budget, len(data))
            survivor._files[name] = _Content(durable=left, written=bytearray(left))
        survivor._durable_names = dict(survivor._files)
        return survivor

    def _surviving_names(self) -> dict[str, _Content]:
        """The durable names, and those whose creation or removal may have reached the disk."""
        names: dict[str, _Content] = {}
        for name in sorted(self._durable_names.keys() | self._files.keys()):
            before, after = self._durable_names.get(name), self._files.get(name)
            content = after if before is after or self._random.random() < 0.5 else before
            if content is not None:
                names[name] = content
        return names

    def _write_some(self, target: bytearray, offset: int, data: bytes) -> None:
        """Each page of the write arrives, arrives torn, or does not arrive."""
        start = 0
        while start < len(data):
            end = min(len(data), start + PAGE_BYTES - (offset + start) % PAGE_BYTES)
            chance = self._random.random()
            if chance < 0.4:
                _write(target, offset + start, data[start:end])
            elif chance < 0.7:
                torn = self._random.randrange(end - start)
                _write(target, offset + start, data[start : start + torn])
            start = end

    def _content(self, name: str) -> _Content:
        try:
            return self._files[name]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None


def _copy(content: _Content) -> _Content:
    return _Content(content.durable[:], content.written[:], content.unsynced[:])


def _extend(target: bytearray, size: int) -> None:
    if len(target) < size:
        target.extend(bytes(size - len(target)))


def _write(target: bytearray, offset: int, data: bytes) -> None:
    if data:
        _extend(target, offset + len(data))
        target[offset : offset + len(data)] = data
