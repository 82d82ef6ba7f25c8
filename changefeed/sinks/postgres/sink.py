"""The PostgreSQL sink: rows, tombstones and progress in one transaction a flush.

What a crash of either side leaves is the state after some flush, rows and progress together, so a
feed that goes on from where the sink stands applies every change once. A small flush is sent as a
pipeline and costs two round trips, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import psycopg

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import ZERO, Timestamp
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch
from ..protocol import Sink, SinkContext, SinkError, SinkProgress, SinkRefused, SinkStand
from .connection import Connection, cancellable, connect, in_transaction, roll_back, sink_error
from .location import PostgresTarget
from .mirror_table import MirrorTable, TableFlush
from .own_tables import (
    Lives,
    MirrorRow,
    check_name,
    check_unaltered,
    drop_mirror,
    mirror_of,
    prepare,
    prepared,
    release_others,
    save_mirror,
)
from .progress_row import ProgressRow
from .table_schema import TableSchema, check_columns, same_shape
from .tombstones import Tombstones

T = TypeVar("T")


class PostgresSink(Sink):
    """A mirror in a database of PostgreSQL.

    After a flush that failed the sink is of no further use: what it had gathered is gone, the
    database holds the last flush that succeeded, and the feed goes on from there with a sink
    opened anew.
    """

    def __init__(self, target: PostgresTarget, context: SinkContext, *, lives: Lives) -> None:
        self._target = target
        self._lives = lives
        self._identity = context.identity
        self._position = context.position
        self._kept = context.kept
        self._wall = context.clock.wall
        self._connection: Connection | None = None
        self._tables: dict[int, MirrorTable] = {}
        self._row = ProgressRow(self._identity)
        self._stood: SinkStand | None = None
        self._tombstones = Tombstones(self._identity)
        self._resolved = ZERO
        self._failure: SinkError | SinkRefused | None = None

    async def stand(self) -> SinkStand | None:
        """Connects, and says how far this feed has come in the database."""
        assert self._connection is None, "asked twice"
        self._connection = connection = await connect(self._target)
        self._stood = await self._run(self._read(connection))
        return self._stood

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """Makes the mirror tables ready. A feed without progress starts anew.

        Raises SinkRefused when a table belongs to somebody else, or is not as the feed left it.
        """
        connection = self._connection
        assert connection is not None, "`stand` connects"
        await self._run(in_transaction(connection, lambda: self._open(connection, tables)))

    def emit(self, batch: ChangeBatch) -> None:
        self._tables[batch.descriptor.id].add(batch)

    def change_schema(self, event: TableEvent) -> None:
        try:
            self._tables[event.table_id].change(event)
        except SinkRefused as error:
            self._failure = error

    async def flush(self, progress: SinkProgress | None) -> None:
        if self._failure is not None:
            raise self._failure
        connection = self._connection
        assert connection is not None, "not open"
        due = [table for table in self._tables.values() if table.due(progress)]
        if not due and progress is None:
            return
        tables, stand = [table.take(progress) for table in due], None
        if progress is not None:
            stand = SinkStand(progress=progress, position=self._position())
        write = self._write_few if all(table.small for table in tables) else self._write
        await self._run(write(connection, tables, stand))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        self._tables.clear()
        if connection is not None:
            await connection.close()

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Raises SinkError and SinkRefused, and so does every flush from then on."""
        assert self._connection is not None
        try:
            return await cancellable(self._connection, work)
        except psycopg.Error as error:
            self._failure = sink_error(self._target, error)
            raise self._failure from None
        except (SinkError, SinkRefused) as error:
            self._failure = error
            raise

    async def _read(self, connection: Connection) -> SinkStand | None:
        return await self._row.read(connection) if await prepared(connection) else None

    async def _open(self, connection: Connection, tables: Sequence[TableDescriptor]) -> None:
        stood, identity = self._stood, self._identity
        await prepare(connection)
        await self._row.claim(connection, self._wall.unix_us())
        if await self._row.read(connection) != stood:
            raise SinkError(
                f"{self._target.shown}: an earlier attempt of job {identity.job_id} has written to "
                "it while this one began"
            )
        await release_others(connection, identity, [*self._kept, *(each.id for each in tables)])
        names = self._target.names((table.id, table.name) for table in tables)
        for table in tables:
            self._tables[table.id] = await self._open_table(connection, table, names[table.id])
        self._resolved = ZERO if stood is None else stood.progress.resolved
        await self._tombstones.load(connection, self._resolved)

    async def _open_table(
        self, connection: Connection, table: TableDescriptor, name: str
    ) -> MirrorTable:
        """The mirror table as the feed left it; empty where the feed begins, or has none of it."""
        known = await mirror_of(connection, self._identity, table.id)
        if known is not None and self._stood is not None:
            return MirrorTable(await self._follow(connection, known, table), empty=False)
        check_columns(table)
        schema = self._target.schema
        named = await check_name(
            connection,
            schema,
            name,
            identity=self._identity,
            store_id=self._identity.store_id,
            lives=self._lives,
        )
        for left in (known, named):
            if left is not None:
                await drop_mirror(connection, left)
        place = TableSchema(table, schema=schema, rows=name)
        await connection.execute(place.create())
        made = MirrorRow(
            place=place,
            rows=place,
            store_id=self._identity.store_id,
            job_id=self._identity.job_id,
        )
        await save_mirror(connection, made)
        return MirrorTable(made, empty=True)

    async def _follow(
        self, connection: Connection, row: MirrorRow, table: TableDescriptor
    ) -> MirrorRow:
        """The row, at the table's version or a later one. Raises SinkRefused where the mirror table
        was altered by another hand."""
        place, rows, held = row.place, row.rows, row.descriptor
        await check_unaltered(connection, rows)
        if held.version >= table.version:
            return row
        if not same_shape(held, table):
            raise SinkRefused(
                f'mirror table "{place.schema}.{place.rows}" holds version {held.version} of table '
                f"{held.id}, whose schema is another than that of version {table.version}"
            )
        newer = replace(row, rows=TableSchema(table, schema=rows.schema, rows=rows.rows))
        await save_mirror(connection, newer)
        return newer

    async def _write_few(
        self, connection: Connection, tables: Sequence[TableFlush], stand: SinkStand | None
    ) -> None:
        """Rows, tombstones and progress in one pipeline, and the commit in another: whether our
        epoch still holds is known in between."""
        try:
            async with connection.pipeline(), connection.cursor() as cursor:
                await connection.execute("BEGIN")
                locked = await connection.execute(*self._row.lock())
                for table in tables:
                    await table.table.write_few(cursor, table, self._tombstones)
                resolved = self._resolved
                if stand is not None:
                    resolved = stand.progress.resolved
                    await cursor.execute(*self._row.save(stand, self._wall.unix_us()))
                await self._tombstones.save_few(cursor, resolved)
            if locked.rowcount != 1:
                raise self._row.fenced()
            await connection.execute("COMMIT")
        except BaseException:
            await roll_back(connection)
            raise
        self._resolved = resolved

    async def _write(
        self, connection: Connection, tables: Sequence[TableFlush], stand: SinkStand | None
    ) -> None:
        async def write() -> Timestamp:
            locked = await connection.execute(*self._row.lock())
            if locked.rowcount != 1:
                raise self._row.fenced()
            for table in tables:
                await table.table.write(connection, table, self._tombstones)
            resolved = self._resolved
            if stand is not None:
                resolved = stand.progress.resolved
                await connection.execute(*self._row.save(stand, self._wall.unix_us()))
            await self._tombstones.save(connection, resolved)
            return resolved

        self._resolved = await in_transaction(connection, write)
