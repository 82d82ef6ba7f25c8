"""The common part of the kinds of sinks of lake tables, whichever library writes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ....kvlayer.offload import Offload, OffloadLane
from ..kind import SinkKind

CHECKPOINT_SECONDS = 5.0
"""Each checkpoint with changes is a commit and some files: who reads the table wants few."""


class LakeKind(SinkKind):
    """A kind of sink that keeps tables of a lake in folders of this node, each with its lane. The
    tables outlive their feeds, and belong to nobody else."""

    transactional = True
    local = True
    whole_tables = "A table of the lake has the columns of its source."
    checkpoint_seconds = CHECKPOINT_SECONDS

    def __init__(
        self, name: str, roots: Sequence[Path], offload: Offload, *, write_threads: int
    ) -> None:
        """At most `write_threads` folders of the node are written at a time."""
        self._roots = tuple(roots)
        self._pool = offload.pool(name, write_threads)
        self._lanes: dict[Path, OffloadLane] = {}

    def redacted(self, uri: str) -> str:
        """Returns the URI unchanged: a folder's path is no secret."""
        return uri

    def _lane(self, path: Path) -> OffloadLane:
        if path not in self._lanes:
            self._lanes[path] = self._pool.lane(path.name)
        return self._lanes[path]


def unwritable(folder: Path) -> str | None:
    """Why the folder, or the nearest one above it that is there, cannot be written, if so."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return None if os.access(there, os.W_OK | os.X_OK) else f"folder {there} cannot be written"
