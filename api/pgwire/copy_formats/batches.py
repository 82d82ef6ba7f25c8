"""Rows as Arrow, and where in a COPY a value stands that does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column
from ....catalog.rows.text_columns import PLAIN, cast_texts
from ....catalog.values.arrow_columns import AnyArray, datum_array
from ....catalog.values.column_types import ColumnType, Datum, coerce
from ....catalog.values.errors import SQLError, null_value
from ....catalog.values.type_kinds import TEXTS

ROW_BYTES_MAX = 32 * 1024 * 1024
"""A row that has not ended by then is refused."""

BLOCK_BYTES = 64 * 1024
"""Lines are gathered until they are this long, and what is longer is cut: a few milliseconds."""

BATCH_ROWS = 1000
"""Rows that are written together: a few milliseconds of the loop."""

Rows = Sequence[Sequence["str | None"]]


class BatchBuilder:
    """Makes Arrow of rows, and says where a value is that does not fit.

    `line` counts lines, from one, as PostgreSQL's messages do.
    """

    def __init__(self, table: str, columns: Sequence[Column]) -> None:
        self.columns = columns
        self._table = table
        self._schema = pa.schema([pa.field(c.name, c.type.arrow_type) for c in columns])

    def error(
        self,
        sqlstate: str,
        message: str,
        line: int,
        column: Column | None = None,
        value: object = None,
    ) -> SQLError:
        place = f"COPY {self._table}, line {line}"
        if column is not None:
            place += f", column {column.name}"
        if value is not None:
            shown = f"{value}"
            place += f': "{shown[:100]}{"…" if len(shown) > 100 else ""}"'
        return SQLError(sqlstate, message, detail=f"{place}.")

    def check_width(self, row: Sequence[object], line: int) -> None:
        wanted = len(self.columns)
        if len(row) < wanted:
            missing = self.columns[len(row)].name
            raise self.error("22P04", f'missing data for column "{missing}"', line)
        if len(row) > wanted:
            raise self.error("22P04", "extra data after last expected column", line)

    def from_text(self, rows: Rows, lines: Sequence[int]) -> pa.RecordBatch:
        """A batch of rows in text; `lines[i]` is the line of `rows[i]`. Raises SQLError."""
        for row, line in zip(rows, lines, strict=True):
            if len(row) != len(self.columns):
                self.check_width(row, line)
        arrays = [
            self._column(column, list(values), lines)
            for column, values in zip(self.columns, zip(*rows, strict=True), strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def from_columns(self, texts: pa.RecordBatch, lines: Sequence[int]) -> pa.RecordBatch:
        """A batch of columns of texts, as many as the table's. Raises SQLError."""
        arrays = [
            self._column_of(column, cast(pa.StringArray, array), lines)
            for column, array in zip(self.columns, texts.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column_of(self, column: Column, texts: pa.StringArray, lines: Sequence[int]) -> AnyArray:
        if column.nullable or not texts.null_count:
            array = cast_texts(column.type, texts)
            if array is not None:
                return array
        return self._column(column, texts.to_pylist(), lines)

    def from_arrays(self, arrays: Sequence[AnyArray]) -> pa.RecordBatch:
        """A batch of columns that fit the table's, NULLs and all."""
        return pa.RecordBatch.from_arrays(list(arrays), schema=self._schema)

    def check_nulls(self, column: Column, values: Sequence[object], lines: Sequence[int]) -> None:
        """Raises SQLError 23502 where a value is missing that must not."""
        if not column.nullable and None in values:
            lacking = null_value(self._table, column.name)
            told = self.error("23502", lacking.message, lines[values.index(None)], column)
            told.violated = lacking.violated
            raise told

    def _column(self, column: Column, values: list[str | None], lines: Sequence[int]) -> AnyArray:
        self.check_nulls(column, values, lines)
        array = _fast(column.type, values)
        if array is not None:
            return array
        datums: list[Datum] = []
        for value, line in zip(values, lines, strict=True):
            try:
                datums.append(coerce(column.type, value))
            except SQLError as error:
                raise self.error(error.sqlstate, error.message, line, column, value) from error
        return datum_array(column.type, datums)


def in_slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _fast(type: ColumnType, values: list[str | None]) -> AnyArray | None:
    """The column as Arrow reads it, where that is just what `coerce` would say; else None."""
    if type.kind in TEXTS and type.width is None:
        try:
            return pa.array(values, pa.string())
        except (pa.ArrowInvalid, UnicodeEncodeError):
            return None
    return cast_texts(type, pa.array(values, pa.string())) if type.kind in PLAIN else None
