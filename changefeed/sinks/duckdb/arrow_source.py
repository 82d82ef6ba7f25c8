"""An Arrow table that DuckDB reads under one name, and that changes under it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa


class ArrowSource:
    """A view of a connection whose rows are those of the table held at the moment.

    Registering a table anew for each flush makes and drops a view, half a millisecond each time.
    DuckDB asks a registered object for its stream at every scan, so it is registered once, and what
    it hands out is exchanged. It is made in the loop and used in the file's lane: the connection is
    touched there alone, for DuckDB refuses a call while another one runs.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
        self.name = name
        self._cursor = cursor
        self._schema = schema
        self._table: pa.Table | None = None
        self._registered = False

    def close(self) -> None:
        """Forgets the name."""
        if self._registered:
            self._cursor.complete()
            self._cursor.unregister(self.name)
            self._registered = False

    @contextmanager
    def holding(self, table: pa.Table) -> Iterator[None]:
        """Shows `table` for the time of the block."""
        assert table.schema.equals(self._schema), (table.schema, self._schema)
        if not self._registered:
            self._cursor.complete()  # nothing is registered while a row of a result is unread
            self._cursor.register(self.name, self)
            self._registered = True
        self._table = table
        try:
            yield
        finally:
            self._table = None

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert self._table is not None, self.name
        stream: object = self._table.__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]
        return stream
