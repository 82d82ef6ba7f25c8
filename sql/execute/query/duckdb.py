"""DuckDB as an evaluator of queries over Arrow: it has no tables, no files and no settings.

Each query runs on a cursor of its own, whose registered tables nobody else sees, in one of a few
lanes. What DuckDB computes leaves as Arrow in the types of our columns:

    integers of any width   INT8 (HUGEINT, which sum() returns: DECIMAL(38,0))
    FLOAT                   FLOAT4
    DOUBLE                  FLOAT8
    lists of these          ARRAY
    types we do not have    0A000

and a column that is plainly one of a table's has the type that the table gives it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import date
from functools import partial
from tempfile import TemporaryDirectory
from threading import Lock
from traceback import clear_frames
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.column_types import STRING, ColumnType, array_of
from ....catalog.values.errors import SQLError
from ....catalog.values.session_zone import UTC_NAME, zone_name
from ....catalog.values.type_kinds import BROAD, DUCKDB_NAMES, TypeKind
from ....changefeed.sinks.duckdb.errors import duckdb_error
from ....changefeed.sinks.duckdb.reading.interruption import in_lane, interrupt
from ....kvlayer.clock import WallClock
from ....kvlayer.process.memory import share
from ....kvlayer.process.offload import Offload
from ...builtins import evaluator_functions
from ...builtins.documents import functions as documents
from ...results.results import (
    Answer,
    ArrowQuery,
    Declared,
    QueryEvaluator,
    ResultColumn,
    arrow_schema,
)
from ...runtime.analytic_lanes import LANES_MAX, Lanes, QueryTime, asker

MEMORY_LIMIT = f"{share(5, at_most=2_000_000_000)}B"
SPILL_LIMIT = "4GB"
"""Bytes of the disk that queries may take where they do not fit into memory."""

VALUE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of one value in a result: the limit of a stored value."""

BATCH_ROWS = 8192
"""Rows of a batch: a millisecond's work for DuckDB, and some tens for who writes them out."""

BATCH_BYTES = 2 * 1024 * 1024
"""Bytes of a batch from which on it is given no more rows: very wide ones are still bounded."""

VECTOR_ROWS = 2048
"""Rows that DuckDB computes at once, the least that it can be asked for."""

T = TypeVar("T")

_Begun = tuple[duckdb.DuckDBPyRelation, list[str], list[str]]

_CONFIGURATION = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL arrow_lossless_conversion = true",
    "SET GLOBAL integer_division = true",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL allowed_configs = ['TimeZone']",
    "SET GLOBAL lock_configuration = true",
)
"""Of all settings the time zone of a cursor alone can be changed behind these."""

_VARYING = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())

_SAME = {name: kind for kind, name in DUCKDB_NAMES.items() if kind not in BROAD}
_WIDENED = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"), TypeKind.INT8
    ),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), TypeKind.TIMESTAMP),
    **dict.fromkeys(('"NULL"', "NULL"), TypeKind.STRING),
}
_HUGE = re.compile("^(HUGEINT|UHUGEINT|UBIGINT)")
"""Integers beyond INT8, and lists of them: they leave as decimals."""

EPOCH_DAY = date(1970, 1, 1).toordinal()
_MOMENTS_MIN_MAX = {
    TypeKind.DATE: (date.min.toordinal() - EPOCH_DAY, date.max.toordinal() - EPOCH_DAY),
    **dict.fromkeys(
        (TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ),
        (-62_135_596_800_000_000, 253_402_300_799_999_999),
    ),
}
"""The years 1 to 9999, in days and in microseconds since 1970: DuckDB's moments go further."""


class WholeAnswers(QueryEvaluator):
    """An evaluator whose whole answers are its batches together."""

    async def run(self, query: ArrowQuery) -> Answer:
        async with aclosing(self.answers(query, whole=True)) as answers:
            found = [answer async for answer in answers]
        return Answer(found[0].columns, pa.concat_tables([each.table for each in found]))


