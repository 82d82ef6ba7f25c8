"""One table of a mirror: its pending changes (`GatheredParts`), and how a flush writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql

from ....catalog.descriptors.descriptor import TableDescriptor
from ....schemafeed.table_events import TableEvent
from ..mirror.gathered import GatheredParts, SchemaStep
from ..protocol import SinkProgress
from .connection import Connection
from .own_tables import MirrorRow, save_mirror
from .pending import PendingChanges, TableChanges
from .schema_step import Step, plan_step, turn_over
from .table_schema import TableSchema, same_shape
from .table_writer import FEW, TableWriter
from .tombstones import Tombstones


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFlush:
    """The work of one transaction on one mirror table. `row_count` bounds its changes from above.

    `saved` is what the database is to say of the table then, where that is another than before.
    """

    table: MirrorTable
    parts: Sequence[PendingChanges | Step]
    turned_over: TableSchema | None
    """The table that takes the place of the one that is shown."""
    saved: MirrorRow | None

    @property
    def row_count(self) -> int:
        return sum(len(part) for part in self.parts if isinstance(part, PendingChanges))

    @property
    def small(self) -> bool:
        """Whether all of it is a few rows."""
        return self.saved is None and self.row_count <= FEW


class MirrorTable(GatheredParts[TableSchema, PendingChanges, sql.Composed]):
    """A mirror table. What is asked for in `write_few` and `write` is of the flush's transaction;
    all else never waits."""

    def __init__(self, row: MirrorRow, *, empty: bool) -> None:
        """`empty`: it was made just now."""
        assert row.job_id is not None, row
        self._row = row
        self._job_id = row.job_id
        self._place = row.place
        super().__init__(row.rows, row.staged_at, row.floor_version)
        self._scanned_up_to: bytes | None = b"" if empty else None
        """While the table has rows of one scan alone, the greatest of their keys."""

    def _pending_of(self, schema: TableSchema) -> PendingChanges:
        return PendingChanges(schema)

    def _same_shape(self, after: TableDescriptor) -> bool:
        return same_shape(self.schema.descriptor, after)

    def change(self, event: TableEvent) -> None:
        """Follows a schema event, unless it was followed already. Raises SinkRefused."""
        if event.after.version <= self.schema.descriptor.version:
            return
        if self._follow(event, plan_step(self.schema, event, job_id=self._job_id)):
            self._scanned_up_to = None

    def take(self, progress: SinkProgress | None) -> TableFlush:
        """Takes the pending changes, for a flush with that progress."""
        parts, staged, saved = self._gathered(), None, None
        if self._complete(progress):
            staged, self._staged_at = self.schema, None
            self.schema = self._at_place(staged)
        if staged is not None or self._version_due or self._parts:
            saved = replace(
                self._row,
                rows=self.schema,
                staged_at=self._staged_at,
                floor_version=self._floor_version,
            )
        self._clear()
        return TableFlush(table=self, parts=parts, turned_over=staged, saved=saved)

    async def write_few(
        self, cursor: psycopg.AsyncCursor[Any], flush: TableFlush, tombstones: Tombstones
    ) -> None:
        """Carries a small flush out, without waiting for answers. Raises psycopg.Error."""
        for part in flush.parts:
            assert isinstance(part, PendingChanges), "a step is not small"
            changes = await part.reduce(tombstones.of(self.table_id))
            self._note_scanned(changes)
            await TableWriter(changes.schema).send_few(cursor, changes)
            tombstones.note(self.table_id, changes.deletions)

    async def write(
        self, connection: Connection, flush: TableFlush, tombstones: Tombstones
    ) -> None:
        """Carries a flush out. Raises psycopg.Error."""
        for part in flush.parts:
            if isinstance(part, SchemaStep):
                await self._carry_out(connection, part, tombstones)
                continue
            changes = await part.reduce(tombstones.of(self.table_id))
            writer = TableWriter(changes.schema)
            if self._note_scanned(changes):
                await writer.scan(connection, changes)
            elif len(changes) > FEW:
                await writer.merge(connection, changes)
            else:
                async with connection.cursor() as cursor:
                    await writer.send_few(cursor, changes)
            tombstones.note(self.table_id, changes.deletions)
        if flush.turned_over is not None:
            await self._turn_over(connection, flush.turned_over)
        if flush.saved is not None:
            await save_mirror(connection, flush.saved)

    def _note_scanned(self, changes: TableChanges) -> bool:
        """Whether these are rows that a scan adds to a table with rows of that scan alone."""
        known = self._scanned_up_to
        if known is None or not changes.scanned or changes.deletions:
            self._scanned_up_to = None
            return False
        keys = [key for key, _, _ in changes.upserts]
        if not keys:
            return False
        if min(keys) <= known and known:
            self._scanned_up_to = None
            return False
        self._scanned_up_to = max(keys)
        return True

    async def _carry_out(self, connection: Connection, step: Step, tombstones: Tombstones) -> None:
        if step.staged_at is not None and step.before.table != self._place.table:
            # An earlier change of the key was followed up to here, and not shown yet.
            await self._turn_over(connection, step.before)
        for statement in step.statements:
            await connection.execute(statement)
        if step.floor:
            await tombstones.forget(connection, self.table_id)

    def _at_place(self, rows: TableSchema) -> TableSchema:
        return TableSchema(rows.descriptor, schema=self._place.schema, rows=self._place.rows)

    async def _turn_over(self, connection: Connection, rows: TableSchema) -> None:
        for statement in turn_over(self._place.table, rows, place=self._place):
            await connection.execute(statement)
