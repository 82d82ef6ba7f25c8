"""Writers of COPY's formats: rows to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ....catalog.rows.text_columns import text_bytes
from ....sql import Result, ResultColumn, Row
from ....sql.syntax.statements import CopyFormat, CopyOptions
from ..column_texts import column_texts, joined_rows
from ..wire_types import BINARY, TEXT, encoder
from .binary import HEADER, TRAILER

_COUNT, _LENGTH = Struct("!h"), Struct("!i")
_NULL = b"\xff\xff\xff\xff"
_ESCAPED = {
    ord("\\"): "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r",
}  # fmt: skip


class RowWriter(Protocol):
    """The bytes of a COPY TO: `head`, then each row's, then `tail`."""

    head: bytes
    tail: bytes

    def row(self, row: Row) -> bytes: ...

    def rows(self, table: pa.Table) -> list[bytes]:
        """Some rows of a result that is Arrow: each as `row` writes it."""
        ...


def make_writer(options: CopyOptions, columns: Sequence[ResultColumn]) -> RowWriter:
    match options.format:
        case CopyFormat.TEXT:
            return TextWriter(options, columns)
        case CopyFormat.CSV:
            return CSVWriter(options, columns)
        case CopyFormat.BINARY:
            return BinaryWriter(columns)


class TextWriter:
    """Tabs between values, a backslash before what would be read as something else."""

    def __init__(self, options: CopyOptions, columns: Sequence[ResultColumn]) -> None:
        self._types = [column.type for column in columns]
        self._encoders = [encoder(column.type, TEXT) for column in columns]
        self._delimiter = options.delimiter
        self._escaped = {**_ESCAPED, ord(options.delimiter): f"\\{options.delimiter}"}
        if options.delimiter == "\t":
            self._escaped[9] = "\\t"
        self._null = options.null
        names = options.delimiter.join(column.name for column in columns)
        self.head = b"" if not options.header else f"{names}\n".encode()
        self.tail = b""

    def row(self, row: Row) -> bytes:
        fields = [
            self._null if value is None else form(value).decode().translate(self._escaped)
            for value, form in zip(row, self._encoders, strict=True)
        ]
        return (self._delimiter.join(fields) + "\n").encode()

    def rows(self, table: pa.Table) -> list[bytes]:
        columns = [
            self._escape(column_texts(type, column))
            for type, column in zip(self._types, table.columns, strict=True)
        ]
        return [row + b"\n" for row in joined_rows(columns, self._delimiter, self._null)]

    def _escape(self, texts: pa.StringArray) -> pa.StringArray:
        found = set(text_bytes(texts).decode(errors="ignore")) & set(map(chr, self._escaped))
        for character in sorted(found, key=lambda c: c != "\\"):  # backslashes first
            instead = self._escaped[ord(character)]
            texts = pc.replace_substring(texts, character, instead)
        return texts


class CSVWriter:
    """Quotes around what would be read as something else."""

    def __init__(self, options: CopyOptions, columns: Sequence[ResultColumn]) -> None:
        self._options = options
        self._types = [column.type for column in columns]
        self._encoders = [encoder(column.type, TEXT) for column in columns]
        self._special = (options.delimiter, options.quote, "\n", "\r")
        self._single = len(columns) == 1
        names = options.delimiter.join(self._field(column.name) for column in columns)
        self.head = b"" if not options.header else f"{names}\n".encode()
        self.tail = b""

    def row(self, row: Row) -> bytes:
        null = self._options.null
        fields = [
            null if value is None else self._field(form(value).decode())
            for value, form in zip(row, self._encoders, strict=True)
        ]
        return (self._options.delimiter.join(fields) + "\n").encode()

    def rows(self, table: pa.Table) -> list[bytes]:
        options = self._options
        columns = [
            self._quoted(column_texts(type, column))
            for type, column in zip(self._types, table.columns, strict=True)
        ]
        return [row + b"\n" for row in joined_rows(columns, options.delimiter, options.null)]

    def _quoted(self, texts: pa.StringArray) -> pa.StringArray:
        """Value by value where there may be something to quote."""
        written = text_bytes(texts)
        plain = not any(part.encode() in written for part in self._special)
        if plain and not (self._single and b"\\." in written):
            null = self._options.null
            if not pc.any(pc.equal(texts, pa.scalar(null))).as_py():
                return texts
        fields = [None if value is None else self._field(value) for value in texts.to_pylist()]
        return pa.array(fields, pa.string())

    def _field(self, value: str) -> str:
        options = self._options
        plain = value != options.null and not (self._single and value == "\\.")
        if plain and not any(special in value for special in self._special):
            return value
        quote, escape = options.quote, options.escape
        if escape != quote:
            value = value.replace(escape, escape + escape)
        return quote + value.replace(quote, escape + quote) + quote


class BinaryWriter:
    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self._columns = tuple(columns)
        self._encoders = [encoder(column.type, BINARY) for column in columns]
        self.head = HEADER
        self.tail = TRAILER

    def row(self, row: Row) -> bytes:
        parts = [_COUNT.pack(len(self._encoders))]
        for value, form in zip(row, self._encoders, strict=True):
            if value is None:
                parts.append(_NULL)
            else:
                raw = form(value)
                parts.append(_LENGTH.pack(len(raw)))
                parts.append(raw)
        return b"".join(parts)

    def rows(self, table: pa.Table) -> list[bytes]:
        result = Result(tag="", columns=self._columns, table=table)
        return [self.row(row) for row in result.fetch_rows()]