class Analytics(WholeAnswers):
    """An in-memory DuckDB without access to anything but what each query is given."""

    def __init__(
        self, offload: Offload, wall: WallClock, *, lanes: int = LANES_MAX, name: str = "analytics"
    ) -> None:
        """`name` is what its lanes are called."""
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._spilled: TemporaryDirectory[str] | None = None
        self._offloads = [
            offload.lane(f"{name}-{number}", background=True) for number in range(lanes)
        ]
        self._idle = list(self._offloads)
        self._opening = offload.lane(f"{name}-opening", background=True)
        self._opens = asyncio.Lock()
        self._lanes = Lanes(lanes)
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._open: set[OpenQuery] = set()
        self._wall = wall
        self._closed = False

    async def answers(
        self, query: ArrowQuery, *, whole: bool = False
    ) -> AsyncGenerator[Answer, None]:
        """Runs one query, and gives its answer in batches as they are asked for: one at least, and
        no other where it is wanted `whole`.

        It has a lane only while a batch is computed: between two of them it holds its tables, and
        what DuckDB has computed ahead. Raises duckdb.Error.
        """
        assert not self._closed, "a closed evaluator is asked"
        zone, who = zone_name(), asker()  # of all batches: who takes a later one may be a FETCH
        cursor = (self._connection or await self._connected()).cursor()
        begin = partial(_begun, cursor, zone, query)
        opened = OpenQuery(cursor, begin, query.declared, whole=whole)
        self._open.add(opened)
        time = QueryTime(who)
        try:
            while not opened.ended:
                async with self._lanes.one(who), time.running():
                    answer = await self._in_lane(cursor, opened.next)
                yield answer
        finally:
            self._open.discard(opened)
            opened.close()

    async def _in_lane(self, cursor: duckdb.DuckDBPyConnection, call: Callable[[], T]) -> T:
        """Returns the result of a call on a cursor. The caller holds a lane."""
        lane = self._idle.pop()
        self._running.add(cursor)
        try:
            return await in_lane(lane, cursor, call)
        finally:
            self._running.discard(cursor)
            self._idle.append(lane)

    async def describe(self, query: ArrowQuery) -> tuple[ResultColumn, ...]:
        """The columns that a query has, without running it. Raises duckdb.Error."""
        parameters = [None] * len(query.parameters)
        answer = await self.run(ArrowQuery(f"DESCRIBE {query.sql}", query.tables, parameters))
        names, types = answer.table.column(0).to_pylist(), answer.table.column(1).to_pylist()
        return tuple(
            ResultColumn(str(name), narrowed(_type_of(str(type)) or STRING, query.declared, place))
            for place, (name, type) in enumerate(zip(names, types, strict=True))
        )

    def close(self) -> None:
        """Interrupts what runs, and waits for it: DuckDB closes nothing that is in use."""
        self._closed = True
        for cursor in self._running:
            interrupt(cursor)
        for lane in (self._opening, *self._offloads):
            lane.close()
        for query in self._open:
            query.close()
        if self._connection is not None:
            self._connection.close()
        if self._spilled is not None:
            self._spilled.cleanup()

    async def _connected(self) -> duckdb.DuckDBPyConnection:
        """Opens DuckDB in a lane: that takes a tenth of a second of CPU time."""
        async with self._opens:
            if self._connection is None:
                await self._opening.run(self._connect)
            assert self._connection is not None
            return self._connection

    def _connect(self) -> None:
        """In the lane, where whoever waits for it may be cancelled, and `close` still finds all."""
        if self._connection is None:
            self._spilled = _spill_folder()
            spilled = "" if self._spilled is None else self._spilled.name
            self._connection = _open_database(self._wall, spilled)


