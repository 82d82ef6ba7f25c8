r"""Whole lines of text or CSV to Arrow by Arrow's own reader, where the two read the same.

Arrow splits lines and values in columns, without an object for any of them, which is several times
faster than row by row. PostgreSQL's formats say more than Arrow's reader knows: escapes, quotes in
the middle of a value, line ends of several kinds. A block in which any of that stands, or a value
that does not fit, is left to the readers of lines: they know what it means, and what to tell.

    7<TAB>a<TAB>\N        a block
    8<TAB>b\tc<TAB>9      none: a backslash that is not NULL's
"""

from __future__ import annotations

import codecs
from typing import Any, cast

import pyarrow as pa
from pyarrow import csv

from ....catalog.rows.text_columns import text_bytes
from ....catalog.values.errors import SQLError
from ....sql.syntax.statements import CopyFormat, CopyOptions
from .batches import BatchBuilder


class BlockReader:
    """Reads blocks of whole lines, or says that it cannot."""

    def __init__(self, options: CopyOptions, builder: BatchBuilder) -> None:
        self._builder = builder
        self._names = [f"c{place}" for place in range(len(builder.columns))]
        self._csv = options.format is CopyFormat.CSV
        self._quote = options.quote.encode()
        self._null = options.null.encode()
        if self._csv:
            self._readable = options.escape == options.quote
        else:
            self._readable = self._null == b"\\N" or b"\\" not in self._null
        self._parse = csv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=options.quote if self._csv else False,
            double_quote=True,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=False,
        )
        self._convert = csv.ConvertOptions(
            column_types=dict.fromkeys(self._names, pa.string()),
            null_values=[options.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def read(self, block: bytes, first_line: int) -> pa.RecordBatch | None:
        """The rows of whole lines, the last without its line feed. None where it cannot tell."""
        if not self._readable or b"\r" in block or b"\0" in block:
            return None
        backslashes = block.count(b"\\")
        quotes = block.count(self._quote) if self._csv else 0
        if quotes % 2 or block.startswith(codecs.BOM_UTF8):
            return None
        if self._csv and backslashes and b"\\." in block:
            return None  # it may be the mark of the end
        count = block.count(b"\n") + 1
        texts = self._texts(block)
        if texts is None or texts.num_rows != count:
            return None
        if quotes and any(
            self._quote in text_bytes(cast(pa.StringArray, column)) for column in texts.columns
        ):
            return None  # a quote that Arrow took for a part of the value
        if not self._csv and backslashes:
            nulls = sum(column.null_count for column in texts.columns)
            if self._null != b"\\N" or nulls != backslashes:
                return None
        try:
            return self._builder.from_columns(texts, range(first_line, first_line + count))
        except SQLError:
            return None  # told by who knows the line

    def _texts(self, block: bytes) -> pa.RecordBatch | None:
        options = csv.ReadOptions(
            column_names=self._names, use_threads=False, block_size=len(block) + 1
        )
        try:
            # A file of Arrow's own, which a thread of Arrow's reads without the interpreter's lock.
            file: Any = pa.BufferReader(block)
            with csv.open_csv(file, options, self._parse, self._convert) as rows:
                return rows.read_next_batch()
        except (pa.ArrowInvalid, pa.ArrowKeyError, StopIteration):
            return None
