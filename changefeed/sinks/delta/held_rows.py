"""Rows that were emitted and are above what is resolved: they wait until all at or below them is
there.

    held       k1@10  k2@30 | k1@20
    resolved 20
    due        k1@10  k1@20        in the order in which they came
    held       k2@30

So a commit of the Delta table holds everything up to one resolved timestamp and nothing above it,
and what a feed that starts again is to send is told by that timestamp alone. Rows beyond
`MEMORY_BYTES_MAX` wait in a temporary file, which ends with the process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from ....kvlayer.clock import Timestamp
from .columns import COMMIT_TIMESTAMP

MEMORY_BYTES_MAX = 32 << 20
"""Arrow bytes of rows that wait, of a feed: an initial scan waits as a whole."""


@dataclass(slots=True)
class _Segment:
    """Rows of one batch. `table` is None where they wait in the file, `length` bytes from `start`
    on."""

    least: Timestamp
    greatest: Timestamp
    schema: pa.Schema
    table: pa.Table | None
    start: int = 0
    length: int = 0


class HeldRows:
    """The rows of one attempt of a feed. It does I/O and raises OSError: use it in a lane."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def __bool__(self) -> bool:
        return bool(self._segments)

    def add(self, rows: pa.Table) -> None:
        bounds: Any = pc.min_max(rows.column(COMMIT_TIMESTAMP)).as_py()
        segment = _Segment(Timestamp(bounds["min"]), Timestamp(bounds["max"]), rows.schema, rows)
        self._segments.append(segment)
        self._bytes += rows.nbytes
        if self._bytes > MEMORY_BYTES_MAX:
            self._spill()

    def due(self, resolved: Timestamp) -> list[pa.Schema]:
        """The schemas of the rows that `take` would return, without repetitions."""
        found = [segment.schema for segment in self._segments if segment.least <= resolved]
        return [schema for place, schema in enumerate(found) if schema not in found[:place]]

    def take(self, resolved: Timestamp) -> Iterator[pa.Table]:
        """The rows at or below `resolved`, batch by batch. They wait on until `drop` is told that
        they are in the table."""
        for segment in self._segments:
            if segment.least <= resolved:
                rows = self._rows(segment)
                if segment.greatest > resolved:
                    rows = rows.filter(pc.field(COMMIT_TIMESTAMP) <= resolved)
                yield rows

    def drop(self, resolved: Timestamp) -> None:
        """Lets go of the rows at or below `resolved`."""
        kept = [segment for segment in self._segments if segment.greatest > resolved]
        self._segments, self._bytes = [], 0
        for segment in kept:
            if segment.least > resolved:
                self._segments.append(segment)
                self._bytes += 0 if segment.table is None else segment.table.nbytes
            else:
                self.add(self._rows(segment).filter(pc.field(COMMIT_TIMESTAMP) > resolved))
        if self._file is not None and all(each.table is not None for each in self._segments):
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rows(self, segment: _Segment) -> pa.Table:
        if segment.table is not None:
            return segment.table
        assert self._file is not None, segment
        self._file.seek(segment.start)
        return pa.ipc.open_stream(self._file.read(segment.length)).read_all()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        for segment in self._segments:
            if segment.table is not None:
                segment.start = self._file.seek(0, 2)
                segment.length = self._file.write(_as_stream(segment.table))
                segment.table = None
        self._bytes = 0


def _as_stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
