r"""COPY's binary format: a signature, rows of counted values, and a trailer of minus one.

PGCOPY \n \xff \r \n \0   flags (4)   length of the extension (4)
number of values (2)   for each its length (4), -1 for NULL, and its bytes
-1 (2)
"""

from __future__ import annotations

from struct import Struct

import pyarrow as pa

from ....catalog.column_types import Datum, coerce
from ....catalog.descriptor import Column
from ....catalog.errors import SQLError
from ..wire_types import decode_binary, input_type
from .batches import BATCH_ROWS, ROW_BYTES_MAX, BatchBuilder

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
        self._inputs = [input_type(column.type) for column in builder.columns]

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
        batches, rows, at = [], [], 0
        data = bytes(self._buffer)
        while not self._ended:
            taken = self._row(data, at)
            if taken is None:
                break
            row, at = taken
            rows.append(row)
            if len(rows) == BATCH_ROWS:
                batches.append(self._batch(rows))
                rows = []
        del self._buffer[:at]
        if len(self._buffer) > ROW_BYTES_MAX:
            raise self._builder.error("54000", "a row of COPY is too long", self._line + 1)
        if rows:
            batches.append(self._batch(rows))
        return batches

    def _batch(self, rows: list[list[Datum]]) -> pa.RecordBatch:
        first = self._line - len(rows) + 1
        return self._builder.from_values(rows, range(first, self._line + 1))

    def _row(self, data: bytes, at: int) -> tuple[list[Datum], int] | None:
        """The row at `at` and what stands behind it, or None where it is not whole."""
        if len(data) - at < 2:
            return None
        (count,) = _COUNT.unpack_from(data, at)
        if count == -1:
            self._ended = True
            return None
        line = self._line + 1
        if count != len(self._inputs):
            message = f"row field count is {count}, expected {len(self._inputs)}"
            raise self._builder.error("22P04", message, line)
        at += 2
        row: list[Datum] = []
        for known, column in zip(self._inputs, self._builder.columns, strict=True):
            if len(data) - at < 4:
                return None
            (length,) = _LENGTH.unpack_from(data, at)
            at += 4
            if length < -1 or length > ROW_BYTES_MAX:
                raise self._builder.error("22P04", f"invalid field size {length}", line, column)
            if length == -1:
                row.append(None)
                continue
            if len(data) - at < length:
                return None
            value = decode_binary(known, data[at : at + length], f"column {column.name}")
            row.append(self._fitting(column, value, line))
            at += length
        self._line = line
        return row, at

    def _fitting(self, column: Column, value: Datum, line: int) -> Datum:
        try:
            return coerce(column.type, value)
        except SQLError as error:
            raise self._builder.error(error.sqlstate, error.message, line, column) from error
