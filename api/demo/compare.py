"""Row-by-row comparison of tables that ought to be equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The number of rows that differ between two tables, and a few of them in words."""

    rows: int
    differences: int
    examples: tuple[str, ...]


def compare_tables(left: pa.Table, right: pa.Table, key: Sequence[str]) -> Comparison:
    """Counts the keys that stand on one side only, or with other values.

    Both tables have unique keys. Columns are compared by name; a column that one side lacks is a
    difference of every row.
    """
    if set(left.column_names) != set(right.column_names):
        missing = sorted(set(left.column_names) ^ set(right.column_names))
        words = f"columns on one side only: {', '.join(missing)}"
        return Comparison(rows=left.num_rows, differences=max(left.num_rows, 1), examples=(words,))
    left, right = _in_order(left, key), _in_order(right, key)
    right = right.select(left.column_names).cast(left.schema)
    if left.equals(right):
        return Comparison(rows=left.num_rows, differences=0, examples=())
    return _by_row(left, right, key)


def _in_order(table: pa.Table, key: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in key]).combine_chunks()


def _by_row(left: pa.Table, right: pa.Table, key: Sequence[str]) -> Comparison:
    rows_left, rows_right = (
        {tuple(row[name] for name in key): row for row in table.to_pylist()}
        for table in (left, right)
    )
    differing = [
        place
        for place in rows_left.keys() | rows_right.keys()
        if rows_left.get(place) != rows_right.get(place)
    ]
    examples = tuple(
        f"{place}: {rows_left.get(place)} against {rows_right.get(place)}"
        for place in differing[:EXAMPLES_MAX]
    )
    return Comparison(rows=left.num_rows, differences=len(differing), examples=examples)
