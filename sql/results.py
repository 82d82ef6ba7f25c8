"""What a statement gives back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from ..catalog.arrow_columns import column_datums, datum_array
from ..catalog.column_types import ColumnType, Datum
from ..catalog.type_kinds import TypeKind
from ..kvlayer.clock import Timestamp

Row = tuple[Datum, ...]

INT8 = ColumnType(TypeKind.INT8)
STRING = ColumnType(TypeKind.STRING)
BOOL = ColumnType(TypeKind.BOOL)
TIMESTAMPTZ = ColumnType(TypeKind.TIMESTAMPTZ)


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
    `columns`, and their rows in one of three shapes: `rows`, an Arrow `table` (what DuckDB
    computed; its column names may repeat), or a `stream` that does not end by itself (a changefeed
    without a sink; closing it ends the feed). `row_count` counts rows returned, or written by DML.
    `commit_timestamp` is set when the statement committed by itself.
    """

    tag: str
    columns: tuple[ResultColumn, ...] = ()
    rows: Sequence[Row] | None = None
    table: pa.Table | None = None
    stream: AsyncGenerator[Row, None] | None = None
    row_count: int = 0
    commit_timestamp: Timestamp | None = None
    notice: str | None = None

    @property
    def returns_rows(self) -> bool:
        return self.rows is not None or self.table is not None or self.stream is not None

    def fetch_rows(self) -> list[Row]:
        """The rows as Python values. Empty for statements that return none."""
        assert self.stream is None, "rows of a stream come one by one"
        if self.rows is not None:
            return list(self.rows)
        if self.table is None:
            return []
        columns = [
            column_datums(column.type, array)
            for column, array in zip(self.columns, self.table.columns, strict=True)
        ]
        return list(zip(*columns, strict=True))

    def fetch_arrow(self) -> pa.Table:
        """The rows as Arrow."""
        assert self.stream is None, "rows of a stream come one by one"
        if self.table is not None:
            return self.table
        by_column = list(zip(*(self.rows or ()), strict=True)) or [()] * len(self.columns)
        arrays = [
            datum_array(column.type, list(values))
            for column, values in zip(self.columns, by_column, strict=True)
        ]
        fields = [pa.field(column.name, column.type.arrow_type) for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def listing(tag: str, columns: Sequence[tuple[str, ColumnType]], rows: Sequence[Row]) -> Result:
    """The result of a SHOW statement."""
    return Result(
        tag=tag,
        columns=tuple(ResultColumn(name, type) for name, type in columns),
        rows=rows,
        row_count=len(rows),
    )
