"""Slices: what a long read gathers before the loop may do something else.

A slice is bounded in rows, for the time that it takes, and in bytes, for the memory that whoever
asked for it holds. A row that is larger than the bound is a slice of its own:

    rows of 100 bytes   500 a slice
    rows of 1 MB        one a slice
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

SLICE_ROWS = 500
"""Rows that a sliced read gathers before the loop may do something else: 3 to 10 µs each, and as
much again for what is done with them at once."""

SLICE_BYTES = 256 * 1024
"""And bytes of their keys and values. What holds several slices at once, as sixteen pieces of a
feed that catch up do, is bounded by as many times this."""

Body = TypeVar("Body", bytes, bytes | None)


def take_slice(
    rows: Iterator[tuple[bytes, Body] | None], rows_max: int = SLICE_ROWS
) -> tuple[list[tuple[bytes, Body]], bool]:
    """The next rows, and whether there may be more: False where the rows have ended. None among the
    rows ends a slice, which may then have no row."""
    found: list[tuple[bytes, Body]] = []
    size = 0
    for row in rows:
        if row is None:
            return found, True
        found.append(row)
        key, body = row
        size += len(key) if body is None else len(key) + len(body)
        if size >= SLICE_BYTES or len(found) >= rows_max:
            return found, True
    return found, False
