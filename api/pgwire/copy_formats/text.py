r"""COPY's text format: a line for a row, tabs between its values, `\N` for NULL.

7<TAB>a\tb<TAB>\N        7, "a<TAB>b", NULL
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ....sql.syntax.statements import CopyOptions
from .batches import BATCH_ROWS, BatchBuilder, in_slices
from .blocks import BlockReader
from .lines import END_OF_DATA, LineSplitter

_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = frozenset("01234567")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


class TextReader:
    """Reads the text format."""

    def __init__(self, options: CopyOptions, builder: BatchBuilder) -> None:
        self._options = options
        self._builder = builder
        self._splitter = LineSplitter()
        self._blocks = BlockReader(options, builder)
        self._line = 0
        self._ended = False

    def feed(self, data: bytes) -> Iterator[pa.RecordBatch]:
        for block in self._splitter.feed(data):
            yield from self._batches(block)

    def end(self) -> Iterator[pa.RecordBatch]:
        for block in self._splitter.end():
            yield from self._batches(block)

    def _batches(self, block: bytes) -> Iterator[pa.RecordBatch]:
        if self._ended:
            return
        if self._line or not self._options.header:
            whole = self._blocks.read(block, self._line + 1)
            if whole is not None:
                self._line += whole.num_rows
                yield from in_slices(whole)
                return
        lines = self._splitter.lines(block)
        if END_OF_DATA in lines:
            self._ended = True
            lines = lines[: lines.index(END_OF_DATA)]
        if lines and self._line == 0 and self._options.header:
            lines = lines[1:]
            self._line = 1
        for start in range(0, len(lines), BATCH_ROWS):
            part = lines[start : start + BATCH_ROWS]
            numbers = range(self._line + 1, self._line + 1 + len(part))
            self._line += len(part)
            rows = [self._row(line) for line in part]
            yield self._builder.from_text(rows, numbers)

    def _row(self, line: str) -> list[str | None]:
        options = self._options
        fields = line.split(options.delimiter)
        if "\\" not in line:
            if options.null and options.null not in line:
                return fields  # type: ignore[return-value]
            return [None if field == options.null else field for field in fields]
        if f"\\{options.delimiter}" in line:
            fields = _rejoined(fields, options.delimiter)
        return [
            None if field == options.null else unescape(field) if "\\" in field else field
            for field in fields
        ]


def _rejoined(fields: list[str], delimiter: str) -> list[str]:
    """Fields that were split at a delimiter behind a backslash, put together again."""
    joined: list[str] = []
    for field in fields:
        if joined and _ends_open(joined[-1]):
            joined[-1] += delimiter + field
        else:
            joined.append(field)
    return joined


def _ends_open(field: str) -> bool:
    """Whether the last backslash escapes what follows the field."""
    return (len(field) - len(field.rstrip("\\"))) % 2 == 1


def unescape(field: str) -> str:
    """The value of a field that has backslashes."""
    parts: list[str] = []
    at, end = 0, len(field)
    while True:
        found = field.find("\\", at)
        if found < 0 or found + 1 >= end:
            parts.append(field[at:])
            return "".join(parts)
        parts.append(field[at:found])
        character = field[found + 1]
        at = found + 2
        if character in _OCTAL:
            stop = at
            while stop < min(end, found + 4) and field[stop] in _OCTAL:
                stop += 1
            parts.append(chr(int(field[found + 1 : stop], 8) & 0xFF))
            at = stop
        elif character == "x" and at < end and field[at] in _HEXADECIMAL:
            stop = at + 1
            if stop < end and field[stop] in _HEXADECIMAL:
                stop += 1
            parts.append(chr(int(field[at:stop], 16)))
            at = stop
        else:
            parts.append(_ESCAPES.get(character, character))