def _spill_folder() -> TemporaryDirectory[str] | None:
    """Where DuckDB puts what does not fit into memory: rows, so a folder of this user alone. None
    where no folder can be written: then a query that needs one is refused (53200)."""
    try:
        return TemporaryDirectory(prefix="tailrace-queries-")
    except OSError:
        return None


def _open_database(wall: WallClock, spilled: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": spilled,
            "max_temp_directory_size": SPILL_LIMIT,
        },
    )
    documents.install(connection)
    evaluator_functions.install(connection, wall)
    for statement in _CONFIGURATION:
        connection.execute(statement)
    return connection


def _begun(cursor: duckdb.DuckDBPyConnection, zone: str, query: ArrowQuery) -> _Begun:
    """A query ready to be computed in a time zone, and its columns' names and DuckDB types."""
    if zone != UTC_NAME:
        cursor.execute(f"SET SESSION TimeZone = '{zone}'")
    for name, table in query.tables.items():
        cursor.register(name, table)
    relation = cursor.sql(query.sql, params=list(query.parameters) or None)
    assert relation is not None, "only queries are run"
    names, types = list(relation.columns), [str(type) for type in relation.types]
    unknown = next((type for type in types if _type_of(type) is None), None)
    if unknown is not None:
        raise SQLError("0A000", f"a result column of type {unknown}", hint="Cast it to STRING.")
    if any(map(_HUGE.match, types)):  # of which Arrow has none
        given, types = types, [_HUGE.sub("DECIMAL(38,0)", type) for type in types]
        items = [
            f"#{place}" if type == before else f"CAST(#{place} AS {type})"
            for place, (before, type) in enumerate(zip(given, types, strict=True), start=1)
        ]
        relation = relation.project(", ".join(items))
    return relation, names, types


def _answer(
    names: Sequence[str], types: Sequence[str], found: pa.Table, declared: Declared
) -> Answer:
    """Converts DuckDB's result to the store's types. Raises duckdb.Error for values outside of
    them, and SQLError 54000 for a value that is too large."""
    _check_sizes(found)
    columns: list[ResultColumn] = []
    arrays: list[pa.ChunkedArray[pa.Scalar[pa.DataType]]] = []
    for name, type_name, array in zip(names, types, found.columns, strict=True):
        broad, converted = _converted(type_name, array)
        type = narrowed(broad, declared, len(columns))
        if type.arrow_type != broad.arrow_type:
            converted = converted.cast(type.arrow_type)
        columns.append(ResultColumn(name, type))
        arrays.append(converted)
    return Answer(tuple(columns), pa.Table.from_arrays(arrays, schema=arrow_schema(columns)))


def _check_sizes(found: pa.Table) -> None:
    """Refuses values that are too large, whatever function made them: writing one out to a client
    is one step of the loop."""
    if found.nbytes <= VALUE_BYTES_MAX:
        return
    for column in found.columns:
        if column.type not in _VARYING:
            continue
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > VALUE_BYTES_MAX:
            raise SQLError(
                "54000",
                f"a value of the result has {longest} bytes",
                detail=f"A value has at most {VALUE_BYTES_MAX}.",
            )


def narrowed(broad: ColumnType, declared: Declared, place: int) -> ColumnType:
    """The declared type of a result's column, where it is one that has the broad type found."""
    type = declared[place] if place < len(declared) else None
    if type is not None and enum_in(type) is not None:
        return type
    return broad if type is None or type.broad != broad else type


def _type_of(name: str) -> ColumnType | None:
    """The type in which a column of DuckDB's type `name` leaves; None where we have none."""
    if name.endswith("[]"):
        element = _type_of(name[:-2])
        return None if element is None or element.element is not None else array_of(element)
    if name.startswith("ENUM("):
        return STRING
    if name.startswith("DECIMAL("):
        precision, scale = name[8:-1].split(",")
        return ColumnType(TypeKind.DECIMAL, int(precision), int(scale))
    if _HUGE.match(name):
        return ColumnType(TypeKind.DECIMAL, 38, 0)
    kind = _SAME.get(name) or _WIDENED.get(name)
    return None if kind is None else ColumnType(kind)


