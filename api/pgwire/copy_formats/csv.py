"""COPY's CSV format: quoted where it must be, and an empty field that is not quoted for NULL.

    7,"a, b",        three values: 7, 'a, b' and NULL
    8,"",            three values: 8, the empty text and NULL

A quote in a quoted value is doubled, and line ends may stand in it: a row may be several lines.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ....catalog.values.errors import SQLError
from ....sql.syntax.statements import CopyOptions
from .batches import BATCH_ROWS, ROW_BYTES_MAX, BatchBuilder, in_slices
from .blocks import BlockReader
from .lines import END_OF_DATA, LineSplitter


class CSVReader:
    """Reads CSV."""

    def __init__(self, options: CopyOptions, builder: BatchBuilder) -> None:
        self._options = options
        self._builder = builder
        self._splitter = LineSplitter(keep_returns=True)
        self._blocks = BlockReader(options, builder)
        self._line = 0
        self._open: list[str] = []  # the lines of a row whose quotes are not closed yet
        self._open_length = 0
        self._ended = False
        self._header_due = options.header

    def feed(self, data: bytes) -> Iterator[pa.RecordBatch]:
        for block in self._splitter.feed(data):
            yield from self._batches(block)

    def end(self) -> Iterator[pa.RecordBatch]:
        for block in self._splitter.end():
            yield from self._batches(block)
        if self._open:
            line = self._line - len(self._open) + 1
            raise self._builder.error("22P04", "unterminated CSV quoted field", line)

    def _batches(self, block: bytes) -> Iterator[pa.RecordBatch]:
        if not (self._open or self._ended or self._header_due):
            whole = self._blocks.read(block, self._line + 1)
            if whole is not None:
                self._line += whole.num_rows
                yield from in_slices(whole)
                return
        lines = self._splitter.lines(block)
        rows: list[list[str | None]] = []
        numbers: list[int] = []
        for line in lines:
            if self._ended:
                break
            row = self._take(line)
            if row is None:
                continue
            rows.append(row)
            numbers.append(self._line)
            if len(rows) == BATCH_ROWS:
                yield self._builder.from_text(rows, numbers)
                rows, numbers = [], []
        if rows:
            yield self._builder.from_text(rows, numbers)

    def _take(self, line: str) -> list[str | None] | None:
        """The row that ends with this line, if one does."""
        options = self._options
        self._line += 1
        if not self._open and options.quote not in line:
            line = line.removesuffix("\r")
        if not self._open and line == END_OF_DATA:
            self._ended = True
            return None
        if not self._open and options.quote not in line:
            null = options.null
            row: list[str | None] = [
                None if field == null else field for field in line.split(options.delimiter)
            ]
        else:
            self._open.append(line)
            self._open_length += len(line)
            if self._open_length > ROW_BYTES_MAX:
                message = f"a row of COPY is longer than {ROW_BYTES_MAX} characters"
                raise SQLError("54000", message)
            if options.quote not in line:
                return None  # nothing in it can close the quotes
            # A carriage return at the end is a line end's, unless the quotes are open there.
            parsed = split_record("\n".join(self._open).removesuffix("\r"), options)
            if parsed is None:
                return None
            row = parsed
            self._open.clear()
            self._open_length = 0
        if self._header_due:
            self._header_due = False
            return None
        return row


def split_record(record: str, options: CopyOptions) -> list[str | None] | None:
    """The values of a record, or None where its quotes are not closed."""
    delimiter, quote, escape = options.delimiter, options.quote, options.escape
    values: list[str | None] = []
    parts: list[str] = []
    quoted, at, end = False, 0, len(record)
    while True:
        # Outside quotes: up to the next quote or delimiter.
        next_delimiter = record.find(delimiter, at)
        next_quote = record.find(quote, at)
        if next_quote < 0 or 0 <= next_delimiter < next_quote:
            stop = end if next_delimiter < 0 else next_delimiter
            parts.append(record[at:stop])
            value = "".join(parts)
            values.append(None if not quoted and value == options.null else value)
            if next_delimiter < 0:
                return values
            parts, quoted, at = [], False, stop + 1
            continue
        parts.append(record[at:next_quote])
        quoted = True
        closed = _quoted(record, next_quote + 1, quote, escape, parts)
        if closed is None:
            return None
        at = closed


def _quoted(record: str, at: int, quote: str, escape: str, parts: list[str]) -> int | None:
    """Reads from behind an opening quote to behind the closing one; None where there is none."""
    while True:
        found = record.find(quote, at)
        escaped = record.find(escape, at) if escape != quote else -1
        if escaped >= 0 and (found < 0 or escaped < found):
            following = record[escaped + 1 : escaped + 2]
            kept = following if following in (quote, escape) and following else escape
            parts.append(record[at:escaped] + kept)
            at = escaped + (2 if kept == following else 1)
            continue
        if found < 0:
            return None
        parts.append(record[at:found])
        if escape == quote and record[found + 1 : found + 2] == quote:
            parts.append(quote)
            at = found + 2
            continue
        return found + 1
