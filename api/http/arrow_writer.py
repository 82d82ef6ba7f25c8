"""An Arrow IPC stream, written in parts: each batch with its mark in its message's metadata."""

from __future__ import annotations

from collections.abc import Iterator
from io import RawIOBase
from typing import Any

import pyarrow as pa
import pyarrow.ipc

MARK = b"mark"


class ArrowWriter:
    """Turns batches of one schema into the bytes of a stream."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sink = _Sink()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), schema)

    def write(self, batch: pa.RecordBatch, mark: bytes) -> bytes:
        """The bytes of a batch; before the first they begin with the schema's."""
        self._writer.write_batch(
            batch.cast(self._schema), custom_metadata={MARK: mark.hex().encode()}
        )
        return self._sink.take()

    def end(self) -> bytes:
        """The end marker: a stream without it has failed."""
        self._writer.close()
        return self._sink.take()


BATCH_ROWS = 8_192
"""Rows of a batch of a plain stream: some hundred kilobytes, made in less than a millisecond."""


def plain_stream(table: pa.Table) -> Iterator[bytes]:
    """A table as the bytes of a stream, batch by batch."""
    stream = PlainStream(table.schema)
    yield from stream.write(table)
    yield stream.end()


class PlainStream:
    """Turns tables of one schema into the bytes of a stream, batch by batch."""

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = _Sink()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), schema)

    def write(self, table: pa.Table) -> Iterator[bytes]:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            self._writer.write_batch(batch)
            yield self._sink.take()

    def end(self) -> bytes:
        """The end marker: a stream without it has failed."""
        self._writer.close()
        return self._sink.take()


class _Sink(RawIOBase):
    """A file to pyarrow: what is written to it waits to be taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
