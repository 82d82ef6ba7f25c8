r"""COPY's binary format: a signature, rows of counted values, and a trailer of minus one.

PGCOPY \n \xff \r \n \0   flags (4)   length of the extension (4)
number of values (2)   for each its length (4), -1 for NULL, and its bytes
-1 (2)
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column
from ....catalog.values.arrow_columns import AnyArray, datum_array
from ....catalog.values.column_types import Datum, coerce
from ....catalog.values.errors import SQLError
from ..wire_types import InputType, decode_binary, input_type
from .batches import BATCH_ROWS, ROW_BYTES_MAX, BatchBuilder
from .binary_columns import column_at_once

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER = SIGNATURE + b"\0\0\0\0\0\0\0\0"
TRAILER = b"\xff\xff"

_COUNT, _LENGTH = Struct("!h"), Struct("!i")
_HEADER_BYTES = len(HEADER)
_CRITICAL_FLAGS = 0xFFFF0000


class BinaryReader:
    """Reads the binary format."""

    def __init__(self, builder: BatchBuilder) -> None:
        self._builder = builder
        self._buffer = bytearray()
        self._line = 0
        self._begun = False
        self._ended = False

    def feed(self, data: bytes) -> list[pa.RecordBatch]:
        self._buffer += data
        if not self._begun and not self._take_header():
            return []
        return self._take_rows()

    def end(self) -> list[pa.RecordBatch]:
        if not self._begun:
            raise SQLError("22P04", "COPY file signature not recognized")
        if self._buffer and not self._ended:
            raise self._builder.error("22P04", "unexpected EOF in COPY data", self._line + 1)
        return []

    def _take_header(self) -> bool:
        buffer = self._buffer
        if bytes(buffer[: len(SIGNATURE)]) != SIGNATURE[: len(buffer)]:
            raise SQLError("22P04", "COPY file signature not recognized")
        if len(buffer) < _HEADER_BYTES:
            return False
        flags = int.from_bytes(buffer[11:15], "big")
        if flags & _CRITICAL_FLAGS:
            raise SQLError("22P04", "unrecognized critical flags in COPY file header")
        extension = int.from_bytes(buffer[15:19], "big")
        if extension > ROW_BYTES_MAX:
            raise SQLError("22P04", "invalid COPY file header (wrong length)")
        if len(buffer) < _HEADER_BYTES + extension:
            return False
        del buffer[: _HEADER_BYTES + extension]
        self._begun = True
        return True

    def _take_rows(self) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        rows: list[list[bytes | None]] = []
        at = 0
        data = bytes(self._buffer)
        while not self._ended:
            taken = self._row(data, at)
            if taken is None:
                break
            fields, at = taken
            rows.append(fields)
            if len(rows) == BATCH_ROWS:
                batches.append(self._batch(rows))
                rows = []
        del self._buffer[:at]
        if len(self._buffer) > ROW_BYTES_MAX:
            raise self._builder.error("54000", "a row of COPY is too long", self._line + 1)
        if rows:
            batches.append(self._batch(rows))
        return batches

    def _batch(self, rows: list[list[bytes | None]]) -> pa.RecordBatch:
        lines = range(self._line - len(rows) + 1, self._line + 1)
        columns = zip(self._builder.columns, zip(*rows, strict=True), strict=True)
        return self._builder.from_arrays(
            [self._column(column, values, lines) for column, values in columns]
        )

    def _row(self, data: bytes, at: int) -> tuple[list[bytes | None], int] | None:
        """A row's fields and what stands behind it, or None where it is not whole."""
        whole = len(data)
        if whole - at < 2:
            return None
        (count,) = _COUNT.unpack_from(data, at)
        if count == -1:
            self._ended = True
            return None
        columns = self._builder.columns
        if count != len(columns):
            message = f"row field count is {count}, expected {len(columns)}"
            raise self._builder.error("22P04", message, self._line + 1)
        at += 2
        fields: list[bytes | None] = []
        for _ in range(count):
            if whole - at < 4:
                return None
            (length,) = _LENGTH.unpack_from(data, at)
            at += 4
            if 0 <= length <= ROW_BYTES_MAX:
                end = at + length
                if end > whole:
                    return None
                fields.append(data[at:end])
                at = end
            elif length == -1:
                fields.append(None)
            else:
                column = columns[len(fields)]
                message = f"invalid field size {length}"
                raise self._builder.error("22P04", message, self._line + 1, column)
        self._line += 1
        return fields, at

    def _column(
        self, column: Column, values: Sequence[bytes | None], lines: Sequence[int]
    ) -> AnyArray:
        self._builder.check_nulls(column, values, lines)
        array = column_at_once(column.type, values)
        if array is not None:
            return array
        known = input_type(column.type)
        datums = [
            None if value is None else self._datum(column, known, value, line)
            for value, line in zip(values, lines, strict=True)
        ]
        return datum_array(column.type, datums)

    def _datum(self, column: Column, known: InputType, value: bytes, line: int) -> Datum:
        try:
            return coerce(column.type, decode_binary(known, value, f"column {column.name}"))
        except SQLError as error:
            raise self._builder.error(error.sqlstate, error.message, line, column) from error
