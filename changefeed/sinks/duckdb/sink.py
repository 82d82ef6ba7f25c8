"""The DuckDB sink: rows, tombstones and progress in one transaction a flush.

A flush is prepared in the loop (one change per key, as parameters or as Arrow) and carried out in
the file's lane, in one call. What a crash leaves is the state after some flush, rows and progress
together, so a feed that goes on from the progress found in `open` applies every change once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import duckdb

from ....catalog.descriptor import TableDescriptor, logically_equal
from ....kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...changes import ChangeBatch
from ..locations import MirrorTarget
from ..protocol import SinkContext, SinkError, SinkProgress, SinkRefused
from .files import DuckDBFiles
from .mirror_file import MirrorFile, run_whole
from .ownership import prepare_file, prepare_mirror, save_version
from .pending import ColumnChanges, PendingChanges, RowChanges
from .progress_table import Fenced, ProgressRow
from .table_schema import TableSchema, mirror_names
from .table_writer import TableWriter
from .tombstones import Tombstone, Tombstones


class _Mirror:
    """One table of the feed: its schema, its writer, and what waits for the next flush."""

    def __init__(self, schema: TableSchema, cursor: duckdb.DuckDBPyConnection) -> None:
        self.schema = schema
        self.writer = TableWriter(schema, cursor)
        self.pending = PendingChanges(schema)
        self.version_due = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flush:
    """All that one transaction writes."""

    changes: Sequence[tuple[_Mirror, RowChanges | ColumnChanges]]
    deleted: Sequence[Tombstone]
    progress: SinkProgress | None

    @property
    def single_row(self) -> bool:
        """Whether all of it is one row of one table, put there or replaced."""
        if self.progress is not None or self.deleted or len(self.changes) != 1:
            return False
        mirror, changes = self.changes[0]
        if mirror.version_due or not isinstance(changes, RowChanges):
            return False
        return len(changes.changes) == 1


class DuckDBSink:
    """A mirror in a DuckDB file.

    After a flush that failed the sink is of no further use: what it had gathered is gone, the file
    holds the last flush that succeeded, and the feed goes on from there with a sink opened anew.
    """

    def __init__(self, target: MirrorTarget, files: DuckDBFiles, context: SinkContext) -> None:
        self._target = target
        self._files = files
        self._identity = context.identity
        self._clock = context.clock
        self._wall = context.clock.wall
        self._file: MirrorFile | None = None
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._mirrors: dict[int, _Mirror] = {}
        self._row = ProgressRow(self._identity)
        self._tombstones = Tombstones(self._identity.job_id)
        self._resolved = ZERO
        self._failure: SinkError | SinkRefused | None = None

    async def open(self, tables: Sequence[TableDescriptor]) -> SinkProgress | None:
        """Opens the file and makes its mirror tables ready. A feed without progress starts anew.

        Raises SinkRefused when the file or a table belongs to somebody else, and SinkError when
        the file cannot be opened now, as while another process holds it.
        """
        assert self._file is None, "opened twice"
        names = mirror_names(tables, self._target.table)
        self._file = await self._files.acquire(self._target.path)
        try:
            return await run_whole(self._file.lane, partial(self._open, tables, names))
        except duckdb.Error as error:
            failure = self._sink_error(error)
            await self.close()
            raise failure from error
        except BaseException:
            await self.close()
            raise

    def emit(self, batch: ChangeBatch) -> None:
        batch.stages.received = self._wall.monotonic_ns()
        mirror = self._mirrors[batch.descriptor.id]
        if batch.descriptor is not mirror.schema.descriptor:
            self._note_version(mirror, batch.descriptor)
        mirror.pending.add(batch)

    async def flush(self, progress: SinkProgress | None) -> None:
        if self._failure is not None:
            raise self._failure
        assert self._file is not None, "not open"
        gathered = [mirror for mirror in self._mirrors.values() if mirror.pending]
        if not gathered and progress is None:
            return
        batches = [batch for mirror in gathered for batch in mirror.pending.batches]
        flush = self._prepare(gathered, progress)
        try:
            sunk = await run_whole(self._file.lane, partial(self._write, flush))
        except duckdb.Error as error:
            raise self._sink_error(error) from error
        except SinkRefused as error:
            self._failure = error
            raise
        for batch in batches:
            batch.stages.sunk = sunk
        self._resolved = progress.resolved if progress is not None else self._resolved
        self._tombstones.note_committed(flush.deleted, self._resolved)
        self._file.after_flush()

    async def emit_resolved(self, resolved: Timestamp) -> None:
        """The progress table says it already."""

    async def close(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        self._mirrors.clear()
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            await run_whole(file.lane, partial(file.close_cursor, cursor))
        await file.release()

    # In the loop

    def _note_version(self, mirror: _Mirror, descriptor: TableDescriptor) -> None:
        current = mirror.schema.descriptor
        if descriptor.version == current.version:
            return
        if not logically_equal(descriptor, current):
            self._failure = SinkRefused(
                f'mirror table "{mirror.schema.name}" cannot follow table {descriptor.id} from '
                f"version {current.version} to version {descriptor.version}"
            )
            return
        if descriptor.version > current.version:
            mirror.schema.descriptor = descriptor
            mirror.version_due = True

    def _prepare(self, gathered: Sequence[_Mirror], progress: SinkProgress | None) -> _Flush:
        changes: list[tuple[_Mirror, RowChanges | ColumnChanges]] = []
        deleted: list[Tombstone] = []
        for mirror in gathered:
            table_id = mirror.schema.descriptor.id
            reduced = mirror.pending.reduce(self._tombstones.of(table_id))
            mirror.pending = PendingChanges(mirror.schema)
            changes.append((mirror, reduced))
            deleted += [(table_id, key, ts) for key, ts in reduced.deletions]
        return _Flush(changes=changes, deleted=deleted, progress=progress)

    def _sink_error(self, error: duckdb.Error) -> SinkError:
        assert self._file is not None
        self._file.note_error(error)
        failure = SinkError(f"mirror file {self._target.path}: {error}")
        self._failure = failure
        return failure

    # In the file's lane

    def _open(
        self, tables: Sequence[TableDescriptor], names: dict[int, str]
    ) -> SinkProgress | None:
        assert self._file is not None
        identity = self._identity
        self._cursor = cursor = self._file.cursor()
        cursor.execute("BEGIN")
        try:
            prepare_file(cursor, identity.store_id, path=self._target.path)
            progress = self._row.claim(cursor, self._wall.unix_us())
            self._check_clock(progress)
            schemas = [
                TableSchema(table, name=names[table.id], job_id=identity.job_id) for table in tables
            ]
            for schema in schemas:
                prepare_mirror(cursor, schema, job_id=identity.job_id, anew=progress is None)
            self._tombstones.load(cursor, progress.resolved if progress else None)
            cursor.execute("COMMIT")
        except BaseException:
            _rollback(cursor)
            raise
        self._file.epochs[identity.job_id] = identity.epoch
        self._resolved = progress.resolved if progress else ZERO
        self._mirrors = {schema.descriptor.id: _Mirror(schema, cursor) for schema in schemas}
        return progress

    def _check_clock(self, progress: SinkProgress | None) -> None:
        """A file that knows of times to come was copied, or its store was put back."""
        if progress is None:
            return
        reached = max((ts for _, ts in progress.frontier), default=ZERO)
        now = self._clock.last  # at or above what the store drew when this process began
        if max(reached, progress.resolved) > now:
            raise SinkRefused(
                f"mirror file {self._target.path} holds progress of job {self._identity.job_id} "
                f"up to {format_timestamp(reached)}, ahead of the store's clock at "
                f"{format_timestamp(now)}: the store or the file was put back from a copy"
            )

    def _write(self, flush: _Flush) -> int:
        """One transaction. Returns when it had committed, in monotonic nanoseconds."""
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
        if flush.single_row:
            # The one statement that changes anything is a transaction by itself: BEGIN and COMMIT
            # would be two more calls, a fifth of a lone row's time.
            [(mirror, changes)] = flush.changes
            mirror.writer.apply(changes)
        else:
            self._transact(cursor, flush)
        committed = self._wall.monotonic_ns()
        file.note_commit()
        return committed

    def _transact(self, cursor: duckdb.DuckDBPyConnection, flush: _Flush) -> None:
        cursor.execute("BEGIN")
        try:
            for mirror, changes in flush.changes:
                if mirror.version_due:
                    save_version(cursor, mirror.schema)
                    mirror.version_due = False
                mirror.writer.apply(changes)
            resolved = self._resolved
            if flush.progress is not None:
                resolved = flush.progress.resolved
                self._row.save(cursor, flush.progress, self._wall.unix_us())
            carries_rows = bool(flush.changes)
            self._tombstones.write(cursor, flush.deleted, resolved, carries_rows=carries_rows)
            cursor.execute("COMMIT")
        except BaseException:
            _rollback(cursor)
            raise


def _rollback(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.Error:
        pass  # a failed COMMIT has ended the transaction, a broken instance has none
