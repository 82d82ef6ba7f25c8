"""The kind of sink behind `iceberg://`: checks URIs and opens sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.process.offload import Offload
from ..lake.columns import check_names
from ..lake.kind import LakeKind
from ..local_uri import unwritable
from ..protocol import Sink, SinkContext, SinkRefused
from .location import SCHEME, IcebergTarget, iceberg_target
from .sink import IcebergSink

WRITE_THREADS = 2
"""How many catalogs of a node are written at a time."""


class IcebergKind(LakeKind):
    """The kind of sink that appends each change of a table to an Iceberg table of this node."""

    def __init__(self, roots: Sequence[Path], offload: Offload) -> None:
        super().__init__(SCHEME, roots, offload, write_threads=WRITE_THREADS)

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        target = iceberg_target(uri, self._roots)
        names = target.names([table.name for table in tables])
        for table in tables:
            check_names(table)
        obstacle = await self._lane(target.path).run(lambda: _obstacle(target, names))
        if obstacle is not None:
            raise SQLError("58030", f"an Iceberg table cannot be written: {obstacle}")

    def path_of(self, uri: str) -> Path:
        return iceberg_target(uri, self._roots).path

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        target = iceberg_target(uri, self._roots)
        return frozenset(
            f"Iceberg table {target.namespace}.{name} in {target.path}" for name in table_names
        )

    def create(self, uri: str, context: SinkContext) -> Sink:
        if (missing := _missing()) is not None:
            raise SinkRefused(missing)
        target = iceberg_target(uri, self._roots)
        return IcebergSink(target, self._lane(target.path), context)


def _missing() -> str | None:
    if find_spec("pyiceberg") is None or find_spec("sqlalchemy") is None:
        return "the package pyiceberg is not installed: pip install 'tailrace[iceberg]'"
    return None


def _obstacle(target: IcebergTarget, names: Sequence[str]) -> str | None:
    """Why no Iceberg tables can be begun there, if so."""
    if (missing := _missing()) is not None:
        return missing
    if (obstacle := unwritable(target.path)) is not None:
        return obstacle
    if target.catalog.exists():
        from .iceberg_table import open_catalog

        with open_catalog(target) as catalog:
            for name in names:
                if catalog.table_exists((target.namespace, name)):
                    return f"{target.namespace}.{name} is already a table of the catalog"
    return None
