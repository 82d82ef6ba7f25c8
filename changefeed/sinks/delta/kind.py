"""What stands behind `delta://`: judges a URI, and opens sinks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.offload import Offload, OffloadLane
from ...contract.options import PIPELINE_OPTIONS, ChangefeedOptions
from ..place import Place, place_at
from ..protocol import FeedIdentity, Sink, SinkContext, SinkRefused
from .columns import COMMIT_TIMESTAMP, OPERATION
from .location import SCHEME, delta_path

CHECKPOINT_SECONDS = 5.0
"""Each checkpoint with changes is a commit and a file: who reads the table wants few large ones."""

WRITE_THREADS = 4
"""How many tables of a node are written at a time."""


class DeltaKind:
    """The kind of sink that appends each change of one table to a Delta table of this node."""

    transactional = True
    local = True
    columnar = True
    follows_schema = False
    obeys = PIPELINE_OPTIONS
    checkpoint_seconds = CHECKPOINT_SECONDS

    def __init__(self, roots: Sequence[Path], offload: Offload) -> None:
        self._roots = tuple(roots)
        self._pool = offload.pool(SCHEME, WRITE_THREADS)
        self._lanes: dict[Path, OffloadLane] = {}

    def check_options(self, options: ChangefeedOptions) -> None:
        """It obeys options of the pipeline alone, with any value."""

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        path = delta_path(uri, self._roots)
        if len(tables) > 1:
            raise SQLError(
                "0A000", "a Delta table takes one table", hint="Create a changefeed for each table."
            )
        for table in tables:
            _check_names(table)
        obstacle = await self._lane(path).run(lambda: _obstacle(path))
        if obstacle is not None:
            raise SQLError("58030", f"a Delta table cannot be written: {obstacle}")

    def place(self, uri: str) -> Place:
        """The table's folder, and those around it."""
        return place_at(delta_path(uri, self._roots))

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        return frozenset([f"folder {delta_path(uri, self._roots)}"])

    def create(self, uri: str, context: SinkContext) -> Sink:
        if (missing := _missing()) is not None:
            raise SinkRefused(missing)
        from .sink import DeltaSink  # the package deltalake is an extra

        path = delta_path(uri, self._roots)
        return DeltaSink(path, self._lane(path), context)

    async def release(self, uri: str, identity: FeedIdentity) -> None:
        """The table stays as it is, and belongs to nobody else."""

    def redacted(self, uri: str) -> str:
        """As it is: a folder's path is no secret."""
        return uri

    def _lane(self, path: Path) -> OffloadLane:
        if path not in self._lanes:
            self._lanes[path] = self._pool.lane(path.name)
        return self._lanes[path]


def _check_names(table: TableDescriptor) -> None:
    """Raises SQLError where a Delta table cannot have the columns of `table`."""
    names = [OPERATION, COMMIT_TIMESTAMP]
    for column in table.shown_columns:
        if column.name.lower() in names:
            raise SQLError(
                "42701",
                f'a Delta table cannot have column "{column.name}" of table {table.name}',
                detail=f"Names ignore case, and {OPERATION} and {COMMIT_TIMESTAMP} are taken.",
            )
        names.append(column.name.lower())


def _missing() -> str | None:
    if find_spec("deltalake") is None:
        return "the package deltalake is not installed: pip install 'tailrace[delta]'"
    return None


def _obstacle(path: Path) -> str | None:
    """Why no Delta table can be begun there, if so."""
    if (missing := _missing()) is not None:
        return missing
    there = next(each for each in (path, *path.parents) if each.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return f"folder {there} cannot be written"
    if path.exists() and any(path.iterdir()):
        return f"folder {path} is not empty"
    return None
