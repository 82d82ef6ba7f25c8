"""The sink of Delta tables, which hold every change or are mirrors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deltalake.exceptions import DeltaError

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.process.offload import OffloadLane
from ..lake.fed_table import FedTable
from ..lake.lake_table import LakeTable
from ..lake.record import TableRecord
from ..lake.sink import LakeSink
from ..locations import Mode
from ..protocol import SinkContext
from .location import DeltaTarget
from .mirror_table import MirrorTable
from .table_folder import TableFolder


class DeltaSink(LakeSink):
    """Writes the Delta tables of one feed."""

    errors = (*LakeSink.errors, DeltaError)

    def __init__(self, target: DeltaTarget, lane: OffloadLane, context: SinkContext) -> None:
        super().__init__(f"Delta table {target.path}", lane, context)
        self._target = target

    def _folder(self, path: Path) -> TableFolder:
        return TableFolder(path, self._identity)

    def _lakes(self) -> Iterable[LakeTable]:
        path = self._target.path
        if not self._target.several:
            return [self._folder(path)]
        found = sorted(path.iterdir()) if path.exists() else []
        return [self._folder(each) for each in found if each.is_dir()]

    def _lake(self, table: TableDescriptor) -> LakeTable:
        return self._folder(self._target.folder(table.name))

    def _fed_table(
        self, lake: LakeTable, table: TableDescriptor, record: TableRecord | None
    ) -> FedTable:
        if self._target.mode is not Mode.MIRROR:
            return super()._fed_table(lake, table, record)
        assert isinstance(lake, TableFolder), lake
        return MirrorTable(
            lake, self._identity, table, record, self._options, monotonic_ns=self._monotonic_ns
        )
