"""JSON lines to record batches: one object a line, its keys the names of columns.

    {"id": 1, "note": "first"}
    {"id": 2}                      note takes its default
    {"id": 3, "note": null}        note is NULL

Values are what `coerce` takes of JSON: what an INSERT would take as a parameter. Empty lines are
skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import pyarrow as pa

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.arrow_columns import column_array
from ...catalog.values.errors import SQLError, null_value
from ...catalog.values.physical import Physical, physical_of, physical_writer
from ...catalog.values.type_kinds import TypeKind
from ...sql import ROWS_PER_TRANSACTION

LINE_BYTES_MAX = 16 * 1024 * 1024
"""What is held of a body that has no line end."""

ROWS_PER_STEP = 100
"""Rows that are read before others have their turn: half a millisecond's work, when not wide."""

_ABSENT = object()


async def json_line_batches(
    chunks: AsyncIterator[bytes], descriptor: TableDescriptor
) -> AsyncGenerator[pa.RecordBatch, None]:
    """Batches of a transaction's rows, as they arrive. Raises SQLError, which names the line."""
    rows = _Rows(descriptor)
    async for number, line in lines_of(chunks):
        if not line.strip():
            continue
        rows.add(number, line)
        if len(rows) == ROWS_PER_TRANSACTION:
            yield rows.take()
        elif len(rows) % ROWS_PER_STEP == 0:
            await asyncio.sleep(0)
    if len(rows):
        yield rows.take()


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[int, bytes], None]:
    """Each line with its number. Raises SQLError 54000 for one that is too long."""
    number = 0
    begun = bytearray()
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            number += 1
            yield number, bytes(begun) + line
            begun.clear()
        begun += rest
        if len(begun) > LINE_BYTES_MAX:
            raise SQLError("54000", f"line {number + 1} has more than {LINE_BYTES_MAX} bytes")
    yield number + 1, bytes(begun)


class _Rows:
    """The rows of the next batch, column by column."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        self._descriptor = descriptor
        self._columns = [_ColumnValues(descriptor, column) for column in descriptor.visible_columns]
        self._names = frozenset(column.name for column in descriptor.visible_columns)
        exact = any(column.type.kind is TypeKind.DECIMAL for column in descriptor.visible_columns)
        self._decode = msgspec.json.Decoder(
            dict[str, Any], float_hook=_exact_number if exact else None
        ).decode
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, number: int, line: bytes) -> None:
        try:
            row = self._read(line)
            for name in row.keys() - self._names:
                self._descriptor.column(name)
            for column in self._columns:
                column.add(row)
        except SQLError as error:
            raise _at_line(error, number) from None
        self._count += 1

    def _read(self, line: bytes) -> dict[str, object]:
        try:
            return self._decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SQLError("22P02", f"not a JSON object: {error}") from None

    def take(self) -> pa.RecordBatch:
        """The batch, and begins the next one."""
        arrays = [column.take() for column in self._columns]
        self._count = 0
        return pa.RecordBatch.from_arrays(arrays, [column.name for column in self._columns])


class _ColumnValues:
    """The physical values of one column."""

    def __init__(self, descriptor: TableDescriptor, column: Column) -> None:
        self.name = column.name
        self._type = column.type
        self._table = descriptor.name
        self._nullable = column.nullable
        self._default = physical_of(column.type, column.default)
        self._write = physical_writer(column.type, column.name)
        self._values: list[Physical] = []

    def add(self, row: dict[str, object]) -> None:
        given = row.get(self.name, _ABSENT)
        value = self._default if given is _ABSENT else None
        if given is not _ABSENT and given is not None:
            value = self._write(given)
        if value is None and not self._nullable:
            raise null_value(self._table, self.name)
        self._values.append(value)

    def take(self) -> pa.Array[Any]:
        array = column_array(self._type, self._values)
        self._values = []
        return array


def _exact_number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise SQLError("22003", f"number out of range: {text}") from None


def _at_line(error: SQLError, number: int) -> SQLError:
    where = f"Line {number}."
    detail = f"{where} {error.detail}" if error.detail else where
    return SQLError(error.sqlstate, error.message, detail=detail, hint=error.hint)
