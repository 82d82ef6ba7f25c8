"""Reading mirrors: one SELECT, on a read-only transaction, beside the feed that writes.

A read sees the mirror as of one commit of the sink. Before anything of it is shown, its caller is
told in that same transaction whose rows the file holds, and may refuse. What the statement may be
is judged by its parse (`read_statement`); the transaction is READ ONLY, and the instance was opened
with external access off and its configuration locked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from .....catalog.values.arrow_columns import AnyArray
from .....catalog.values.errors import SQLError
from ...protocol import SinkError, SinkRefused
from ..errors import MirrorHeld, duckdb_error
from ..files import DuckDBFiles
from ..mirror_file import MirrorFile, run_whole
from ..ownership import MirrorSources, sources_of
from ..table_schema import shown_name
from .interruption import in_lane
from .read_statement import judge

BATCH_ROWS = 8192

Permit = Callable[[MirrorSources], Awaitable[None]]
"""Raises SQLError where the reader may not see all rows of the file."""

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

    async def read(
        self,
        location: str,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        permit: Permit | None = None,
        bytes_max: int | None = None,
    ) -> pa.Table:
        """The rows of one SELECT. `location` is a sink URI, or a path under the mirror roots.

        The progress of idle feeds into the file is brought up to date first. Works whether or not a
        feed writes the file at the moment. Cancelling the caller interrupts the query. Raises
        SQLError: what `permit` raises, 25006 for a statement that writes, 58P01 for a file that
        does not exist, 55006 for one that another process holds, 42501 for one that is out of
        bounds, 54000 for a result of more than `bytes_max` bytes.
        """
        path = self._files.locations.read_target(location)
        if not path.is_file():
            raise SQLError("58P01", f"mirror file {path} does not exist")
        try:
            async with self._files.using(path) as file:
                await file.freshen()
                async with self._files.read_lane() as lane:
                    cursor = file.cursor()
                    try:
                        sources = await in_lane(lane, cursor, partial(_begin, file, cursor))
                        if permit is not None:
                            await permit(sources)
                        call = partial(_read, file, cursor, sql, parameters, bytes_max)
                        return await in_lane(lane, cursor, call)
                    finally:
                        # Which ends the transaction.
                        await run_whole(lane, partial(file.close_cursor, cursor))
        except MirrorHeld as error:
            raise SQLError("55006", str(error)) from error
        except (SinkError, SinkRefused) as error:
            raise SQLError("58030", str(error)) from error

    async def tables(self, location: str) -> list[str]:
        """The names of the mirror tables in a file."""
        found = await self.read(
            location, "SELECT mirror_table FROM _tailrace.mirrors ORDER BY mirror_table"
        )
        return [shown_name(str(name)) for name in found.column(0).to_pylist()]


def _begin(file: MirrorFile, cursor: duckdb.DuckDBPyConnection) -> MirrorSources:
    """Begins the transaction of a read: what it sees is what these sources are of."""
    try:
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        return sources_of(cursor)
    except duckdb.Error as error:
        file.note_error(error)
        raise _sql_error(error, file.path) from error


def _read(
    file: MirrorFile,
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Sequence[object],
    bytes_max: int | None,
) -> pa.Table:
    try:
        judged = judge(cursor, sql)
        relation = cursor.sql(judged.query, params=list(parameters) if parameters else None)
        if judged.explain is not None:
            return pa.table({"explain_value": [relation.explain(judged.explain)]})
        found = _gathered(relation.to_arrow_reader(BATCH_ROWS), bytes_max)
        return _with_uuids(found, [str(type) for type in relation.types])
    except (pa.ArrowException, OSError) as error:
        raise _sql_error(duckdb_error(f"{error}"), file.path) from error
    except duckdb.Error as error:
        file.note_error(error)
        raise _sql_error(error, file.path) from error


def _gathered(batches: pa.RecordBatchReader, bytes_max: int | None) -> pa.Table:
    """All batches; Arrow holds them outside of DuckDB's limit of memory."""
    taken: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        size += batch.nbytes
        if bytes_max is not None and size > bytes_max:
            raise SQLError(
                "54000",
                f"the result has more than {bytes_max} bytes",
                hint="Ask for fewer rows or columns: LIMIT, aggregates.",
            )
        taken.append(batch)
    return pa.Table.from_batches(taken, schema=batches.schema)


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
