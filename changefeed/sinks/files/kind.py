"""What stands behind `file://` and `nodelocal://`: judges a URI, and opens sinks of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.offload import Offload, OffloadLane
from ...contract.message_form import METADATA_ENVELOPES
from ...contract.options import MESSAGE_OPTIONS, PIPELINE_OPTIONS, ChangefeedOptions
from ..place import Place, place_at
from ..protocol import FeedIdentity, Sink, SinkContext
from .folder import FilesFolder
from .location import FilesLocation
from .sink import FilesSink

SCHEMES = ("file", "nodelocal")

WRITE_THREADS = 4
"""How many folders of a node are written at a time: encoding holds the interpreter's lock, syncing
a disk does not."""

CHECKPOINT_SECONDS = 5.0
"""Each checkpoint with changes is a file of each table: a program that reads a folder wants few
large ones."""


FILES_OPTIONS = PIPELINE_OPTIONS | MESSAGE_OPTIONS | {"compression"}


class FilesKind:
    """The kind of sink that writes files of changes into a folder of this node."""

    transactional = False
    local = True
    columnar = True
    follows_schema = False
    obeys = FILES_OPTIONS
    checkpoint_seconds = CHECKPOINT_SECONDS

    def __init__(
        self,
        roots: Sequence[Path],
        offload: Offload,
        *,
        node_id: int,
        folder: Callable[[Path, int], FilesFolder] = FilesFolder,
    ) -> None:
        """`folder` makes the folder of a job's files at a path."""
        self._folder = folder
        self._roots = tuple(roots)
        self._node_id = node_id
        self._pool = offload.pool("files", WRITE_THREADS)
        self._lanes: dict[Path, OffloadLane] = {}
        self._attempts = count(1)

    def check_options(self, options: ChangefeedOptions) -> None:
        check_files_options(options)

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        location = self._location(uri)
        obstacle = await self._lane(location.path).run(lambda: _obstacle(location.path))
        if obstacle is not None:
            raise SQLError("58030", f"files cannot be written: {obstacle}")

    def place(self, uri: str) -> Place:
        """The folder, and those around it."""
        return place_at(self._location(uri).path)

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The folder: a mark speaks for all that is in it."""
        return frozenset([f"folder {self._location(uri).path}"])

    def create(self, uri: str, context: SinkContext) -> Sink:
        location = self._location(uri)
        return FilesSink(
            location.layout,
            self._folder(location.path, context.identity.job_id),
            self._lane(location.path),
            context,
            replace(context.options, key_in_value=True),
            attempt=next(self._attempts),
        )

    async def release(self, uri: str, identity: FeedIdentity) -> None:
        """The files stay as they are."""

    def redacted(self, uri: str) -> str:
        """As it is: a folder's path is no secret."""
        return uri

    def _location(self, uri: str) -> FilesLocation:
        return FilesLocation.read(uri, self._roots, node_id=self._node_id)

    def _lane(self, path: Path) -> OffloadLane:
        """The lane of a folder, one call at a time whoever the feed is."""
        if path not in self._lanes:
            self._lanes[path] = self._pool.lane(path.name)
        return self._lanes[path]


def check_files_options(options: ChangefeedOptions) -> None:
    """Raises SQLError where files of changes cannot be as the options say."""
    if options.envelope not in METADATA_ENVELOPES:
        raise SQLError(
            "22023",
            f"files of changes have no envelope {options.envelope.value}",
            detail="A line is a whole message, and that envelope has messages without a value.",
            hint="Envelopes of files: wrapped, bare.",
        )


def _obstacle(path: Path) -> str | None:
    """Why no file could be written there, if so. Makes nothing."""
    there = next(each for each in (path, *path.parents) if each.exists())
    if not there.is_dir():
        return f"{there} is not a folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"folder {there} cannot be written"
    return None
