"""Files being written: the messages of one topic under one schema."""

from __future__ import annotations

from contextlib import suppress
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ...contract.changes import ChangeBatch
from ...contract.message_form import Compression, Format
from ...contract.options import ChangefeedOptions
from ...encode import LineEncoder
from ...encode.parquet import parquet_table

DICTIONARY_BYTES = 64 << 10
"""A column whose values are more than that, each counted once, is written without a dictionary.
With Arrow's own 1 MB, looking for what repeats takes most of the time of columns that never do, and
makes them larger."""

ROW_GROUP_BYTES = 4 << 20
"""Arrow bytes that gather in memory before they become a row group, of each open Parquet file."""

BUFFER_BYTES = 1 << 20
"""Pages of Arrow's writers are gathered to pieces of this size: each write to a Python file waits
for the interpreter's lock."""


class WrittenFile(Protocol):
    """A file to which changes are appended. All of it does I/O, and raises OSError."""

    @property
    def size(self) -> int:
        """Bytes of it so far, about."""
        ...

    def append(self, batch: ChangeBatch) -> None: ...

    def finish(self) -> None:
        """Writes what is left and closes the file."""
        ...

    def abandon(self) -> None:
        """Closes the file, whatever is written."""
        ...


def begin_file(file: IO[bytes], options: ChangefeedOptions, encoder: LineEncoder) -> WrittenFile:
    """A file in the format that the options ask for."""
    if options.format is Format.PARQUET:
        return ParquetFile(file, options)
    return MessagesFile(file, encoder, options.compression)


def suffix_of(options: ChangefeedOptions) -> str:
    """The suffix of such files' names."""
    if options.format is Format.PARQUET:
        return ".parquet"
    ends = {None: "", Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}
    lines = ".csv" if options.format is Format.CSV else ".ndjson"
    return lines + ends[options.compression]


def _arrow_stream(file: Any) -> pa.NativeFile:
    """The file as Arrow's writers take one. Its stubs ask for a subclass of IOBase."""
    return pa.BufferedOutputStream(pa.PythonFile(file, "w"), BUFFER_BYTES)


class MessagesFile:
    """A message a line."""

    def __init__(
        self, file: IO[bytes], encoder: LineEncoder, compression: Compression | None
    ) -> None:
        self._file = file
        self._encoder = encoder
        self._stream = (
            None
            if compression is None
            else pa.CompressedOutputStream(_arrow_stream(file), compression.value)
        )
        self.size = 0

    def append(self, batch: ChangeBatch) -> None:
        lines = self._encoder.lines(batch)
        (self._stream or self._file).write(lines)
        self.size += len(lines)

    def finish(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._file.close()

    def abandon(self) -> None:
        with suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.close()
        with suppress(OSError):
            self._file.close()


class ParquetFile:
    """Row groups of about `ROW_GROUP_BYTES`."""

    def __init__(self, file: IO[bytes], options: ChangefeedOptions) -> None:
        self._file = file
        self._stream = _arrow_stream(file)
        self._options = options
        self._writer: pq.ParquetWriter | None = None
        self._gathered: list[pa.Table] = []
        self._gathered_bytes = 0
        self._written_bytes = 0

    @property
    def size(self) -> int:
        return self._written_bytes + self._gathered_bytes

    def append(self, batch: ChangeBatch) -> None:
        table = parquet_table(batch, self._options)
        self._gathered.append(table)
        self._gathered_bytes += table.get_total_buffer_size()
        if self._gathered_bytes >= ROW_GROUP_BYTES:
            self._write()

    def finish(self) -> None:
        self._write()
        if self._writer is not None:
            self._writer.close()
        self._stream.close()
        self._file.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.is_open = False  # or it would write its footer when it is collected
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._file.close()

    def _write(self) -> None:
        if not self._gathered:
            return
        table = pa.concat_tables(self._gathered)
        if self._writer is None:
            compression = self._options.compression
            self._writer = pq.ParquetWriter(
                self._stream,
                table.schema,
                compression="snappy" if compression is None else compression.value,
                dictionary_pagesize_limit=DICTIONARY_BYTES,
            )
        self._writer.write_table(table)
        self._gathered, self._gathered_bytes = [], 0
        self._written_bytes = self._stream.tell()
