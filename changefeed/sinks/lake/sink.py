"""The sink of lake tables: rows and progress in one commit of each table.

    emit      a@10  b@20                c@30  d@50
    flush     progress, resolved 20     progress, resolved 40
    commit    a b, up to 20             c, up to 40          d waits

A commit holds its table up to one timestamp and nothing above it. The feed that begins again does
so there, table by table, so what comes again was not committed, and every change counts once,
whatever was killed when.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import ZERO
from ....kvlayer.history import StorePosition
from ....kvlayer.process.offload import OffloadLane
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch
from ..protocol import Sink, SinkContext, SinkError, SinkProgress, SinkRefused, SinkStand
from .fed_table import FedTable, FlushStamp
from .lake_table import LakeTable
from .log_table import LogTable
from .record import TableRecord, feed_stand

T = TypeVar("T")


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def plain_words(error: Exception) -> str:
    """The message of a library's error in one line: that of delta-rs is a tree, in colours."""
    return " ".join(_COLOUR.sub("", str(error)).split())


class LakeSink(Sink):
    """Writes the lake tables of one feed. I/O is done in `lane`, one call at a time.

    A kind of lake says where the tables are, and which errors its library raises.
    """

    errors: tuple[type[Exception], ...] = (OSError, pa.ArrowException)

    def __init__(self, shown: str, lane: OffloadLane, context: SinkContext) -> None:
        self._shown = shown
        self._lane = lane
        self._identity = context.identity
        self._position = context.position
        self._options = context.options
        self._kept = context.kept
        self._monotonic_ns = context.clock.wall.monotonic_ns
        self._found: dict[int, tuple[LakeTable, TableRecord]] = {}
        """The lake tables of the feed as they were found, by the ids of its tables."""
        self._tables: dict[int, FedTable] = {}
        self._pending: list[ChangeBatch] = []

    async def stand(self) -> SinkStand | None:
        return await self._run(self._read)

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        await self._run(partial(self._open, tables, self._position()))

    def emit(self, batch: ChangeBatch) -> None:
        self._pending.append(batch)

    def change_schema(self, event: TableEvent) -> None:
        self._tables[event.table_id].change(event)

    async def flush(self, progress: SinkProgress | None) -> None:
        batches, self._pending = self._pending, []
        await self._run(partial(self._hold, batches))
        if progress is not None and progress.scan_complete:
            position = self._position()
            for table in self._tables.values():
                await self._commit(table, progress, position)

    async def _commit(
        self, table: FedTable, progress: SinkProgress, position: StorePosition
    ) -> None:
        """A table that is behind the feed's others goes as far as it has come."""
        reached = progress.low_water(table.span)
        upto = min(reached, progress.resolved)
        if upto == ZERO:
            return  # its scan is not complete
        events = tuple(table.events)
        flush = FlushStamp(position=position, counts=reached >= progress.resolved)
        await self._run(partial(table.commit, upto, events, flush))
        passed = sum(event.timestamp <= upto for event in events)
        del table.events[:passed]

    def _let_go(self) -> None:
        """Closes what the library holds open. In the lane."""

    async def close(self) -> None:
        self._pending.clear()
        await self._lane.run(self._close)

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call)
        except self.errors as error:
            raise SinkError(f"{self._shown}: {plain_words(error)}") from error

    def _lakes(self) -> Iterable[LakeTable]:
        """The tables that there are where the feed's would be. In the lane."""
        raise NotImplementedError

    def _lake(self, table: TableDescriptor) -> LakeTable:
        """The lake table of a table that joins the feed. Raises SQLError where it can have none."""
        raise NotImplementedError

    def _fed_table(
        self, lake: LakeTable, table: TableDescriptor, record: TableRecord | None
    ) -> FedTable:
        return LogTable(lake, self._identity, table, record, monotonic_ns=self._monotonic_ns)

    # In the lane

    def _read(self) -> SinkStand | None:
        for lake in self._lakes():
            record = lake.read()
            if record is not None:
                self._found[record.table_id] = lake, record
        return feed_stand([record for _, record in self._found.values()])

    def _open(self, tables: Sequence[TableDescriptor], position: StorePosition) -> None:
        followed = {table.id for table in tables}
        for table_id, (lake, record) in self._found.items():
            if table_id not in followed and table_id not in self._kept:
                lake.release(record, position)
        for table in tables:
            self._tables[table.id] = self._open_table(table)

    def _open_table(self, table: TableDescriptor) -> FedTable:
        """The lake table as the feed left it, or one that begins anew."""
        if table.id in self._found:
            return self._fed_table(self._found[table.id][0], table, self._found[table.id][1])
        try:
            lake = self._lake(table)
        except SQLError as error:
            raise SinkRefused(str(error)) from error
        lake.read()
        if lake.foreign:
            raise SinkRefused(f"{lake.shown} is not of this changefeed")
        return self._fed_table(lake, table, None)

    def _close(self) -> None:
        for table in self._tables.values():
            table.close()
        self._let_go()

    def _hold(self, batches: Sequence[ChangeBatch]) -> None:
        for batch in batches:
            self._tables[batch.descriptor.id].hold([batch])
