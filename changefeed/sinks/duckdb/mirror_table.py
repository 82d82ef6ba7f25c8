"""One table of a mirror: what waits for the next flush, and how it is written.

Rows and schema events gather in the order in which they came, as *parts*:

    rows under v1 | ADD COLUMN at 100 | rows under v2, late ones of v1 among them, conformed

A flush carries out the parts one after the other, in one transaction with everything else of the
feed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import duckdb

from ....kvlayer.clock import Timestamp
from ....kvlayer.keys import index_prefix
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch
from ..protocol import SinkProgress
from .conform import conform
from .ownership import MirrorRow, save_mirror
from .pending import ColumnChanges, PendingChanges, RowChanges
from .schema_step import SchemaStep, plan_step, same_shape, turn_over
from .table_schema import KEY_PREFIX_LENGTH, TableSchema
from .table_work import TableWork
from .table_writer import TableWriter
from .tombstones import Tombstone, Tombstones

Changes = RowChanges | ColumnChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFlush:
    """What one transaction does to one mirror table, and what the file is to say of it then."""

    schema: TableSchema
    staged_at: Timestamp | None
    floor_version: int
    parts: Sequence[Changes | SchemaStep]
    deleted: Sequence[Tombstone]
    turns_over: bool
    saves: bool

    @property
    def lone_row(self) -> bool:
        """Whether all of it is one row, put there or replaced."""
        if self.deleted or self.saves or len(self.parts) != 1:
            return False
        part = self.parts[0]
        return isinstance(part, RowChanges) and len(part.changes) == 1

    def work(self, write: Callable[[TableFlush, Tombstones], None]) -> TableWork:
        """The same, for `write` to carry out."""
        return TableWork(
            write=partial(write, self),
            lone_statement=self.lone_row,
            carries_rows=bool(self.parts),
            deleted=self.deleted,
        )


class MirrorTable:
    """A mirror table. What says nothing else belongs to the loop; `_write` to the file's lane."""

    def __init__(self, row: MirrorRow, job_id: int, cursor: duckdb.DuckDBPyConnection) -> None:
        """The table as the file says."""
        self.schema = TableSchema(
            row.descriptor, name=row.name, job_id=job_id, base_name=row.base_table
        )
        self._cursor = cursor
        self._writer = TableWriter(self.schema, cursor)
        self._pending = PendingChanges(self.schema)
        self._parts: list[PendingChanges | SchemaStep] = []
        self._passed: list[ChangeBatch] = []
        """Batches from below the floor: their rows are in the table, or of no matter to it."""
        self._staged_at = row.staged_at
        self._floor_version = row.floor_version
        self._version_due = False
        self._shown = row.shown_table

    @property
    def table_id(self) -> int:
        return self.schema.descriptor.id

    def add(self, batch: ChangeBatch) -> None:
        """Changes of the table, under its version now, an earlier one, or a locked neighbour."""
        descriptor = batch.descriptor
        if descriptor is not self.schema.descriptor:
            if descriptor.version < self._floor_version:
                self._passed.append(batch)
                return
            batch = self._reconcile(batch)
        self._pending.add(batch)

    def _reconcile(self, batch: ChangeBatch) -> ChangeBatch:
        current, found = self.schema.descriptor, batch.descriptor
        shown = TableSchema(found, name=self.schema.name, job_id=self.schema.job_id)
        if same_shape(self.schema, shown):
            if found.version >= current.version:
                # Also the same version, read anew: the batches to come will have this very object.
                self.schema.descriptor = found
                self._version_due |= found.version > current.version
            return batch
        assert found.version < current.version, (found, current)
        return conform(batch, current)

    def change(self, event: TableEvent) -> None:
        """Follows a schema event, unless it was followed already. Raises SinkRefused."""
        if event.after.version <= self.schema.descriptor.version:
            return
        step = plan_step(self.schema, event, staged=self._staged_at is not None)
        if same_shape(step.before, step.after) and not step.statements:
            self.schema.descriptor = event.after
            self._version_due = True
            return
        if len(self._pending):
            self._parts.append(self._pending)
        self._parts.append(step)
        self.schema = step.after
        self._pending = PendingChanges(step.after)
        if step.floor:
            self._floor_version = event.after.version
        if step.staged_at is not None:
            self._staged_at = step.staged_at

    def due(self, progress: SinkProgress | None) -> bool:
        """Whether a flush with that progress has anything to do here."""
        return bool(
            len(self._pending)
            or self._parts
            or self._passed
            or self._version_due
            or self._complete(progress)
        )

    def batches(self) -> list[ChangeBatch]:
        """The batches that the next flush makes durable."""
        found = list(self._passed)
        for part in (*self._parts, self._pending):
            if isinstance(part, PendingChanges):
                found += part.batches
        return found

    def prepare(self, progress: SinkProgress | None, tombstones: Tombstones) -> TableWork:
        """Takes what has gathered, reduced to one change per key in each part."""
        known = tombstones.of(self.table_id)
        deleted: list[Tombstone] = []
        parts: list[Changes | SchemaStep] = []
        gathered = self._parts
        if len(self._pending):
            gathered = [*gathered, self._pending]
        for part in gathered:
            if isinstance(part, SchemaStep):
                parts.append(part)
                known, deleted = _moved(part, known, deleted, self.table_id)
                continue
            reduced = part.reduce(known)
            parts.append(reduced)
            deleted += [(self.table_id, key, ts) for key, ts in reduced.deletions]
            if part is not gathered[-1]:
                known = {**known, **dict(reduced.deletions)}
        turns_over = self._complete(progress)
        if turns_over:
            self._staged_at = None
        flush = TableFlush(
            schema=self.schema,
            staged_at=self._staged_at,
            floor_version=self._floor_version,
            parts=parts,
            deleted=deleted,
            turns_over=turns_over,
            saves=self._version_due or bool(self._parts) or turns_over,
        )
        self._pending = PendingChanges(self.schema)
        self._parts, self._passed, self._version_due = [], [], False
        return flush.work(self._write)

    def _complete(self, progress: SinkProgress | None) -> bool:
        """Whether the rows that gathered unseen are all there."""
        if self._staged_at is None or progress is None:
            return False
        return progress.low_water(self.schema.descriptor.span) >= self._staged_at

    # In the file's lane

    def _write(self, flush: TableFlush, tombstones: Tombstones) -> None:
        """Carries a flush out, within its transaction. Raises duckdb.Error."""
        for part in flush.parts:
            if isinstance(part, SchemaStep):
                self._carry_out(part, tombstones)
            else:
                self._writer.apply(part)
        if flush.turns_over:
            self._turn_over(flush.schema)
        if flush.saves:
            save_mirror(
                self._cursor,
                flush.schema,
                shown=self._shown,
                staged_at=flush.staged_at,
                floor_version=flush.floor_version,
            )

    def _carry_out(self, step: SchemaStep, tombstones: Tombstones) -> None:
        if step.staged_at is not None and self._shown != step.before.base_name:
            # An earlier change of the key was followed up to here, and not shown yet.
            self._turn_over(step.before)
        for statement in step.statements:
            self._cursor.execute(statement)
        if step.rekeys:
            descriptor = step.after.descriptor
            prefix = index_prefix(descriptor.id, descriptor.primary_index_id)
            tombstones.rekey(self._cursor, self.table_id, None if step.floor else prefix)
        self._writer.close()
        self._writer = TableWriter(step.after, self._cursor)

    def _turn_over(self, table: TableSchema) -> None:
        for statement in turn_over(self._shown, table):
            self._cursor.execute(statement)
        self._shown = table.base_name


def _moved(
    step: SchemaStep,
    known: dict[bytes, Timestamp],
    deleted: Sequence[Tombstone],
    table_id: int,
) -> tuple[dict[bytes, Timestamp], list[Tombstone]]:
    """Deletions before a step, by the keys that hold behind it."""
    if not step.rekeys:
        return known, list(deleted)
    if step.floor:
        return {}, []
    prefix = index_prefix(table_id, step.after.descriptor.primary_index_id)
    return (
        {prefix + key[KEY_PREFIX_LENGTH:]: ts for key, ts in known.items()},
        [(id, prefix + key[KEY_PREFIX_LENGTH:], ts) for id, key, ts in deleted],
    )
