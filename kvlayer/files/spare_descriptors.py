"""Descriptors held open for the store, so that it can open a file when the process has no more.

Whoever else is in the process (doors, DuckDB, the engine, an application around the embedded API)
may take every descriptor there is. The log then could not make its next segment, nor the clock its
next bound. So a few are held open on nothing; when the machine says that there are no more, one is
given up and the file opened in its place. What was given up is taken again as soon as there is one.
"""

from __future__ import annotations

import errno
import os
from threading import Lock

SPARES = 8
"""The log, its files' lane and the clock open one file at a time each, and a folder to sync it.
A descriptor that is given up may be taken by another thread before it is used: there are more."""

NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class SpareDescriptors:
    """Opens files; `close` gives the spares back. Threads may share one."""

    def __init__(self, count: int = SPARES) -> None:
        self._count = count
        self._spares: list[int] = []
        self._lock = Lock()
        self._refill()

    def open(self, path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
        """As `os.open`, not inheritable. Raises OSError; EMFILE once the spares are used up."""
        while True:
            try:
                descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
            except OSError as error:
                if error.errno not in NO_DESCRIPTORS or not self._give_up_one():
                    raise
            else:
                self._refill()
                return descriptor

    def close(self) -> None:
        with self._lock:
            self._count = 0
            while self._spares:
                os.close(self._spares.pop())

    def _give_up_one(self) -> bool:
        with self._lock:
            if not self._spares:
                return False
            os.close(self._spares.pop())
            return True

    def _refill(self) -> None:
        with self._lock:
            while len(self._spares) < self._count:
                try:
                    self._spares.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
                except OSError:
                    return  # the next file that is opened tries again
