"""The DuckDB files of one node: each open at most once, with one queue of writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ....kvlayer.process.offload import Offload
from ..locations import MirrorLocations
from .mirror_file import MirrorFile

WRITE_THREADS = 16
"""How many files are written at a time in a node. A write mostly waits for its sync, and the
checkpoint of a large file may hold its thread for seconds: so there are more than cores."""

READ_LANES = 4
"""How many reads of mirrors run at a time in a node; others wait."""


class DuckDBFiles:
    """Hands out the files under a node's mirror roots."""

    def __init__(self, locations: MirrorLocations, offload: Offload) -> None:
        self.locations = locations
        self._offload = offload
        self._writes = offload.pool("duckdb", WRITE_THREADS)
        # One per path that was ever used: a path keeps its lane.
        self._files: dict[Path, MirrorFile] = {}
        self._read_lanes: list[Offload] = []
        self._read_permits = asyncio.Semaphore(READ_LANES)

    async def acquire(self, path: Path) -> MirrorFile:
        """The file at `path`, open until `release`. Raises SinkError or SinkRefused."""
        file = self._files.get(path)
        if file is None:
            file = MirrorFile(
                path, self._writes.lane(path.name), self._writes.lane(f"{path.name} copy")
            )
            self._files[path] = file
        await file.acquire()
        return file

    @asynccontextmanager
    async def using(self, path: Path) -> AsyncIterator[MirrorFile]:
        """`acquire` and `release` around a block."""
        file = await self.acquire(path)
        try:
            yield file
        finally:
            await file.release()

    @asynccontextmanager
    async def read_lane(self) -> AsyncIterator[Offload]:
        """A lane that nobody else uses for the time of the block."""
        async with self._read_permits:
            if not self._read_lanes:
                self._read_lanes.append(self._offload.lane("duckdb-read"))
            lane = self._read_lanes.pop()
            try:
                yield lane
            finally:
                self._read_lanes.append(lane)

    def holds(self, path: Path) -> bool:
        """Whether this process has the file open, or somebody is about to have it open or shut."""
        file = self._files.get(path)
        return file is not None and (file.open or file.used)

    @property
    def open_files(self) -> list[Path]:
        """The files that this process holds at the moment."""
        return [path for path, file in self._files.items() if file.open]
