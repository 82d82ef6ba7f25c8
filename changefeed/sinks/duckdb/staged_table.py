"""A mirror table that moves from one resolved timestamp to the next (`apply=transaction`).

    staged     k1@10 k2@11 | ADD COLUMN at 12 | k1@12 k3@14         mirror as of 9
    resolved 11     k1@10, k2@11
    resolved 13     the column, then k1@12                          k3@14 waits

Changes go to stages, one for each version of the source table that differs in what a mirror shows.
When everything up to a timestamp is known, they move to the base table in order: the changes below
a schema event under the old version, the event, the changes above it. All tables of a feed do so in
one DuckDB transaction with the progress, so that who reads the file sees the tables as of one
timestamp, the resolved one in `_tailrace.progress`.

Stages are bounded by the disk, not by memory. After a restart they are dropped: what was in them
lies above the feed's progress, and comes again.

A table that is behind the feed's others (it joined later, or was paused) moves when it has caught
up with them. The rows of the initial scan go to the base table as they come; until the first
resolved timestamp that is not below the scan's the view shows another, empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb

from ....kvlayer.clock import ZERO, Timestamp
from ....kvlayer.frontier import Entries, part_of, with_part
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch, ChangeKind
from ..protocol import SinkProgress
from .ownership import MirrorRow, save_mirror
from .pending import Changes, PendingChanges, RowChanges
from .schema_step import plan_step, same_shape, turn_over
from .stage import Stage
from .table_schema import TableSchema, view_of
from .table_work import Prepared, TableWork
from .table_writer import TableWriter
from .tombstones import Tombstones


class StagedTable:
    """A mirror table as of the feed's resolved timestamp. What says nothing else belongs to the
    loop; `_write` to the file's lane."""

    def __init__(
        self,
        row: MirrorRow,
        job_id: int,
        cursor: duckdb.DuckDBPyConnection,
        stood: SinkProgress | None = None,
    ) -> None:
        """The table as the file says, which holds what `stood` says."""
        schema = TableSchema(row.descriptor, name=row.name, job_id=job_id, base_name=row.base_table)
        self.table_id = row.table_id
        self._cursor = cursor
        self.span = row.descriptor.span
        self._stages = [Stage(schema, cursor)]
        self._pending: dict[Stage, PendingChanges] = {}
        self._shown = row.shown_table
        self._hidden = row.shown_table != row.base_table
        """Whether the first resolved timestamp is still to come."""
        self._scan_writer = TableWriter(schema, cursor) if self._hidden else None
        self._scanned = PendingChanges(schema)
        self._scanned_at = ZERO
        """From when on the table may be shown, once that is known."""
        self._version_due = False
        parts = () if stood is None else part_of(stood.frontier, self.span)
        self.holds = max((at for _, at in parts), default=ZERO)
        """Up to when a restart finds the table in the file: where it has moved to, or the time of
        its scan; ZERO while it has no row of that."""

    @property
    def schema(self) -> TableSchema:
        """The version under which changes come at present."""
        return self._stages[-1].schema

    def add(self, batch: ChangeBatch) -> None:
        """Changes of the table, under its version now or an earlier one."""
        stage = self._stage_of(batch)
        if self._hidden and batch.kind is ChangeKind.INITIAL_SCAN:
            self.holds = max(self.holds, batch.timestamps[0])
            self._scanned.add(batch)
            return
        self._pending.setdefault(stage, PendingChanges(stage.schema)).add(batch)

    def _stage_of(self, batch: ChangeBatch) -> Stage:
        found = batch.descriptor
        stage = self._stages[-1]
        if found is stage.schema.descriptor:
            return stage
        for stage in reversed(self._stages):
            if stage.first_version <= found.version:
                break
        schema = stage.schema
        assert same_shape(schema.descriptor, found), (schema.descriptor, found)
        if stage is self._stages[-1] and found.version >= schema.descriptor.version:
            # Also the same version, read anew: the batches to come will have this very object.
            self._version_due |= found.version > schema.descriptor.version
            schema.descriptor = found
        return stage

    def change(self, event: TableEvent) -> None:
        """Follows a schema event, unless it was followed already. Raises SinkRefused."""
        before = self.schema
        if event.after.version <= before.descriptor.version:
            return
        step = plan_step(before, event, staged=False)
        if same_shape(before.descriptor, event.after) and not step.statements:
            before.descriptor = event.after
            self._version_due = True
            return
        self._stages.append(Stage(step.after, self._cursor, step=step, at=event.timestamp))

    def due(self, progress: SinkProgress | None) -> bool:
        """Whether a flush with that progress has anything to do here."""
        if self._pending or len(self._scanned):
            return True
        upto = self._upto(progress)
        if upto is None:
            return False
        first = self._stages[0]
        waits = first.oldest is not None and first.oldest <= upto
        passes = len(self._stages) > 1 and self._stages[1].at <= upto
        return waits or passes or self._hidden or self._version_due

    def prepare(self, progress: SinkProgress | None) -> Prepared:
        """Takes what has gathered, and finds what moves. Deletions wait as other changes do, so
        that tombstones are not needed."""
        pending, self._pending = self._pending, {}
        for stage, changes in pending.items():
            stage.note_oldest(min(min(batch.timestamps) for batch in changes.batches))
        scanned, self._scanned = self._scanned, PendingChanges(self._stages[0].schema)
        upto = self._upto(progress)
        passed = [] if upto is None else [each for each in self._stages[1:] if each.at <= upto]
        moving = self._stages[: len(passed) + 1]
        shows = self._hidden and upto is not None
        saves = self._version_due or bool(passed) or shows
        self._version_due = False
        if upto is not None:
            self._stages = self._stages[len(passed) :]
            self._hidden = False

        def reduced(tombstones: Tombstones) -> TableWork:
            assert not tombstones.of(self.table_id), self
            staged = [(stage, changes.whole()) for stage, changes in pending.items()]
            rows = scanned.reduce({}) if len(scanned) else None

            def write(_: Tombstones) -> None:
                if rows is not None:
                    assert self._scan_writer is not None, self
                    self._scan_writer.apply(rows)
                for stage, changes in staged:
                    stage.write(changes)
                if upto is not None:
                    self._move(moving, upto, shows=shows)
                if saves:
                    self._save(moving[-1].schema)

            lone = len(staged) == 1 and staged[0][0].made and _one_statement(staged[0][1])
            return TableWork(
                write=write,
                lone_statement=lone and rows is None and upto is None and not saves,
                carries_rows=bool(staged) or rows is not None,
            )

        return reduced

    def note_prepared(self, progress: SinkProgress) -> None:
        """A flush with that progress was prepared, whether it has anything to do here or not."""
        self.holds = self._upto(progress) or self.holds

    def _upto(self, progress: SinkProgress | None) -> Timestamp | None:
        """Up to when the table moves with that progress; None where it does not."""
        if progress is None or not progress.scan_complete:
            return None
        parts = part_of(progress.frontier, self.span)
        reached = min((at for _, at in parts), default=progress.resolved)
        if reached < progress.resolved:
            return None
        if self._hidden:
            # Its rows are as of a scan. Of one that found none only the end is known.
            self._scanned_at = self._scanned_at or self.holds or reached
            if progress.resolved < self._scanned_at:
                return None
        return progress.resolved

    # In the file's lane

    def _move(self, stages: Sequence[Stage], upto: Timestamp, *, shows: bool) -> None:
        """Brings the base table from where it is to `upto`: stage by stage, each behind its schema
        event."""
        for place, stage in enumerate(stages):
            step = stage.step
            if step is not None:
                for statement in step.statements:
                    self._cursor.execute(statement)
                stage.step = None
            last = place + 1 == len(stages)
            stage.move(upto if last else Timestamp(stages[place + 1].at - 1))
            if place == 0 and shows:
                assert self._scan_writer is not None, self
                self._scan_writer.close()
                self._scan_writer = None
            if self._shown != stage.schema.base_name:
                for statement in turn_over(self._shown, stage.schema):
                    self._cursor.execute(statement)
                self._shown = stage.schema.base_name
            if not last:
                stage.close()

    def _save(self, schema: TableSchema) -> None:
        save_mirror(
            self._cursor,
            schema,
            shown=self._shown,
            staged_at=None if self._shown == schema.base_name else SHOWN_AT,
            floor_version=0,
        )


