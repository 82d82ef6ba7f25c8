"""Readers of COPY's formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column
from ....sql.syntax.statements import CopyFormat, CopyOptions
from .batches import BatchBuilder
from .binary import BinaryReader
from .csv import CSVReader
from .text import TextReader


class RowReader(Protocol):
    """Takes bytes in pieces of any size, and gives the rows that are whole."""

    def feed(self, data: bytes) -> Iterable[pa.RecordBatch]:
        """Batches of rows that have come; others wait for more data. Raises SQLError."""
        ...

    def end(self) -> Iterable[pa.RecordBatch]:
        """The rows that are left, all data being in. Raises SQLError."""
        ...


def make_reader(options: CopyOptions, table: str, columns: Sequence[Column]) -> RowReader:
    builder = BatchBuilder(table, columns)
    match options.format:
        case CopyFormat.TEXT:
            return TextReader(options, builder)
        case CopyFormat.CSV:
            return CSVReader(options, builder)
        case CopyFormat.BINARY:
            return BinaryReader(builder)
