"""Disks: the files of one folder, as the log needs them.

Every call blocks and is made through `Offload`, but for a `pwrite` of a few pages, which the system
takes into its cache; `pwrite`, `fdatasync` and `posix_fallocate` release the interpreter lock. What
a crash leaves: bytes that `fdatasync` returned for, and names that `sync_folder` returned for;
anything else may be there, may be torn, or may be gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Protocol

from ..process.offload import OffloadLane
from .spare_descriptors import SpareDescriptors
from .syncs import LaneSyncs, Syncs, syncs_of

Open = Callable[..., int]
"""`os.open`, or one that has spare descriptors."""

ZEROS = bytes(1 << 20)

NEW_SUFFIX = ".new"
"""The suffix of the file that `replace_file` writes beside the old one."""


class DiskFile(Protocol):
    """An open file that is written at offsets."""

    @property
    def descriptor(self) -> int | None:
        """The system's; None where the file is no file of the system."""
        ...

    def pwrite(self, data: bytes, offset: int) -> None:
        """Writes all of `data`. Raises OSError, perhaps after writing a part."""
        ...

    def fdatasync(self) -> None:
        """Makes every write before it durable. Raises OSError: then nothing is known of them."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """The files of one folder."""

    def names(self) -> list[str]:
        """The files there are, sorted."""
        ...

    def create(self, name: str, size: int) -> DiskFile:
        """A new file of `size` (one or more) zero bytes, with their space taken.

        Raises FileExistsError; OSError (ENOSPC) leaving no file behind. Neither the file nor its
        name is durable before `fdatasync` and `sync_folder`.
        """
        ...

    def open(self, name: str) -> DiskFile:
        """An existing file, for writing. Raises FileNotFoundError."""
        ...

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes from `offset`, to the end when `size` is None; fewer where the file ends.

        Raises FileNotFoundError.
        """
        ...

    def remove(self, name: str) -> None:
        """Raises FileNotFoundError. Not durable before `sync_folder`."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Makes a small file durable, so that a crash leaves the old content or the new.

        It may or may not be there yet. Raises OSError: then it holds what it held.
        """
        ...

    def sync_folder(self) -> None:
        """Makes names durable: creations and removals."""
        ...

    def syncs(self, lane: OffloadLane) -> Syncs:
        """Syncs of these files beside the loop that runs, by the lane where there is no other way.
        Does not block."""
        ...


class _RealFile:
    """A file by its descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def pwrite(self, data: bytes, offset: int) -> None:
        written = os.pwrite(self.descriptor, data, offset)
        while written < len(data):  # a signal, or more than 2 GiB
            written += os.pwrite(self.descriptor, memoryview(data)[written:], offset + written)

    def fdatasync(self) -> None:
        os.fdatasync(self.descriptor)

    def close(self) -> None:
        os.close(self.descriptor)


class RealDisk:
    """A folder of the machine. Makes it if it is missing (its parent must be there).

    Folder and files are their owner's alone. Files are opened out of `spares` where the process has
    no more descriptors.
    """

    def __init__(self, path: Path, spares: SpareDescriptors | None = None) -> None:
        self.path = path
        self._open = os.open if spares is None else spares.open
        path.mkdir(exist_ok=True, mode=0o700)

    def names(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.path) if entry.is_file())

    def create(self, name: str, size: int) -> DiskFile:
        path = self.path / name
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = self._open(path, flags, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
            _fill_with_zeros(descriptor, size)
        except OSError:
            os.close(descriptor)
            os.unlink(path)
            raise
        return _RealFile(descriptor)

    def open(self, name: str) -> DiskFile:
        return _RealFile(self._open(self.path / name, os.O_RDWR | os.O_CLOEXEC))

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        with open(self.path / name, "rb", buffering=0, opener=self._open) as file:
            file.seek(offset)
            # A raw read may return less than it was asked for, and `read(-1)` loops.
            return file.read(-1) if size is None else _read_all(file, size)

    def remove(self, name: str) -> None:
        os.unlink(self.path / name)

    def replace(self, name: str, content: bytes) -> None:
        replace_file(self.path / name, content, self._open)

    def sync_folder(self) -> None:
        sync_folder(self.path, self._open)

    def syncs(self, lane: OffloadLane) -> Syncs:
        return syncs_of(lane)


def _fill_with_zeros(descriptor: int, size: int) -> None:
    """Zeros are written, not merely reserved: the first write into a reserved extent makes the
    file system journal its conversion, and a 250 kB group then syncs in 0.9 ms instead of 0.2.

    Each piece is synced by itself, so that a commit beside it waits for one piece at most.
    """
    for offset in range(0, size, len(ZEROS)):
        os.pwrite(descriptor, ZEROS[: size - offset], offset)
        os.fdatasync(descriptor)


def _read_all(file: FileIO, size: int) -> bytes:
    parts = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def replace_file(path: Path, content: bytes, open: Open = os.open) -> None:
    """Writes a small file so that a crash leaves the old content or the new, never a mixture.

    Only its owner may read it.
    """
    temporary = path.with_name(path.name + NEW_SUFFIX)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    descriptor = open(temporary, flags, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)
    sync_folder(path.parent, open)


def sync_folder(path: Path, open: Open = os.open) -> None:
    """Makes the names in a folder durable."""
    descriptor = open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _MemoryFile:
    descriptor = None

    def __init__(self, content: bytearray) -> None:
        self._content = content

    def pwrite(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        if end > len(self._content):
            self._content.extend(bytes(end - len(self._content)))
        self._content[offset:end] = data

    def fdatasync(self) -> None:
        """Does nothing: the disk ends with the process."""

    def close(self) -> None:
        """Does nothing: there are no descriptors."""


class MemoryDisk:
    """Files that live as long as their process: for `:memory:` stores."""

    def __init__(self) -> None:
        self._files: dict[str, bytearray] = {}

    def names(self) -> list[str]:
        return sorted(self._files)

    def create(self, name: str, size: int) -> DiskFile:
        if name in self._files:
            raise FileExistsError(name)
        self._files[name] = bytearray(size)
        return _MemoryFile(self._files[name])

    def open(self, name: str) -> DiskFile:
        return _MemoryFile(self._content(name))

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        end = None if size is None else offset + size
        return bytes(memoryview(self._content(name))[offset:end])

    def remove(self, name: str) -> None:
        self._content(name)
        del self._files[name]

    def replace(self, name: str, content: bytes) -> None:
        self._files[name] = bytearray(content)

    def sync_folder(self) -> None:
        """Does nothing: the disk ends with the process."""

    def syncs(self, lane: OffloadLane) -> Syncs:
        return LaneSyncs(lane)

    def _content(self, name: str) -> bytearray:
        try:
            return self._files[name]
        except KeyError:
            raise FileNotFoundError(name) from None