SHOWN_AT = Timestamp(1)
"""A table that shows nothing yet is shown with the first resolved timestamp, whatever it is."""


def held(progress: SinkProgress, tables: Sequence[StagedTable]) -> SinkProgress:
    """The part of `progress` that a restart finds in the file: nothing that is staged."""
    frontier: Entries = progress.frontier
    for table in tables:
        table.note_prepared(progress)
        parts = part_of(frontier, table.span)
        if any(at > table.holds for _, at in parts):
            parts = [(span, min(at, table.holds)) for span, at in parts]
            frontier = with_part(frontier, table.span, parts)
    # What is paused stands where it was left, also above: at the time of its scan.
    return replace(progress, frontier=tuple(frontier), backfills=())


def _one_statement(changes: Changes) -> bool:
    return isinstance(changes, RowChanges) and len(changes.changes) == 1


def hide(cursor: duckdb.DuckDBPyConnection, row: MirrorRow, job_id: int) -> str:
    """Has the view of a new mirror table show an empty table; the name of that."""
    base = TableSchema(row.descriptor, name=row.name, job_id=job_id, base_name=row.base_table)
    empty = TableSchema(
        row.descriptor, name=row.name, job_id=job_id, base_name=f"{row.base_table}_empty"
    )
    cursor.execute(f"DROP VIEW {view_of(row.name)}")
    for statement in empty.create():
        cursor.execute(statement)
    save_mirror(cursor, base, shown=empty.base_name, staged_at=SHOWN_AT, floor_version=0)
    return empty.base_name
