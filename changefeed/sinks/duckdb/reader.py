"""Reading mirrors: any SELECT, on a read-only transaction, beside the feed that writes.

A read sees the mirror as of one commit of the sink. It can write nothing, open no file of the
server, load no extension and change no setting: what a statement may be is looked at first, the
transaction is READ ONLY, and the instance was opened with external access off and its configuration
locked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ....catalog.arrow_columns import AnyArray
from ....catalog.errors import SQLError
from ..protocol import SinkError, SinkRefused
from .errors import MirrorHeld
from .files import DuckDBFiles
from .interruption import end_query
from .mirror_file import MirrorFile

_READS = ("SELECT", "EXPLAIN")
"""DuckDB's kinds of statements that only read; DESCRIBE, SHOW and VALUES are SELECT to it."""

_STATES: tuple[tuple[type[duckdb.Error], str], ...] = (
    (duckdb.ParserException, "42601"),
    (duckdb.CatalogException, "42P01"),
    (duckdb.BinderException, "42703"),
    (duckdb.PermissionException, "42501"),
    (duckdb.InterruptException, "57014"),
    (duckdb.ConversionException, "22P02"),
    (duckdb.OutOfRangeException, "22003"),
    (duckdb.OutOfMemoryException, "53200"),
    (duckdb.InvalidInputException, "22023"),
)


class MirrorReader:
    """Reads the mirrors of a node."""

    def __init__(self, files: DuckDBFiles) -> None:
        self._files = files

    async def read(self, location: str, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT. `location` is a sink URI, or a path under the mirror roots.

        Works whether or not a feed writes the file at the moment. Cancelling the caller interrupts
        the query. Raises SQLError: 25006 for a statement that writes, 58P01 for a file that does
        not exist, 55006 for one that another process holds, 42501 for one that is out of bounds.
        """
        path = self._files.locations.read_target(location)
        if not path.is_file():
            raise SQLError("58P01", f"mirror file {path} does not exist")
        try:
            async with self._files.using(path) as file, self._files.read_lane() as lane:
                cursor = file.cursor()
                call = partial(_read, file, cursor, sql, parameters)
                task = lane.run(call)
                try:
                    return await asyncio.shield(task)
                except asyncio.CancelledError:
                    await end_query(cursor, task)
                    raise
        except MirrorHeld as error:
            raise SQLError("55006", str(error)) from error
        except (SinkError, SinkRefused) as error:
            raise SQLError("58030", str(error)) from error

    async def tables(self, location: str) -> list[str]:
        """The names of the mirror tables in a file."""
        found = await self.read(
            location, "SELECT mirror_table FROM _tailrace.mirrors ORDER BY mirror_table"
        )
        return [str(name) for name in found.column(0).to_pylist()]


def _read(
    file: MirrorFile, cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object]
) -> pa.Table:
    try:
        _check_statement(cursor, sql)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        relation = cursor.sql(sql, params=list(parameters) if parameters else None)
        return _with_uuids(relation.to_arrow_table(), [str(type) for type in relation.types])
    except duckdb.Error as error:
        file.note_error(error)
        raise _sql_error(error, file.path) from error
    finally:
        file.close_cursor(cursor)  # which ends the transaction


def _check_statement(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        raise SQLError(
            "42601", f"a mirror is read by one statement at a time, not {len(statements)}"
        )
    kind = statements[0].type.name
    if kind not in _READS:
        raise SQLError(
            "25006",
            f"cannot execute {kind} in a mirror, which is read-only",
            hint="A mirror is written by its changefeed alone. Read it with SELECT.",
        )


def _sql_error(error: duckdb.Error, path: Path) -> SQLError:
    message = str(error).strip()
    if "read-only mode" in message:
        return SQLError("25006", f"cannot write to mirror {path.name}, which is read-only")
    for kind, state in _STATES:
        if isinstance(error, kind):
            return SQLError(state, message)
    return SQLError("XX000", message)


def _with_uuids(table: pa.Table, types: Sequence[str]) -> pa.Table:
    """DuckDB hands UUIDs over as text; our columns of them are Arrow's own type."""
    for place, type_name in enumerate(types):
        if type_name == "UUID":
            name = table.schema.field(place).name
            table = table.set_column(place, name, _uuid_column(table.column(place)))
    return table


def _uuid_column(column: pa.ChunkedArray[Any]) -> AnyArray:
    texts = column.to_pylist()
    raw = [None if text is None else bytes.fromhex(text.replace("-", "")) for text in texts]
    return pa.array(raw, type=pa.uuid())
