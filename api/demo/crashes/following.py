"""The crash store's log into a server, while it grows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ....kvlayer.relaxed.machine import SEGMENT_SUFFIX
from ....kvlayer.relaxed.reader import DomainState
from ....kvlayer.relaxed.segment import FIRST_LINE_LENGTH, read_segment
from ...node import Node
from .mirrored import LOG


@dataclass(slots=True)
class Progress:
    """The numbers of what has been loaded."""

    lines: int = 0
    change_sets: int = 0
    snapshots: int = 0


class LogFollower:
    """Reads on in each segment of a folder, and loads what is new."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.progress = Progress()
        self._node = node
        self._folder = folder
        self._ends: dict[Path, int] = {}

    async def load(self) -> list[DomainState]:
        """Loads what the segments have become. Returns how far the log's domain is."""
        report = await self._node.relaxed.load(LOG, self._lines())
        self.progress.lines += report.lines
        self.progress.change_sets += report.change_sets
        if not report.lines:
            return await self._node.relaxed.states(LOG)
        return list(report.domains)

    async def _lines(self) -> AsyncIterator[pa.RecordBatch]:
        for path in sorted(self._folder.glob(f"*{SEGMENT_SUFFIX}")):
            if path.stat().st_size < FIRST_LINE_LENGTH:
                continue  # it is being made
            segment = await asyncio.to_thread(read_segment, path, self._ends.get(path, 0))
            self._ends[path] = segment.end
            for batch in segment.lines.to_batches():
                yield batch
