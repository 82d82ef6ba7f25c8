"""The kind of sink behind `iceberg://`: checks URIs and opens sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ....kvlayer.process.offload import Offload
from ..extras import ICEBERG
from ..lake.kind import LakeKind
from ..lake.sink import plain_words
from ..local_uri import unwritable
from ..protocol import FeedIdentity, Sink, SinkContext
from .location import SCHEME, iceberg_target
from .sink import IcebergSink

WRITE_THREADS = 2
"""How many catalogs of a node are written at a time."""


class IcebergKind(LakeKind):
    """The kind of sink that appends each change of a table to an Iceberg table of this node."""

    extra = ICEBERG

    def __init__(self, roots: Sequence[Path], offload: Offload) -> None:
        super().__init__(SCHEME, roots, offload, write_threads=WRITE_THREADS)

    def path_of(self, uri: str) -> Path:
        return iceberg_target(uri, self._roots).path

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        target = iceberg_target(uri, self._roots)
        return frozenset(
            f"Iceberg table {target.namespace}.{name} in {target.path}" for name in table_names
        )

    def create(self, uri: str, context: SinkContext) -> Sink:
        target = iceberg_target(uri, self._roots)
        return IcebergSink(target, self._lane(target.path), context)

    def _obstacle(self, uri: str, names: Sequence[str], feed: FeedIdentity) -> str | None:
        target = iceberg_target(uri, self._roots)
        wanted = target.names(names)
        if (obstacle := unwritable(target.path)) is not None:
            return obstacle
        if not target.catalog.exists():
            return None
        from . import iceberg_table  # imported in the lane

        try:
            with iceberg_table.open_catalog(target) as catalog:
                for name in wanted:
                    table = iceberg_table.IcebergTable(catalog, (target.namespace, name), feed)
                    table.read()
                    if table.foreign:
                        return f"{target.namespace}.{name} is already a table of the catalog"
        except iceberg_table.ERRORS as error:
            return f"catalog {target.catalog} cannot be read: {plain_words(error)}"
        return None
