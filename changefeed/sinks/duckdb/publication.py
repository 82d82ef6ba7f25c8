"""Published copies of mirrors: files beside them that any DuckDB opens, read-only.

    shop.duckdb               the mirror, which the server holds
    shop.published.duckdb     its copy, swapped in whole (`publish = '10s'`)

Between two checkpoints DuckDB appends commits to the write-ahead log, and what it writes into the
file lies where its header refers to nothing. So the file behind a checkpoint is the database as of
that checkpoint until the next one, and can be copied meanwhile, beside the feed. The header tells
whether a checkpoint came in between.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from functools import partial
from pathlib import Path

from ....kvlayer.files.disk import sync_folder
from ..protocol import SinkError
from .mirror_file import MirrorFile

HEADER_BYTES = 12 * 1024
"""DuckDB's file header and the two of the database, of which each checkpoint writes one anew."""

ATTEMPTS_MAX = 3
"""A checkpoint comes by itself into a copy only behind a gigabyte of log."""


class Publication:
    """Copies the file when it has changed, at most once in so many seconds.

    A copy that failed is raised to the feed by `check`: its next attempt publishes again.
    """

    def __init__(self, file: MirrorFile, seconds: float) -> None:
        self._file = file
        self._seconds = seconds
        self._begun_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        self._failure: OSError | SinkError | None = None
        self._changed = False

    def note_change(self) -> None:
        """The file has other rows than its copy."""
        self._changed = True
        if self._timer is None and self._running is None:
            loop = asyncio.get_running_loop()
            due = loop.time() if self._begun_at is None else self._begun_at + self._seconds
            self._timer = loop.call_at(due, self._begin)

    def check(self) -> None:
        """Raises SinkError where the last copy could not be made."""
        if self._failure is not None:
            path = published_path(self._file.path)
            raise SinkError(f"cannot publish {path}: {self._failure}") from self._failure

    async def close(self) -> None:
        """The copy has what the file has, unless it cannot be made."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running is not None:
            await asyncio.wait([self._running])
        if self._changed and self._failure is None:
            self._begin()
            assert self._running is not None
            await asyncio.wait([self._running])
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer, self._changed, self._begun_at = None, False, loop.time()
        self._running = loop.create_task(self._publish())

    async def _publish(self) -> None:
        try:
            await publish(self._file)
        except (OSError, SinkError) as error:
            self._failure = error
        finally:
            self._running = None
        if self._changed and self._failure is None:
            self.note_change()


def published_path(mirror: Path) -> Path:
    return mirror.with_name(f"{mirror.stem}.published{mirror.suffix}")


async def publish(file: MirrorFile) -> None:
    """Makes the file's copy as of now. Raises OSError and SinkError, the old one being there."""
    for _ in range(ATTEMPTS_MAX):
        async with file.checkpointed():
            if await file.copy_lane.run(partial(_copy, file.path)):
                return
    raise SinkError("the mirror is written to faster than it is copied")


def _copy(mirror: Path) -> bool:
    """Says whether the copy is whole."""
    target = published_path(mirror)
    draft = target.with_name(target.name + ".tmp")
    try:
        with mirror.open("rb") as source, draft.open("wb") as copy:
            header = source.read(HEADER_BYTES)
            source.seek(0)
            shutil.copyfileobj(source, copy, 1024 * 1024)
            copy.flush()
            os.fsync(copy.fileno())
            source.seek(0)
            if source.read(HEADER_BYTES) != header:
                return False
        draft.rename(target)
        sync_folder(target.parent)
        return True
    finally:
        draft.unlink(missing_ok=True)
