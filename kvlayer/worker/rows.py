"""Rows on their way between a server and its worker: Arrow's stream format, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

SENT_BYTES = 1024 * 1024
"""About as many bytes of rows are sent at once. Who sends them waits until the other side has taken
these: what is to follow stays in the sender's memory, and not in the memory that both share."""


def sent_rows(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Batches of one schema, one at least: only the rows that they show."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return stream.getvalue().to_pybytes()


def sent_pieces(table: pa.Table) -> Iterator[bytes]:
    """A table in pieces of about SENT_BYTES, or a row that has more: one at least."""
    row_bytes = table.nbytes // (table.num_rows or 1) + 1
    rows_max = max(1, SENT_BYTES // row_bytes)
    together: list[pa.RecordBatch] = []
    row_count = 0
    for batch in table.to_batches(max_chunksize=rows_max):
        if together and row_count + batch.num_rows > rows_max:
            yield sent_rows(together)
            together, row_count = [], 0
        together.append(batch)
        row_count += batch.num_rows
    yield sent_rows(together or [pa.RecordBatch.from_pylist([], table.schema)])


def received_rows(sent: bytes) -> list[pa.RecordBatch]:
    """Returns the batches of `sent_rows`."""
    with pa.ipc.open_stream(sent) as reader:
        return list(reader)
