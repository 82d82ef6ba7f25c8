"""The sink of Iceberg tables, which hold every change."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.process.offload import OffloadLane
from ..lake.lake_table import LakeTable
from ..lake.sink import LakeSink
from ..protocol import SinkContext
from .location import IcebergTarget

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog


class IcebergSink(LakeSink):
    """Writes the Iceberg tables of one feed."""

    def __init__(self, target: IcebergTarget, lane: OffloadLane, context: SinkContext) -> None:
        super().__init__(f"Iceberg catalog {target.path}", lane, context)
        self._target = target
        self._opened = ExitStack()
        self._catalog: SqlCatalog | None = None

    def _open_catalog(self) -> SqlCatalog:
        from . import iceberg_table  # imported in the lane

        self.errors = (*LakeSink.errors, *iceberg_table.ERRORS)
        if self._catalog is None:
            self._catalog = self._opened.enter_context(iceberg_table.open_catalog(self._target))
        return self._catalog

    def _lakes(self) -> Iterable[LakeTable]:
        if not self._target.catalog.exists():
            return []
        catalog, namespace = self._open_catalog(), self._target.namespace
        if not catalog.namespace_exists(namespace):
            return []
        return [self._table(str(name)) for *_, name in catalog.list_tables(namespace)]

    def _lake(self, table: TableDescriptor) -> LakeTable:
        (name,) = self._target.names([table.name])
        return self._table(name)

    def _table(self, name: str) -> LakeTable:
        from .iceberg_table import IcebergTable

        catalog = self._open_catalog()
        return IcebergTable(catalog, (self._target.namespace, name), self._identity)

    def _let_go(self) -> None:
        self._catalog = None
        self._opened.close()
