"""The sink of a Delta table: rows and progress in one commit.

    emit      a@10  b@20                c@30  d@50
    flush     progress, resolved 20     progress, resolved 40
    commit    a b, resolved 20          c, resolved 40          d waits

A commit holds all changes of the table up to its resolved timestamp and nothing above it
(`HeldRows`). The feed that begins again does so at that timestamp, so what comes again was not
committed, and every change is in the table once, whatever was killed when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake.exceptions import DeltaError

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import ZERO, Timestamp
from ....kvlayer.history import StorePosition
from ....kvlayer.offload import OffloadLane
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch, ChangeKind
from ..protocol import SinkContext, SinkError, SinkProgress, SinkRefused, SinkStand
from .columns import delta_rows, delta_schema
from .held_rows import HeldRows
from .record import commit_properties, other_feed, read_stand

T = TypeVar("T")

IDLE_COMMIT_NS = 60 * 10**9
"""Without changes progress is committed so often: a commit is a file that stays for weeks."""


class DeltaSink:
    """Appends the changes of one table. I/O is done in `lane`, one call at a time."""

    def __init__(self, path: Path, lane: OffloadLane, context: SinkContext) -> None:
        self._path = path
        self._lane = lane
        self._identity = context.identity
        self._position = context.position
        self._monotonic_ns = context.clock.wall.monotonic_ns
        self._table: DeltaTable | None = None
        self._schema = pa.schema([])
        """Of the table as it was when the sink was opened."""
        self._pending: list[ChangeBatch] = []
        self._held = HeldRows()
        self._seen: set[tuple[bytes, Timestamp]] = set()
        """The changes that wait, but for those of an initial scan."""
        self._committed = ZERO
        self._committed_at = 0

    async def stand(self) -> SinkStand | None:
        stand = await self._run(self._read)
        if stand is not None:
            self._committed = stand.progress.resolved
        return stand

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        (table,) = tables
        self._schema = delta_schema(table)
        self._committed_at = self._monotonic_ns()
        if await self._run(self._foreign):
            raise SinkRefused(f"Delta table {self._path} is not of this changefeed")

    def emit(self, batch: ChangeBatch) -> None:
        batch.stages.received = self._monotonic_ns()
        self._pending.append(batch)

    def change_schema(self, event: TableEvent) -> None:
        """Rows have the columns of their own schema: the table takes those that are new."""

    async def flush(self, progress: SinkProgress | None) -> None:
        batches, self._pending = self._pending, []
        await self._run(partial(self._hold, batches))
        if progress is not None and progress.scan_complete:
            await self._run(partial(self._commit, progress, self._position()))
        now = self._monotonic_ns()
        for batch in batches:
            batch.stages.sunk = now

    async def emit_resolved(self, resolved: Timestamp) -> None:
        """The table's commits say it already."""

    async def close(self) -> None:
        self._pending.clear()
        await self._lane.run(self._held.close)

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call)
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise SinkError(f"Delta table {self._path}: {error}") from error

    # In the lane

    def _read(self) -> SinkStand | None:
        if not DeltaTable.is_deltatable(str(self._path)):
            return None
        self._table = DeltaTable(str(self._path))
        return read_stand(self._table, self._identity)

    def _foreign(self) -> bool:
        return self._table is not None and other_feed(self._table, self._identity)

    def _hold(self, batches: Sequence[ChangeBatch]) -> None:
        for batch in batches:
            rows = delta_rows(batch)
            if batch.kind is not ChangeKind.INITIAL_SCAN:
                new = [
                    self._new(*change) for change in zip(batch.keys, batch.timestamps, strict=True)
                ]
                rows = rows if all(new) else rows.filter(pa.array(new))
            if rows.num_rows:
                self._held.add(rows)

    def _new(self, key: bytes, ts: Timestamp) -> bool:
        """Whether the change was not seen yet: it may be delivered twice."""
        if ts <= self._committed or (key, ts) in self._seen:
            return False
        self._seen.add((key, ts))
        return True

    def _commit(self, progress: SinkProgress, position: StorePosition) -> None:
        resolved = progress.resolved
        schemas = self._held.due(resolved)
        idle = self._monotonic_ns() - self._committed_at < IDLE_COMMIT_NS
        if resolved <= self._committed or (not schemas and self._table is not None and idle):
            return
        spans = [span for span, _ in progress.frontier]
        self._append(
            schemas, resolved, commit_properties(self._identity, resolved, spans, position)
        )
        self._held.drop(resolved)
        self._seen = {change for change in self._seen if change[1] > resolved}
        self._committed, self._committed_at = resolved, self._monotonic_ns()

    def _append(
        self, schemas: Sequence[pa.Schema], resolved: Timestamp, properties: CommitProperties
    ) -> None:
        schema = self._merged(schemas or [self._schema])

        def batches() -> Iterator[pa.RecordBatch]:
            for rows in self._held.take(resolved):
                yield from _under(rows, schema).to_batches()

        write_deltalake(
            str(self._path) if self._table is None else self._table,
            pa.RecordBatchReader.from_batches(schema, batches()),
            mode="append",
            schema_mode="merge",
            commit_properties=properties,
        )
        if self._table is None:
            self._table = DeltaTable(str(self._path))

    def _merged(self, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of all of them. Raises SinkRefused where one has changed its type, also from
        what the table has."""
        known = () if self._table is None else self._table.schema().fields
        types = {field.name: field.type for field in known}
        merged: dict[str, pa.DataType] = {}
        for schema in schemas:
            for field, found in zip(schema, Schema.from_arrow(schema).fields, strict=True):
                merged.setdefault(field.name, field.type)
                if types.setdefault(found.name, found.type) != found.type:
                    raise SinkRefused(
                        f"Delta table {self._path}: column {found.name} was "
                        f"{types[found.name]} and is {found.type} now, and a column keeps its "
                        "type: create another changefeed into another folder, with a cursor where "
                        "this one is resolved"
                    )
        return pa.schema(list(merged.items()))


def _under(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns of `schema`: NULL where they have none."""
    names = set(rows.column_names)
    columns = [
        rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
