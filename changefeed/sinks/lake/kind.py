"""The common part of the kinds of sinks of lake tables, whichever library writes them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.process.offload import Offload, OffloadLane
from ..extras import Extra
from ..kind import LocalKind, SinkKind
from ..protocol import FeedIdentity
from .columns import check_names

CHECKPOINT_SECONDS = 5.0
"""Each checkpoint with changes is a commit and some files: who reads the table wants few."""

NO_JOB = 0
"""The job id of a feed that is still to be created: it has written nothing."""


class LakeKind(SinkKind, LocalKind):
    """A kind of sink that keeps tables of a lake in folders of this node, each with its lane. The
    tables outlive their feeds, and belong to nobody else."""

    transactional = True
    whole_tables = "A table of the lake has the columns of its source."
    checkpoint_seconds = CHECKPOINT_SECONDS
    extra: Extra

    def __init__(
        self, name: str, roots: Sequence[Path], offload: Offload, *, write_threads: int
    ) -> None:
        """At most `write_threads` folders of the node are written at a time."""
        self._roots = tuple(roots)
        self._pool = offload.pool(name, write_threads)
        self._lanes: dict[Path, OffloadLane] = {}

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        await self.admit(uri, tables, FeedIdentity(store_id=store_id, job_id=NO_JOB, epoch=0))

    async def admit(self, uri: str, tables: Sequence[TableDescriptor], feed: FeedIdentity) -> None:
        """A table of the lake that the feed has written before begins anew."""
        names = [table.name for table in tables]
        lane = self._lane(self.path_of(uri))
        await self.extra.load(lane)
        obstacle = await lane.run(lambda: self._obstacle(uri, names, feed))
        if obstacle is not None:
            raise SQLError("58030", f"a table of the lake cannot be written: {obstacle}")
        for table in tables:
            check_names(table)

    @abstractmethod
    def _obstacle(self, uri: str, names: Sequence[str], feed: FeedIdentity) -> str | None:
        """Why no tables of these names can begin there, if so: `feed` may have them already. Raises
        SQLError for names that no table of the lake can have. In the lane."""

    def _lane(self, path: Path) -> OffloadLane:
        if path not in self._lanes:
            self._lanes[path] = self._pool.lane(path.name)
        return self._lanes[path]
