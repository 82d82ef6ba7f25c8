"""Writers of COPY's formats: rows to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Protocol

from ....sql import ResultColumn, Row
from ....sql.parser.copy_options import CopyFormat, CopyOptions, Header
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
        self._encoders = [encoder(column.type, TEXT) for column in columns]
        self._delimiter = options.delimiter
        self._escaped = {**_ESCAPED, ord(options.delimiter): f"\\{options.delimiter}"}
        if options.delimiter == "\t":
            self._escaped[9] = "\\t"
        self._null = options.null
        names = options.delimiter.join(column.name for column in columns)
        self.head = b"" if options.header is Header.NONE else f"{names}\n".encode()
        self.tail = b""

    def row(self, row: Row) -> bytes:
        fields = [
            self._null if value is None else form(value).decode().translate(self._escaped)
            for value, form in zip(row, self._encoders, strict=True)
        ]
        return (self._delimiter.join(fields) + "\n").encode()


class CSVWriter:
    """Quotes around what would be read as something else, and where they are asked for."""

    def __init__(self, options: CopyOptions, columns: Sequence[ResultColumn]) -> None:
        self._options = options
        self._encoders = [encoder(column.type, TEXT) for column in columns]
        forced = options.force_quote
        self._forced = [forced is None or column.name in forced for column in columns]
        self._special = (options.delimiter, options.quote, "\n", "\r")
        self._single = len(columns) == 1
        names = options.delimiter.join(self._field(column.name, forced=False) for column in columns)
        self.head = b"" if options.header is Header.NONE else f"{names}\n".encode()
        self.tail = b""

    def row(self, row: Row) -> bytes:
        null = self._options.null
        fields = [
            null if value is None else self._field(form(value).decode(), forced=forced)
            for value, form, forced in zip(row, self._encoders, self._forced, strict=True)
        ]
        return (self._options.delimiter.join(fields) + "\n").encode()

    def _field(self, value: str, *, forced: bool) -> str:
        options = self._options
        plain = not forced and value != options.null and not (self._single and value == "\\.")
        if plain and not any(special in value for special in self._special):
            return value
        quote, escape = options.quote, options.escape
        if escape != quote:
            value = value.replace(escape, escape + escape)
        return quote + value.replace(quote, escape + quote) + quote


class BinaryWriter:
    def __init__(self, columns: Sequence[ResultColumn]) -> None:
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
