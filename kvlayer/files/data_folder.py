"""The data folder: where a store's files lie, and who may open them.

    LOCK            held by the process that serves the folder; holds its process id
    FORMAT          the version of everything below, in decimal
    CLOCK           the clock's durable upper bound, in decimal, and its CRC-32, in hexadecimal
    log/            the segments of the command log
    engine/         RocksDB
    checkpoint/     a state of the engine while a backup reads it

A folder is made in such an order that FORMAT comes last: one without it holds nothing yet that
anybody was told is durable, and making it can simply begin again. One with it lacks nothing: all
other names were durable before, the engine's too, which RocksDB would leave to chance.

Nobody but its owner may enter the folder (mode 0700, made so where it was not), and the files that
are made here are its owner's alone (0600).
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from pathlib import Path
from zlib import crc32

from ..clock import ZERO, Timestamp
from .disk import NEW_SUFFIX, Disk, RealDisk, replace_file, sync_folder
from .spare_descriptors import SpareDescriptors

FORMAT_VERSION = 3
"""1: an entry of the time index names one key. 2: it may list several. 3: CLOCK has a checksum."""

FORMATS_READ = ("1", "2", "3")
FORMAT, CLOCK, LOG, ENGINE, CHECKPOINT = "FORMAT", "CLOCK", "log", "engine", "checkpoint"
_LOCK = "LOCK"

_BOUND = re.compile(rb"(?P<bound>[0-9]+)(?: (?P<checksum>[0-9a-f]{8}))?\n")
"""The content of CLOCK. Formats 1 and 2 have no checksum."""


class DataFolderError(Exception):
    """The folder cannot be opened; the message names it, and says why and what to do."""


class ClockBoundFile:
    """The clock's bound in a small file that is replaced as a whole; `place` names the disk."""

    def __init__(self, disk: Disk, place: str) -> None:
        self._disk = disk
        self._place = place

    def load(self) -> Timestamp:
        """Raises DataFolderError when the file does not hold a bound, or not the one saved."""
        try:
            found = _BOUND.fullmatch(self._disk.read(CLOCK))
        except FileNotFoundError:
            found = None
        if found is None or found["checksum"] not in (None, _checksum(found["bound"])):
            raise DataFolderError(
                f"{self._place}/{CLOCK} is damaged: without the clock's bound timestamps could "
                "repeat; restore the file from a copy of this data folder, or the folder from a "
                "backup"
            )
        return Timestamp(int(found["bound"]))

    def save(self, bound: Timestamp) -> None:
        text = b"%d" % bound
        self._disk.replace(CLOCK, b"%s %s\n" % (text, _checksum(text)))


def _checksum(bound: bytes) -> bytes:
    return b"%08x" % crc32(bound)


class DataFolder:
    """An opened data folder. It stays locked until `close`, or until the process ends."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock
        self._spares = SpareDescriptors()
        self.disk = RealDisk(path / LOG, self._spares)
        self.engine_path = path / ENGINE
        self.clock_bounds = ClockBoundFile(RealDisk(path, self._spares), str(path))

    @classmethod
    def open(cls, path: Path) -> DataFolder:
        """Locks the folder, and makes it if there is none. Raises DataFolderError."""
        _make_folder(path)
        _check_format(path)  # before the lock too, so that a folder of others stays as it was
        lock = _take_lock(path)
        try:
            _check_format(path)
            found = (path / FORMAT).exists()
            if found:
                _check_whole(path)
            folder = cls(path, lock)
            if found:
                folder._note_format()  # before anything is written by it
            else:
                folder._make()
            folder._make_private()
            shutil.rmtree(path / CHECKPOINT, ignore_errors=True)  # its backup died with a process
        except BaseException:
            os.close(lock)
            raise
        return folder

    def _make(self) -> None:
        self.engine_path.mkdir(exist_ok=True, mode=0o700)
        self.clock_bounds.save(ZERO)
        sync_folder(self.path)
        self._note_format()

    def _note_format(self) -> None:
        """An earlier version of Tailrace no longer opens the folder."""
        noted = f"{FORMAT_VERSION}\n".encode("ascii")
        if not (self.path / FORMAT).exists() or (self.path / FORMAT).read_bytes() != noted:
            replace_file(self.path / FORMAT, noted)

    def _make_private(self) -> None:
        """Also a folder that was made by others' leave, or by an earlier version."""
        for private in (self.path, self.engine_path, self.disk.path):
            private.chmod(0o700)
        for name in (FORMAT, CLOCK):
            (self.path / name).chmod(0o600)
        for name in self.disk.names():
            (self.disk.path / name).chmod(0o600)

    def close(self) -> None:
        """Lets others open the folder. Closing twice is closing once."""
        if self._lock is not None:
            self._spares.close()
            os.close(self._lock)
            self._lock = None


def store_files(path: Path) -> list[str]:
    """The names of the files that are the store in a folder that nobody writes to, FORMAT aside."""
    names = [
        f"{room}/{entry.name}"
        for room in (ENGINE, LOG)
        for entry in sorted((path / room).iterdir())
        if entry.name != _LOCK
    ]
    return [CLOCK, *names]


def _make_folder(path: Path) -> None:
    """Makes the folder and its parents where they are missing, durably."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in missing:
            sync_folder(each.parent)
    except FileExistsError as error:
        raise DataFolderError(f"data folder {path} is a file: name a folder") from error
    except OSError as error:
        raise DataFolderError(f"data folder {path} cannot be made: {error.strerror}") from error


def _take_lock(path: Path) -> int:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(lock, 0o600)
    except OSError as error:
        raise DataFolderError(f"data folder {path} cannot be locked: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(lock, 32).decode("ascii", "replace").strip()
        os.close(lock)
        by = f" by process {holder}" if holder.isdecimal() else ""
        raise DataFolderError(
            f"data folder {path} is in use{by}: one process at a time may open it; "
            "stop the other, or connect to its server"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
    return lock


def _check_format(path: Path) -> None:
    try:
        text = (path / FORMAT).read_text("ascii", "replace").strip()
    except FileNotFoundError:
        _check_empty(path)
        return
    if text not in FORMATS_READ:
        raise DataFolderError(
            f"data folder {path} has format {text!r}, and this version of Tailrace reads formats "
            f"up to {FORMAT_VERSION}: open it with the version that wrote it"
        )


def _check_whole(path: Path) -> None:
    """Refuses a folder in which a part of the store is missing."""
    for name in (CLOCK, LOG, ENGINE):
        if not (path / name).exists():
            raise DataFolderError(
                f"data folder {path} is damaged: {name} is missing; restore it from a backup"
            )


def _check_empty(path: Path) -> None:
    """Refuses to make a data folder among files that are not ours."""
    ours = {_LOCK, FORMAT, CLOCK, LOG, ENGINE, FORMAT + NEW_SUFFIX, CLOCK + NEW_SUFFIX}
    others = sorted(entry.name for entry in path.iterdir() if entry.name not in ours)
    if others:
        raise DataFolderError(
            f"folder {path} is not a data folder and not empty (it holds {others[0]!r}): "
            "name an empty or a new folder"
        )
