"""Results of statements, and the protocol of evaluators that compute queries over Arrow tables."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from ...catalog.values.arrow_columns import column_datums, datum_array
from ...catalog.values.column_types import (
    BOOL,
    BYTES,
    FLOAT8,
    INT8,
    STRING,
    TIMESTAMPTZ,
    ColumnType,
    Datum,
)
from ...kvlayer.clock import Timestamp
from .result_batches import ResultBatches

Row = tuple[Datum, ...]


class Origin(NamedTuple):
    """The column of a table that a result's column is, by what pg_catalog calls them."""

    table_oid: int
    column_number: int


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type: ColumnType
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of one statement.

    `tag` is Postgres's command tag (`SELECT 3`, `INSERT 0 1`). Statements that return rows have
    `columns`, and their rows in one of four shapes: `rows`, an Arrow `table` (what DuckDB computed;
    its column names may repeat), `batches` of it that are still to come, where who ran it asked for
    them, or a `stream` that does not end by itself (a changefeed without a sink; closing it ends
    the feed). `row_count` counts rows returned, or written by DML; with `batches` they are not
    counted yet, and `tag` lacks their number. `commit_timestamp` is set when the statement
    committed by itself; what a job of it has done until it returned is at or below it, too.
    """

    tag: str
    columns: tuple[ResultColumn, ...] = ()
    rows: Sequence[Row] | None = None
    table: pa.Table | None = None
    batches: ResultBatches | None = None
    stream: AsyncGenerator[Row, None] | None = None
    row_count: int = 0
    commit_timestamp: Timestamp | None = None
    notice: str | None = None
    warnings: tuple[str, ...] = ()
    """Warnings, which clients show more loudly than the notice."""
    further: tuple[Result, ...] = ()
    """The results of runs that were carried out with this one (`Session.run`)."""

    @property
    def returns_rows(self) -> bool:
        return not (
            self.rows is None
            and self.table is None
            and self.batches is None
            and self.stream is None
        )

    @property
    def full_tag(self) -> str:
        """The tag, once all batches have been taken."""
        return self.tag if self.batches is None else f"{self.tag} {self.batches.row_count}"

    def fetch_rows(self) -> list[Row]:
        """The rows as Python values. Empty for statements that return none."""
        self._assert_whole()
        if self.rows is not None:
            return list(self.rows)
        if self.table is None:
            return []
        columns = [
            column_datums(column.type, array)
            for column, array in zip(self.columns, self.table.columns, strict=True)
        ]
        return list(zip(*columns, strict=True))

    def batch(self, table: pa.Table) -> Result:
        """One of the batches, as a result of its own."""
        return Result(tag=self.tag, columns=self.columns, table=table, row_count=table.num_rows)

    async def close(self) -> None:
        """Ends what is still to come, if anything is."""
        if self.batches is not None:
            await self.batches.close()
        if self.stream is not None:
            await self.stream.aclose()

    def _assert_whole(self) -> None:
        assert self.stream is None, "rows of a stream come one by one"
        assert self.batches is None, "rows of batches come one batch after another"

    def fetch_arrow(self) -> pa.Table:
        self._assert_whole()
        if self.table is not None:
            return self.table
        by_column = list(zip(*(self.rows or ()), strict=True)) or [()] * len(self.columns)
        arrays = [
            datum_array(column.type, list(values))
            for column, values in zip(self.columns, by_column, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=arrow_schema(self.columns))


class ClosedOnError:
    """Ends the rest of a result if its `async with` block ends with an error.

    Every result that is sent has one around it, and a generator would cost as much as a row.
    """

    __slots__ = ("_result",)

    def __init__(self, result: Result) -> None:
        self._result = result

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            await self._result.close()


def arrow_schema(columns: Sequence[ResultColumn]) -> pa.Schema:
    """Returns the Arrow schema of a result's table. Names may repeat."""
    return pa.schema([pa.field(column.name, column.type.arrow_type) for column in columns])


LETTERS = {
    "": STRING, "i": INT8, "b": BOOL, "f": FLOAT8, "t": TIMESTAMPTZ,
    "y": BYTES,
}  # fmt: skip
"""The types of columns, by the letter behind a colon."""


def typed_columns(text: str, letters: Mapping[str, ColumnType] = LETTERS) -> dict[str, ColumnType]:
    """Columns by name, of words such as `job_id:i` and `description`."""
    pairs = [word.partition(":") for word in text.split()]
    return {name: letters[letter] for name, _, letter in pairs}


def result_columns(text: str) -> tuple[ResultColumn, ...]:
    """The columns of a result, by the text that `typed_columns` reads."""
    return tuple(ResultColumn(name, type) for name, type in typed_columns(text).items())


def selected(columns: Sequence[ResultColumn], table: pa.Table) -> Result:
    """The result of a query whose rows are a table's."""
    count = table.num_rows
    return Result(tag=f"SELECT {count}", columns=tuple(columns), table=table, row_count=count)


def listing(tag: str, columns: str | Sequence[ResultColumn], rows: Sequence[Row]) -> Result:
    """The result of a statement that lists something. Columns may be words of `result_columns`."""
    if isinstance(columns, str):
        columns = result_columns(columns)
    return Result(tag=tag, columns=tuple(columns), rows=rows, row_count=len(rows))


Declared = Sequence[ColumnType | None]
"""The types that tables give a result's columns, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query. Column names may repeat."""

    columns: tuple[ResultColumn, ...]
    table: pa.Table


@dataclass(frozen=True, slots=True)
class ArrowQuery:
    """A query in DuckDB's SQL, with all tables that it reads, by their names in it."""

    sql: str
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    parameters: Sequence[object] = ()
    declared: Declared = ()


class QueryEvaluator(Protocol):
    """Computes queries. All methods raise duckdb.Error."""

    async def run(self, query: ArrowQuery) -> Answer:
        """Returns the whole result of one query."""
        ...

    def answers(self, query: ArrowQuery, *, whole: bool = False) -> AsyncGenerator[Answer, None]:
        """Returns the result of one query in batches, made as they are asked for: one at least, and
        of a result that is wanted `whole` few."""
        ...

    async def describe(self, query: ArrowQuery) -> tuple[ResultColumn, ...]:
        """The columns that a query has, without running it. The parameters' values say nothing."""
        ...