def _converted(
    name: str, array: pa.ChunkedArray[pa.Scalar[pa.DataType]]
) -> tuple[ColumnType, pa.ChunkedArray[pa.Scalar[pa.DataType]]]:
    """A column in one of our types."""
    type = _type_of(name)
    assert type is not None, name
    _check_moments(type, array)
    if array.type == type.arrow_type:
        return type, array
    exact = name in _SAME and not pa.types.is_null(array.type)
    exact = exact or name.startswith(("ENUM(", "DECIMAL("))
    return type, array.cast(type.arrow_type, safe=exact)


def _check_moments(type: ColumnType, array: pa.ChunkedArray[pa.Scalar[pa.DataType]]) -> None:
    bounds = _MOMENTS_MIN_MAX.get(type.kind)
    if bounds is None or array.type != type.arrow_type or len(array) == array.null_count:
        return
    days = type.kind is TypeKind.DATE
    numbers = array.cast(pa.int32() if days else pa.int64())
    least, greatest = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    if least < bounds[0] or greatest > bounds[1]:
        raise duckdb.OutOfRangeException(f"Out of Range Error: {type.kind.value} out of range")


def let_go(error: BaseException) -> None:
    """Forgets what the frames below hold: else it is freed where the error ends, on the loop, and
    to free a value of 300 MB takes some 40 ms."""
    clear_frames(error.__traceback__)


class OpenQuery:
    """A query under way on a cursor of its own, which it closes.

    `next` blocks, and is called in a thread, each time perhaps in another. The last one closes the
    cursor. `close` may be called meanwhile: then the query is interrupted, and its cursor closed
    when `next` returns.
    """

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        begin: Callable[[], _Begun],
        declared: Declared,
        *,
        whole: bool = False,
    ) -> None:
        self.ended = False
        self._cursor = cursor
        self._begin: Callable[[], _Begun] | None = begin
        self._declared = declared
        self._whole = whole
        self._reader: pa.RecordBatchReader | None = None
        self._names: Sequence[str] = ()
        self._types: Sequence[str] = ()
        self._closed = False
        self._using = Lock()

    def next(self) -> Answer:
        """The next rows; none only where there are no more. Raises duckdb.Error."""
        try:
            with self._using:
                return self._next()
        except (pa.ArrowException, OSError) as error:
            raise duckdb_error(f"{error}") from error
        except BaseException as error:
            let_go(error)
            self._closed = True  # nothing comes behind an error: the rest goes in this thread, too
            raise
        finally:
            if self._closed:
                self.close()

    def _next(self) -> Answer:
        assert not self.ended, "rows are asked for behind the last"
        if self._closed:
            raise duckdb.InterruptException("INTERRUPT Error: the query was closed")
        if self._reader is None:
            assert self._begin is not None
            relation, self._names, self._types = self._begin()
            self._reader = relation.to_arrow_reader(VECTOR_ROWS)
        batches: list[pa.RecordBatch] = []
        row_count = byte_count = 0
        while self._whole or (row_count < BATCH_ROWS and byte_count < BATCH_BYTES):
            batch = next(self._reader, None)
            if batch is None:
                self.ended = self._closed = True
                break
            batches.append(batch)
            row_count += batch.num_rows
            byte_count += batch.nbytes
        found = pa.Table.from_batches(batches, schema=self._reader.schema)
        return _answer(self._names, self._types, found, self._declared)

    def close(self) -> None:
        """Ends the query: DuckDB forgets what it has computed, and lets go of the tables."""
        self._closed = True
        interrupt(self._cursor)
        if self._using.acquire(blocking=False):
            try:
                self._reader = self._begin = None
                self._cursor.close()
            finally:
                self._using.release()
