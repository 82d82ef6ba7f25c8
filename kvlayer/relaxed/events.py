"""The lines of a relaxed log: events, records and snapshots, in Python and in Arrow.

    Event(domain, id, ordinal, table, row, column, old, new)   batch `id` replaced `old` by `new`
    Record(domain, begin, end, count)                          epoch `[begin, end)` has so many
    Snapshot(domain, cut, count)                               the store at a cut has so many cells
    Cell(domain, cut, ordinal, table, row, column, value)      one of them

In Arrow all four are rows of one schema (`LINES`), told apart by `kind`, so that a segment, a body
of HTTP and a pending piece look the same. `id` is a record's end and a snapshot's cut; `begin` is
of records only. A cell without a value is None, which a snapshot leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

EVENT = "event"
RECORD = "record"
SNAPSHOT = "snapshot"
CELL = "cell"

ORDINAL_MAX = (1 << 32) - 1

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("kind", pa.string()),
    ("domain", pa.uint64()),
    ("id", pa.uint64()),
    ("begin", pa.uint64()),
    ("ordinal", pa.uint32()),
    ("count", pa.uint64()),
    ("complete", pa.bool_()),
    ("table", pa.string()),
    ("row", pa.binary()),
    ("column", pa.string()),
    ("old", pa.binary()),
    ("new", pa.binary()),
]
LINES = pa.schema(_FIELDS)


class Event(NamedTuple):
    """A replacement of one cell's value: what an exchange returned, and what it stored."""

    domain: int
    id: int
    ordinal: int
    table: str
    row: bytes
    column: str
    old: bytes | None
    new: bytes | None


Write = tuple[str, bytes, str, bytes | None, bytes | None]
"""What an event says apart from its place: table, row, column, the value before, the new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The batches of an epoch have drained. Not complete: one of them died with its process."""

    domain: int
    begin: int
    end: int
    count: int
    complete: bool = True

    @property
    def mark(self) -> bool:
        """Whether the store was quiescent: nothing was written from `begin` to `end`."""
        return self.count == 0 and self.complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole store at a cut: (table, row, column) to value."""

    domain: int
    cut: int
    cells: Mapping[tuple[str, bytes, str], bytes]


Line = Event | Record | Snapshot


def events_of(domain: int, id: int, ordinal: int, writes: Sequence[Write]) -> list[Event]:
    """Events of one batch, numbered from `ordinal`."""
    return [Event(domain, id, number, *write) for number, write in enumerate(writes, ordinal)]


def lines_table(lines: Iterable[Line]) -> pa.Table:
    """Lines as Arrow, in their order."""
    columns: list[list[object]] = [[] for _ in LINES]
    for line in lines:
        if isinstance(line, Event):
            _append(columns, (EVENT, line.domain, line.id, None, line.ordinal, None, None))
            _append(columns[7:], line[3:])
        elif isinstance(line, Record):
            head = (RECORD, line.domain, line.end, line.begin, None, line.count, line.complete)
            _append(columns, (*head, *_NO_CELL))
        else:
            _append(columns, (SNAPSHOT, line.domain, line.cut, None, None, len(line.cells), True))
            _append(columns[7:], _NO_CELL)
            for index, (place, value) in enumerate(line.cells.items()):
                _append(columns, (CELL, line.domain, line.cut, None, index, None, None))
                _append(columns[7:], (*place, None, value))
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, LINES, strict=True)],
        schema=LINES,
    )


def rows_where(table: pa.Table, column: str, value: str | int) -> pa.Table:
    """The rows that have a value in a column. By a mask: an expression becomes a plan of Arrow's,
    which costs more than some thousand rows do."""
    wanted = pa.scalar(value, table.schema.field(column).type)
    return table.filter(pc.equal(table.column(column), wanted))


_NO_CELL = (None,) * 5


def _append(columns: list[list[object]], values: tuple[object, ...]) -> None:
    for column, value in zip(columns, values, strict=False):
        column.append(value)
