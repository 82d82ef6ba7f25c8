"""The common part of the kinds of sinks of lake tables, whichever library writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....kvlayer.process.offload import Offload, OffloadLane
from ..kind import LocalKind, SinkKind

CHECKPOINT_SECONDS = 5.0
"""Each checkpoint with changes is a commit and some files: who reads the table wants few."""


class LakeKind(SinkKind, LocalKind):
    """A kind of sink that keeps tables of a lake in folders of this node, each with its lane. The
    tables outlive their feeds, and belong to nobody else."""

    transactional = True
    whole_tables = "A table of the lake has the columns of its source."
    checkpoint_seconds = CHECKPOINT_SECONDS

    def __init__(
        self, name: str, roots: Sequence[Path], offload: Offload, *, write_threads: int
    ) -> None:
        """At most `write_threads` folders of the node are written at a time."""
        self._roots = tuple(roots)
        self._pool = offload.pool(name, write_threads)
        self._lanes: dict[Path, OffloadLane] = {}

    def _lane(self, path: Path) -> OffloadLane:
        if path not in self._lanes:
            self._lanes[path] = self._pool.lane(path.name)
        return self._lanes[path]
