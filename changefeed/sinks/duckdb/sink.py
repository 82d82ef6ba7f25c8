"""The DuckDB sink: rows, tombstones and progress in one transaction a flush.

The loop takes what a flush is to write, and the file's lane reduces it (one change per key, as
parameters or as Arrow) and writes it, in one call. What a crash leaves is the state after some
flush, rows and progress together, so a feed that goes on from where the sink stands applies every
change once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import duckdb

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import ZERO, Timestamp
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch, StageTimes
from ..locations import Apply, MirrorTarget
from ..mirror.progress_encoding import Fenced
from ..protocol import Sink, SinkContext, SinkError, SinkProgress, SinkRefused, SinkStand
from .errors import file_error
from .files import DuckDBFiles
from .log_ownership import LogRow, log_name, prepare_log
from .log_table import LogTable
from .mirror_file import MirrorFile, run_whole, transaction
from .mirror_table import MirrorTable
from .orphans import Lives, release_orphans
from .ownership import (
    MirrorRow,
    check_file,
    has_schema,
    prepare_file,
    prepare_mirror,
    release_others,
)
from .progress_table import ProgressRow
from .publication import Publication
from .stage import drop_stages
from .staged_table import StagedTable, held, hide
from .table_schema import TableSchema, mirror_names, quoted
from .table_work import Prepared, TableWork
from .tombstones import Tombstone, Tombstones

AnyTable = MirrorTable | StagedTable | LogTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """The writes of one transaction. `resolved` is what the file is resolved up to by it, and
    `stages` are those of the batches in it."""

    tables: Sequence[Prepared]
    stand: SinkStand | None
    resolved: Timestamp
    stages: Sequence[StageTimes]


class DuckDBSink(Sink):
    """A mirror in a DuckDB file.

    After a flush that failed the sink is of no further use: what it had gathered is gone, the file
    holds the last flush that succeeded, and the feed goes on from there with a sink opened anew.
    """

    def __init__(
        self, target: MirrorTarget, files: DuckDBFiles, context: SinkContext, *, lives: Lives
    ) -> None:
        self._target = target
        self._files = files
        self._lives = lives
        self._identity = context.identity
        self._position = context.position
        self._kept = context.kept
        self._begins = context.begins
        self._freshen = context.freshen
        self._wall = context.clock.wall
        self._file: MirrorFile | None = None
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._tables: dict[int, list[AnyTable]] = {}
        """The file's tables for each table of the feed: of its rows, its changes, or both."""
        self._unflushed: list[StageTimes] = []
        self._row = ProgressRow(self._identity)
        self._stood: SinkStand | None = None
        self._tombstones = Tombstones(self._identity.job_id)
        self._resolved = ZERO
        self._failure: SinkError | SinkRefused | None = None
        self._publish_seconds = context.options.publish
        self._publication: Publication | None = None

    async def stand(self) -> SinkStand | None:
        """Opens the file, and says how far this feed has come in it.

        Raises SinkRefused when the file belongs to another store, and SinkError when it cannot be
        opened now, as while another process holds it.
        """
        assert self._file is None, "asked twice"
        self._file = file = await self._files.acquire(self._target.path)
        try:
            self._stood = await run_whole(file.lane, partial(self._read, file))
        except duckdb.Error as error:
            raise self._sink_error(error) from error
        return self._stood

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """Makes the mirror tables ready. A feed without progress starts anew.

        Raises SinkRefused when a table belongs to somebody else.
        """
        file, identity = self._file, self._identity
        assert file is not None, "`stand` opens the file"
        names = mirror_names(tables, self._target.table, self._target.schema)
        if self._freshen is not None:
            file.fresheners.add(self._freshen)
        try:
            await release_orphans(
                file,
                names.values(),
                self._lives,
                store_id=identity.store_id,
                job_id=identity.job_id,
            )
            await run_whole(file.lane, partial(self._open, tables, names))
        except duckdb.Error as error:
            raise self._sink_error(error) from error
        if self._publish_seconds is not None:
            self._publication = Publication(file, self._publish_seconds)
            self._publication.note_change()

    def emit(self, batch: ChangeBatch) -> None:
        self._unflushed.append(batch.stages)
        for table in self._tables[batch.descriptor.id]:
            if isinstance(table, LogTable) or not batch.for_log:
                table.add(batch)

    def change_schema(self, event: TableEvent) -> None:
        try:
            for table in self._tables[event.table_id]:
                table.change(event)
        except SinkRefused as error:
            self._failure = error

    async def flush(self, progress: SinkProgress | None) -> None:
        taken = self.take(progress)
        if taken is not None:
            await self.write(taken)

    def take(self, progress: SinkProgress | None) -> Flush | None:
        """Returns the batches that have gathered, for `write`; None where none have."""
        if self._failure is not None:
            raise self._failure
        assert self._file is not None, "not open"
        if self._publication is not None:
            self._publication.check()
        due = [table for table in self._all if table.due(progress)]
        if not due and progress is None:
            return None
        unflushed, self._unflushed = self._unflushed, []
        tables = [table.prepare(progress) for table in due]
        stand = None
        if progress is not None:
            stand = SinkStand(progress=self._held(progress), position=self._position())
        return Flush(
            tables=tables,
            stand=stand,
            resolved=self._resolved if stand is None else stand.progress.resolved,
            stages=unflushed,
        )

    async def write(self, flush: Flush) -> int:
        """Makes durable what was taken, and returns when it was, in monotonic nanoseconds. What was
        taken next may not be written before that. Raises SinkError and SinkRefused."""
        assert self._file is not None, "not open"
        try:
            sunk = await run_whole(self._file.lane, partial(self._write, flush))
        except duckdb.Error as error:
            raise self._sink_error(error) from error
        except (SinkError, SinkRefused) as error:
            self._failure = error
            raise
        for stages in flush.stages:
            stages.sunk = sunk
        self._resolved = flush.resolved
        self._file.after_flush()
        if flush.tables and self._publication is not None:
            self._publication.note_change()
        return sunk

    async def close(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        if self._freshen is not None:
            file.fresheners.discard(self._freshen)
        self._tables.clear()
        publication, self._publication = self._publication, None
        if publication is not None:
            await publication.close()
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            await run_whole(file.lane, partial(file.close_cursor, cursor))
        await file.release()

    # In the loop

    @property
    def _all(self) -> list[AnyTable]:
        return [table for tables in self._tables.values() for table in tables]

    def _held(self, progress: SinkProgress) -> SinkProgress:
        """The part of `progress` that a restart finds in the file: nothing that is staged."""
        staged = [each for each in self._all if isinstance(each, StagedTable)]
        return held(progress, staged) if staged else progress

    def _sink_error(self, error: duckdb.Error) -> SinkError:
        assert self._file is not None
        self._file.note_error(error)
        failure = file_error(self._target.path, error)
        self._failure = failure
        return failure

    # In the file's lane

    def _read(self, file: MirrorFile) -> SinkStand | None:
        self._cursor = cursor = file.cursor()
        if not has_schema(cursor):
            return None
        check_file(cursor, self._identity.store_id, path=self._target.path)
        return self._row.read(cursor)

    def _open(self, tables: Sequence[TableDescriptor], names: dict[int, str]) -> None:
        file, cursor, stand, identity = self._file, self._cursor, self._stood, self._identity
        assert file is not None
        assert cursor is not None
        with transaction(cursor):
            prepare_file(cursor, identity.store_id, path=self._target.path)
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(self._target.schema)}")
            self._row.claim(cursor, self._wall.unix_us())
            if self._row.read(cursor) != stand:
                raise SinkError(
                    f"mirror file {self._target.path}: an earlier attempt of job "
                    f"{identity.job_id} has written to it while this one began"
                )
            kept = [*self._kept, *(table.id for table in tables)]
            release_others(cursor, identity.job_id, kept)
            schemas = [
                TableSchema(table, name=names[table.id], job_id=identity.job_id) for table in tables
            ]
            drop_stages(cursor, identity.job_id)
            rows: list[MirrorRow] = []
            logs: list[LogRow] = []
            for schema in schemas:
                if self._target.mode.holds_rows:
                    rows.append(self._prepare(cursor, schema, anew=stand is None))
                if self._target.mode.holds_changes:
                    logs.append(self._prepare_log(cursor, schema, anew=stand is None))
            self._tombstones.load(cursor, stand.progress.resolved if stand else None)
        file.epochs[identity.job_id] = identity.epoch
        self._resolved = stand.progress.resolved if stand else ZERO
        self._tables = {table.id: [] for table in tables}
        for row in rows:
            self._tables[row.table_id].append(self._mirror(row, cursor))
        for log in logs:
            self._tables[log.table_id].append(LogTable(log, cursor))

    def _mirror(
        self, row: MirrorRow, cursor: duckdb.DuckDBPyConnection
    ) -> MirrorTable | StagedTable:
        job_id = self._identity.job_id
        if self._target.apply is Apply.ROW:
            return MirrorTable(row, job_id, cursor)
        return StagedTable(row, job_id, cursor, self._stood.progress if self._stood else None)

    def _prepare(
        self, cursor: duckdb.DuckDBPyConnection, schema: TableSchema, *, anew: bool
    ) -> MirrorRow:
        row = prepare_mirror(cursor, schema, job_id=schema.job_id, anew=anew)
        if not row.created or self._target.apply is Apply.ROW:
            return row
        return replace(row, shown_table=hide(cursor, row, schema.job_id))

    def _prepare_log(
        self, cursor: duckdb.DuckDBPyConnection, schema: TableSchema, *, anew: bool
    ) -> LogRow:
        return prepare_log(
            cursor,
            log_name(schema.name),
            job_id=schema.job_id,
            table_id=schema.descriptor.id,
            anew=anew,
            begins_at=self._begins.get(schema.descriptor.id),
        )

    def _write(self, flush: Flush) -> int:
        """Commits one transaction; returns when it had committed, in monotonic nanoseconds."""
        file, cursor = self._file, self._cursor
        assert file is not None
        assert cursor is not None
        identity = self._identity
        epoch = file.epochs.get(identity.job_id, identity.epoch)
        if epoch != identity.epoch:
            raise Fenced(
                f"fenced: job {identity.job_id} has opened its sink with epoch {epoch}, "
                f"and this is epoch {identity.epoch}"
            )
        works = [prepared(self._tombstones) for prepared in flush.tables]
        deleted = [entry for work in works for entry in work.deleted]
        if flush.stand is None and len(works) == 1 and works[0].lone_statement:
            # The one statement that changes anything is a transaction by itself: BEGIN and COMMIT
            # would be two more calls, a fifth of a lone row's time.
            works[0].write(self._tombstones)
        elif flush.stand is not None and not works and not self._tombstones.prunable:
            # So it is with a checkpoint of an idle feed, and of those there may be many.
            self._row.save(cursor, flush.stand, self._wall.unix_us())
        else:
            self._transact(cursor, flush, works, deleted)
        committed = self._wall.monotonic_ns()
        file.note_commit()  # raises where nobody will find what was committed
        self._tombstones.note_committed(deleted, flush.resolved)
        return committed

    def _transact(
        self,
        cursor: duckdb.DuckDBPyConnection,
        flush: Flush,
        works: Sequence[TableWork],
        deleted: Sequence[Tombstone],
    ) -> None:
        with transaction(cursor):
            for work in works:
                work.write(self._tombstones)
            if flush.stand is not None:
                self._row.save(cursor, flush.stand, self._wall.unix_us())
            carries_rows = any(work.carries_rows for work in works)
            self._tombstones.write(cursor, deleted, flush.resolved, carries_rows=carries_rows)
