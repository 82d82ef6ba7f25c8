"""Folding events into changes: what a set of exchanges made of each cell, whatever their order.

Racing exchanges of one cell form a chain, since each returns what it replaced; only their order is
unknown. The value that is stored as often as it is replaced is passed through, and so, for a cell
whose value was `a`,

    stored      b  c  d           initial + stored - replaced  =  {a, b, c, d} - {a, c, b}  =  {d}
    replaced    a  c  b

one value survives. Where that is not so, the cell was written by somebody whom the log did not see.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .errors import SurvivorError
from .events import rows_where

CELL_COLUMNS = ["table", "row", "column"]
_FIELDS: list[tuple[str, pa.DataType]] = [
    ("table", pa.string()),
    ("row", pa.binary()),
    ("column", pa.string()),
    ("old", pa.binary()),
    ("new", pa.binary()),
]
CHANGES = pa.schema(_FIELDS)
"""A change set's rows: cells that have another value behind it, with the one before."""


def net_values(events: pa.Table) -> pa.Table:
    """The values of each cell that were stored more often than replaced or less, with the
    difference."""
    rows = events.num_rows
    signs = pa.array([1, -1], pa.int32())
    cells = events.select(CELL_COLUMNS)
    stored = cells.append_column("value", events.column("new")).append_column(
        "net", pa.repeat(signs[0], rows)
    )
    replaced = cells.append_column("value", events.column("old")).append_column(
        "net", pa.repeat(signs[1], rows)
    )
    summed = (
        pa.concat_tables([stored, replaced])
        .group_by([*CELL_COLUMNS, "value"], use_threads=False)
        .aggregate([("net", "sum")])
    )
    return summed.filter(pc.not_equal(summed["net_sum"], pa.scalar(0)))


def fold(events: pa.Table) -> pa.Table:
    """The changes that `events` make, as rows of `CHANGES`. Raises SurvivorError."""
    if _written_once(events):
        old, new = events["old"], events["new"]
        one_is_null = pc.xor(pc.is_null(old), pc.is_null(new))
        changed = pc.or_kleene(one_is_null, pc.not_equal(old, new))
        cells = events.select(CHANGES.names).cast(CHANGES)
        return cells if pc.all(changed, skip_nulls=False).as_py() else cells.filter(changed)
    net = net_values(events)
    stored = rows_where(net, "net_sum", 1)
    replaced = rows_where(net, "net_sum", -1)
    if stored.num_rows + replaced.num_rows != net.num_rows:
        _raise(net.filter(pc.greater(pc.abs(net["net_sum"]), pa.scalar(1))))
    joined = replaced.rename_columns({"value": "old"}).join(
        stored.rename_columns({"value": "new"}), CELL_COLUMNS, join_type="inner",
        left_suffix="_old", use_threads=False,
    )  # fmt: skip
    if not joined.num_rows == stored.num_rows == replaced.num_rows:
        _raise_uneven(net)
    return joined.select(CHANGES.names).cast(CHANGES)


def _written_once(events: pa.Table) -> bool:
    """Whether no two events are of one cell: each of them is then its cell's change."""
    numbers: pa.Array[Any] = pa.repeat(pa.scalar(0, pa.int64()), events.num_rows)
    count = 1
    for name in CELL_COLUMNS:
        column = events.column(name).combine_chunks().dictionary_encode()
        size = len(column.dictionary)
        numbers = pc.add(pc.multiply(numbers, pa.scalar(size, pa.int64())), column.indices)
        count *= size
    if not events.num_rows <= count < 1 << 63:
        return False
    return bool(pc.count_distinct(numbers).as_py() == events.num_rows)


def _raise_uneven(net: pa.Table) -> None:
    """Names a cell with more than one value that survives, or none."""
    counts = net.group_by(CELL_COLUMNS).aggregate([("net_sum", "count"), ("net_sum", "sum")])
    even = (pc.field("net_sum_count") == 2) & (pc.field("net_sum_sum") == 0)
    _raise(counts.filter(~even))


def _raise(cells: pa.Table) -> None:
    first = cells.select(CELL_COLUMNS).slice(0, 1).to_pylist()[0]
    raise SurvivorError(
        f"cell {first['column']!r} of row {first['row']!r} of {first['table']!r} has not one value "
        f"behind its events: it was written behind the log's back ({cells.num_rows} such cells)"
    )
