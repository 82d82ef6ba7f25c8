"""A query that DuckDB computes a batch at a time, as far ahead of its reader as its buffer goes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from traceback import clear_frames
from typing import Generic, TypeVar

import duckdb
import pyarrow as pa

from ....changefeed.sinks.duckdb.errors import duckdb_error
from ....changefeed.sinks.duckdb.interruption import interrupt

BATCH_ROWS = 8192
"""Rows of a batch: a millisecond's work for DuckDB, and some tens for who writes them out."""

BATCH_BYTES = 2 * 1024 * 1024
"""Bytes of a batch from which on it is given no more rows: very wide ones are still bounded."""

VECTOR_ROWS = 2048
"""Rows that DuckDB computes at once, the least that it can be asked for."""

A = TypeVar("A")

Start = Callable[[], tuple[pa.RecordBatchReader, Callable[[pa.Table], A]]]
"""Begins a query: what it finds, and what makes an answer of some of that."""


def let_go(error: BaseException) -> None:
    """Forgets what the frames below hold: else it is freed where the error ends, on the loop, and
    to free a value of 300 MB takes some 40 ms."""
    clear_frames(error.__traceback__)


class OpenQuery(Generic[A]):
    """A query under way on a cursor of its own, which it closes.

    `next` blocks, and is called in a thread, each time perhaps in another. `close` may be called
    meanwhile: then the query is interrupted, and its cursor closed when `next` returns.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, start: Start[A]) -> None:
        self.ended = False
        self._cursor = cursor
        self._start: Start[A] | None = start
        self._reader: pa.RecordBatchReader | None = None
        self._convert: Callable[[pa.Table], A] | None = None
        self._closed = False
        self._using = Lock()

    def next(self) -> A:
        """The next rows; none only where there are no more. Raises duckdb.Error."""
        try:
            with self._using:
                return self._next()
        except (pa.ArrowException, OSError) as error:
            raise duckdb_error(f"{error}") from error
        except BaseException as error:
            let_go(error)
            self._closed = True  # nothing comes behind an error: the rest goes in this thread, too
            raise
        finally:
            if self._closed:
                self.close()

    def _next(self) -> A:
        assert not self.ended, "rows are asked for behind the last"
        if self._closed:
            raise duckdb.InterruptException("INTERRUPT Error: the query was closed")
        if self._reader is None:
            assert self._start is not None
            self._reader, self._convert = self._start()
        assert self._convert is not None
        batches: list[pa.RecordBatch] = []
        row_count = byte_count = 0
        while row_count < BATCH_ROWS and byte_count < BATCH_BYTES:
            batch = next(self._reader, None)
            if batch is None:
                self.ended = True
                break
            batches.append(batch)
            row_count += batch.num_rows
            byte_count += batch.nbytes
        return self._convert(pa.Table.from_batches(batches, schema=self._reader.schema))

    def close(self) -> None:
        """Ends the query: DuckDB forgets what it has computed, and lets go of the tables."""
        self._closed = True
        interrupt(self._cursor)
        if self._using.acquire(blocking=False):
            try:
                self._release()
            finally:
                self._using.release()

    def _release(self) -> None:
        self._reader = self._start = self._convert = None
        self._cursor.close()
