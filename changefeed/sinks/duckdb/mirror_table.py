"""One table of a mirror: its pending changes (`GatheredParts`), and how a flush writes them."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import Timestamp
from ....kvlayer.keys import index_prefix
from ....schemafeed.table_events import TableEvent
from ..mirror.conform import KEY_PREFIX_LENGTH
from ..mirror.gathered import GatheredParts, SchemaStep
from ..protocol import SinkProgress
from .ownership import MirrorRow, save_mirror
from .pending import Changes, PendingChanges, RowChanges
from .schema_step import Step, plan_step, same_shape, turn_over
from .table_schema import TableSchema
from .table_work import Prepared, TableWork
from .table_writer import TableWriter
from .tombstones import Tombstone, Tombstones


class MirrorTable(GatheredParts[TableSchema, PendingChanges, str]):
    """A mirror table, of which one part belongs to the loop and the other to the file's lane."""

    def __init__(self, row: MirrorRow, job_id: int, cursor: duckdb.DuckDBPyConnection) -> None:
        """The table as the file says."""
        schema = TableSchema(row.descriptor, name=row.name, job_id=job_id, base_name=row.base_table)
        super().__init__(schema, row.staged_at, row.floor_version)
        self._cursor = cursor
        self._writer = TableWriter(self.schema, cursor)
        self._shown = row.shown_table

    def _pending_of(self, schema: TableSchema) -> PendingChanges:
        return PendingChanges(schema)

    def _same_shape(self, after: TableDescriptor) -> bool:
        return same_shape(self.schema.descriptor, after)

    def change(self, event: TableEvent) -> None:
        """Follows a schema event, unless it was followed already. Raises SinkRefused."""
        if event.after.version <= self.schema.descriptor.version:
            return
        self._follow(event, plan_step(self.schema, event, staged=self._staged_at is not None))

    def prepare(self, progress: SinkProgress | None) -> Prepared:
        """Takes what has gathered."""
        turns_over = self._complete(progress)
        if turns_over:
            self._staged_at = None
        schema, gathered = self.schema, self._gathered()
        staged_at, floor_version = self._staged_at, self._floor_version
        saves = self._version_due or bool(self._parts) or turns_over
        self._clear()

        def reduced(tombstones: Tombstones) -> TableWork:
            parts, deleted = self._reduced(gathered, tombstones)

            def write(tombstones: Tombstones) -> None:
                self._write(parts, tombstones)
                if turns_over:
                    self._turn_over(schema)
                if saves:
                    save_mirror(
                        self._cursor,
                        schema,
                        shown=self._shown,
                        staged_at=staged_at,
                        floor_version=floor_version,
                    )

            return TableWork(
                write=write,
                lone_statement=not deleted and not saves and _lone_row(parts),
                carries_rows=bool(parts),
                deleted=deleted,
            )

        return reduced

    # In the file's lane

    def _reduced(
        self, gathered: Sequence[PendingChanges | Step], tombstones: Tombstones
    ) -> tuple[list[Changes | Step], list[Tombstone]]:
        """Returns the parts of a flush with one change per key each, and all that they delete."""
        known = tombstones.of(self.table_id)
        parts: list[Changes | Step] = []
        deleted: list[Tombstone] = []
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
        return parts, deleted

    def _write(self, parts: Sequence[Changes | Step], tombstones: Tombstones) -> None:
        """Raises duckdb.Error."""
        for part in parts:
            if isinstance(part, SchemaStep):
                self._carry_out(part, tombstones)
            else:
                self._writer.apply(part)

    def _carry_out(self, step: Step, tombstones: Tombstones) -> None:
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


def _lone_row(parts: Sequence[Changes | Step]) -> bool:
    """Whether all of a flush is one row, put there or replaced."""
    match parts:
        case [RowChanges(changes=[_])]:
            return True
    return False


def _moved(
    step: Step,
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
