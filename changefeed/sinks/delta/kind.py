"""The kind of sink behind `delta://`: checks URIs and opens sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ....kvlayer.process.offload import Offload
from ..extras import DELTA
from ..lake.kind import LakeKind
from ..local_uri import unwritable
from ..locations import Mode
from ..protocol import FeedIdentity, Sink, SinkContext
from .location import SCHEME, delta_target

WRITE_THREADS = 4
"""How many tables of a node are written at a time."""


class DeltaKind(LakeKind):
    """The kind of sink that keeps Delta tables on this node: of every change, or of the rows."""

    extra = DELTA

    def __init__(self, roots: Sequence[Path], offload: Offload) -> None:
        super().__init__(SCHEME, roots, offload, write_threads=WRITE_THREADS)

    def follows(self, uri: str) -> bool:
        """A log's rows have the columns of their own schemas; a mirror has those of its source."""
        return delta_target(uri, self._roots).mode is Mode.MIRROR

    def path_of(self, uri: str) -> Path:
        return delta_target(uri, self._roots).path

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        target = delta_target(uri, self._roots)
        return frozenset(f"folder {folder}" for folder in target.folders(table_names))

    def create(self, uri: str, context: SinkContext) -> Sink:
        from .sink import DeltaSink  # an extra

        target = delta_target(uri, self._roots)
        return DeltaSink(target, self._lane(target.path), context)

    def _obstacle(self, uri: str, names: Sequence[str], feed: FeedIdentity) -> str | None:
        target = delta_target(uri, self._roots)
        folders = target.folders(names) or [target.path]
        if target.several and (target.path / "_delta_log").exists():
            return f"folder {target.path} is a Delta table, and none can be in it"
        for folder in folders:
            if (obstacle := unwritable(folder)) is not None:
                return obstacle
            if not (target.several and folder == target.path) and _of_another(folder, feed):
                return f"folder {folder} is not empty"
        return None


def _of_another(folder: Path, feed: FeedIdentity) -> bool:
    """Whether the folder has anything that is not a Delta table of `feed`."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    from deltalake.exceptions import DeltaError

    from .table_folder import TableFolder

    there = TableFolder(folder, feed)
    try:
        there.read()
    except DeltaError:
        return True
    return there.table is None or there.foreign
