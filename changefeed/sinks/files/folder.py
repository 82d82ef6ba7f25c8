"""The folder of a feed: files appear in it whole, or not at all.

    .tailrace-00000c5b…/3          what is being written, under a number
    .tailrace-00000c5b…-owners/…   the incarnations of the store that write it (`owners`)
    2024-01-31/2024…-orders-3.ndjson   what is complete

A file is written under the hidden folder of its feed, synced, renamed to its place, and the place's
folder is synced. What a crash leaves in the hidden folder is removed when the feed opens it again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import IO, Protocol

from ....kvlayer.clock import Timestamp
from .names import job_part, last_time, owners_folder


class Folder(Protocol):
    """The files of one feed. Every method does I/O and raises OSError: call it in a lane."""

    @property
    def shown(self) -> str:
        """The folder, as errors name it."""
        ...

    @property
    def late(self) -> bool:
        """Whether a file may yet appear that was given up: an answer of a server that is lost."""
        ...

    def open(self) -> None:
        """Makes the folder ready, without what an earlier attempt left unfinished."""
        ...

    def begin(self, number: int) -> IO[bytes]:
        """A file that is not there yet, to be written."""
        ...

    def publish(self, number: int, name: str) -> None:
        """The file `number`, closed by its writer, is complete: it appears under `name`."""
        ...

    def close(self) -> None:
        """Removes what is unfinished."""
        ...

    def last_time(self) -> Timestamp:
        """The greatest timestamp that a file of the feed is named by; zero where there is none."""
        ...

    def owners(self) -> list[str]:
        """The names of the marks of the feed's owners."""
        ...

    def mark_owner(self, name: str) -> None:
        """Makes a mark of that name."""
        ...

    def forget_owner(self, name: str) -> None:
        """Removes a mark."""
        ...


class FilesFolder:
    """A folder on a disk of this node."""

    late = False

    def __init__(self, path: Path, job_id: int) -> None:
        self.path = path
        self.shown = str(path)
        self._job_id = job_id
        self._unfinished = path / f".tailrace-{job_part(job_id)}"
        self._owners = path / owners_folder(job_id)

    def open(self) -> None:
        """Makes the folder, without what an earlier attempt left unfinished."""
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._unfinished.mkdir(parents=True)

    def begin(self, number: int) -> BufferedWriter:
        """A file that is not there yet, to be written."""
        return (self._unfinished / str(number)).open("xb")

    def publish(self, number: int, name: str) -> None:
        """The file `number`, closed by its writer, is complete: it appears under `name`."""
        written, target = self._unfinished / str(number), self.path / name
        sync(written)
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True)
            sync(target.parent.parent)
        written.rename(target)
        sync(target.parent)

    def close(self) -> None:
        """Removes the hidden folder, and what is unfinished in it."""
        shutil.rmtree(self._unfinished, ignore_errors=True)

    def last_time(self) -> Timestamp:
        """The greatest timestamp that a file of the feed is named by; zero where there is none."""
        return last_time(self._names_by_partition(self.path), self._job_id)

    def owners(self) -> list[str]:
        return [entry.name for entry in self._owners.iterdir()] if self._owners.is_dir() else []

    def mark_owner(self, name: str) -> None:
        self._owners.mkdir(exist_ok=True)
        (self._owners / name).touch()
        sync(self._owners)

    def forget_owner(self, name: str) -> None:
        (self._owners / name).unlink(missing_ok=True)
        with suppress(OSError):  # others are left
            self._owners.rmdir()

    def _names_by_partition(self, path: Path) -> Iterator[list[str]]:
        """The names of files, folder by folder, the later folders first."""
        entries = sorted(path.iterdir(), reverse=True)
        for entry in entries:
            if entry.is_dir() and not entry.name.startswith("."):
                yield from self._names_by_partition(entry)
        yield [entry.name for entry in entries]


def sync(path: Path) -> None:
    """Makes a file's bytes, or a folder's names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
