"""The kind of sink behind `file://` and `nodelocal://`: checks URIs and opens sinks of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.process.offload import Offload
from ..kind import LocalKind
from ..local_uri import unwritable
from ..protocol import FeedIdentity, Holds, Sink, SinkContext
from .file_sinks import FileSinks
from .folder import FilesFolder
from .location import FilesLocation
from .names import marked_position

SCHEMES = ("file", "nodelocal")

WRITE_THREADS = 4
"""How many folders of a node are written at a time: encoding holds the interpreter's lock, syncing
a disk does not."""


class FilesKind(FileSinks, LocalKind):
    """The kind of sink that writes files of changes into a folder of this node."""

    def __init__(
        self,
        roots: Sequence[Path],
        offload: Offload,
        *,
        node_id: int,
        folder: Callable[[Path, int], FilesFolder] = FilesFolder,
    ) -> None:
        """`folder` makes the folder of a job's files at a path."""
        super().__init__(offload.pool("files", WRITE_THREADS))
        self._folder = folder
        self._roots = tuple(roots)
        self._node_id = node_id

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        path = self.path_of(uri)
        obstacle = await self._lane(str(path)).run(lambda: unwritable(path))
        if obstacle is not None:
            raise SQLError("58030", f"files cannot be written: {obstacle}")

    def folder_of(self, uri: str) -> Path:
        """The folder that a URI names. Raises SQLError for one of another kind, too."""
        if uri.partition(":")[0].lower() not in SCHEMES:
            raise SQLError(
                "0A000",
                "a backup of a keyspace lies in a folder of this node",
                hint="Write 'file:///folder', relative to the first mirror root, or a whole path "
                "under any of them: 'file:////srv/backups/sessions'.",
            )
        return self.path_of(uri)

    def path_of(self, uri: str) -> Path:
        return self._location(uri).path

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The folder: a mark speaks for all that is in it."""
        return frozenset([f"folder {self.path_of(uri)}"])

    def create(self, uri: str, context: SinkContext) -> Sink:
        location = self._location(uri)
        folder = self._folder(location.path, context.identity.job_id)
        lane = self._lane(str(location.path))
        return self._opened(location.layout, folder, lane, context)

    async def release(self, uri: str, identity: FeedIdentity, holds: Holds) -> None:
        """Files outlive their feed, and the marks of its owners do not."""
        try:
            path = self.path_of(uri)
        except SQLError:
            return
        folder, lane = self._folder(path, identity.job_id), self._lane(str(path))
        for name in await lane.run(folder.owners):
            seen = marked_position(name)
            if seen is not None and await holds(seen):
                await lane.run(partial(folder.forget_owner, name))

    def _location(self, uri: str) -> FilesLocation:
        return FilesLocation.read(uri, self._roots, node_id=self._node_id)
