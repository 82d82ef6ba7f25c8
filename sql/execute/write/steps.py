"""The division of a statement's rows into steps of the loop: by a number of rows, and of bytes.

A row has some bytes or some megabytes. Rows that are many or wide are handled by a fibre, which
gives way by what it has handled; what is read or written through a transaction is cut likewise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from sys import getsizeof
from typing import TypeVar

import pyarrow as pa

from ....kvlayer.access import Evaluation, Transaction
from ....kvlayer.process.fibre import give_way, in_slices_where, is_fibre

SLICE_ROWS = 250
"""Rows that are handled before the loop gets a turn."""

SLICE_BYTES = 1024 * 1024
"""Bytes of rows that are handled before the loop gets a turn: to encode them takes 0.7 ms."""

ROWS_PER_STEP = 8
"""Rows between two moments at which work on many of them gives way: 10 to 50 µs."""

BYTES_PER_STEP = 6 * 1024
"""Bytes of a row that are worth a step by themselves: a slice handles a megabyte, and the row that
goes beyond it."""

BYTES_PER_ROW = BYTES_PER_STEP // ROWS_PER_STEP

DROPPED_PER_STEP = 10_000
"""Rows that are freed in one step: two milliseconds, for rows of numbers and texts."""

LISTED_PER_STEP = 2000
"""Items of which a plain list or set is made before the work gives way: 0.2 ms."""

FIRST_ROWS = 4
"""Rows that are read together while nothing is known of their width."""

ONE_PHASE_BYTES_MAX = 2 * 1024 * 1024
"""Bytes of the rows that a statement reads, or writes, in one phase."""

ONE_PHASE_READS_FIRST = 16
"""Rows that one phase reads while nothing is known of their width."""

R = TypeVar("R")
T = TypeVar("T")


class TooWide(Exception):
    """Rows are too wide for one phase: nothing was written, and a transaction is to do it."""


def refuse_wide(bodies: Sequence[bytes | None]) -> None:
    """Raises TooWide for several rows that one phase does not take."""
    if len(bodies) > 1 and sum(map(len, filter(None, bodies))) > ONE_PHASE_BYTES_MAX:
        raise TooWide


def read_bounded(evaluation: Evaluation, keys: Sequence[bytes]) -> list[bytes | None]:
    """The bodies of keys in one phase. Raises TooWide."""
    count = ONE_PHASE_READS_FIRST
    bodies = evaluation.get_each(keys[:count])
    while len(bodies) < len(keys):
        refuse_wide(bodies)
        count = following(count, bodies, len(keys))
        bodies += evaluation.get_each(keys[len(bodies) : len(bodies) + count])
    return bodies


def weight(rows: Iterable[Iterable[object]]) -> int:
    """The bytes that the values of rows take in memory."""
    values = list(chain.from_iterable(rows))
    nested = [value for value in values if isinstance(value, list | tuple)]
    return sum(map(getsizeof, values)) + (weight(nested) if nested else 0)


async def sliced(rows: Sequence[Iterable[object]], work: Callable[[], T]) -> T:
    """Returns or raises the outcome of `work`, which handles the rows: in slices, where they are
    many or wide."""
    return await in_slices_where(
        len(rows) > SLICE_ROWS or (len(rows) > 1 and weight(rows) > SLICE_BYTES), work
    )


def long_bodies(bodies: Sequence[bytes | None], most: int = SLICE_ROWS) -> bool:
    """Whether bodies are more than one step of the loop handles: more than `most`, or wide."""
    return len(bodies) > most or sum(map(len, filter(None, bodies))) > SLICE_BYTES


def in_steps(rows: Sequence[R]) -> Iterable[R]:
    """The rows, giving way by their number and width where this is a fibre."""
    return _giving_way(rows) if is_fibre() else rows


def _giving_way(rows: Sequence[R]) -> Iterator[R]:
    due = 0
    for row in rows:
        if due >= ROWS_PER_STEP:
            give_way(due // ROWS_PER_STEP)
            due = 0
        due += 1 + weight([row if isinstance(row, tuple) else (row,)]) // BYTES_PER_ROW
        yield row


def listed(items: Sequence[R], pick: Callable[[Sequence[R]], Iterable[T]]) -> Iterator[T]:
    """Gives what `pick` gives of the items, of `LISTED_PER_STEP` at a time, giving way between."""
    for start in range(0, len(items), LISTED_PER_STEP):
        yield from pick(items[start : start + LISTED_PER_STEP])
        give_way()


def portions(rows: Sequence[R], most: int) -> Iterator[Sequence[R]]:
    """The rows in portions of `most`, or of as many as have `SLICE_BYTES`; where this is a fibre,
    it gives way behind each by its rows and bytes. Rows that no fibre handles are not so wide."""
    start, fibre = 0, is_fibre()
    while start < len(rows):
        some = rows[start : start + most]
        if fibre:
            byte_count = weight(some)  # type: ignore[arg-type]  # rows are tuples
            while byte_count > SLICE_BYTES and len(some) > 1:
                some = some[: (len(some) + 1) // 2]
                byte_count = weight(some)  # type: ignore[arg-type]
        yield some
        start += len(some)
        if fibre:
            give_way((len(some) + byte_count // BYTES_PER_ROW) // ROWS_PER_STEP)


def batches_of(table: pa.Table | pa.RecordBatch, most: int = SLICE_ROWS) -> list[pa.RecordBatch]:
    """The rows in batches of `most`, or of as many as have `SLICE_BYTES` on the average."""
    count = SLICE_BYTES * table.num_rows // (table.nbytes or 1)
    whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    return whole.to_batches(max_chunksize=max(1, min(most, count)))


async def read_each(
    transaction: Transaction, keys: Sequence[bytes], most: int
) -> list[bytes | None]:
    """The bodies of keys, of which `most` are read together, and fewer where they are wide."""
    bodies: list[bytes | None] = []
    count = FIRST_ROWS
    while len(bodies) < len(keys):
        if bodies:
            await asyncio.sleep(0)
        found = await transaction.get_each(keys[len(bodies) : len(bodies) + count])
        bodies += found
        count = following(count, found, most)
    return bodies


def following(count: int, found: Sequence[bytes | None], most: int) -> int:
    """The number of rows to read behind the `count` that were `found`: at most 8 times as many, for
    those may be wider."""
    byte_count = sum(map(len, filter(None, found)))
    return max(1, min(most, 8 * count, SLICE_BYTES * len(found) // (byte_count or 1)))


async def put_each(
    transaction: Transaction, keys: Sequence[bytes], bodies: Sequence[bytes]
) -> None:
    """Puts rows, so many at once as have `SLICE_BYTES`."""
    start = byte_count = 0
    for place, body in enumerate(bodies):
        byte_count += len(body)
        if byte_count > SLICE_BYTES and place > start:
            await transaction.put(keys[start:place], bodies[start:place])
            await asyncio.sleep(0)
            start, byte_count = place, len(body)
    await transaction.put(keys[start:], bodies[start:])


async def drop(*several: Sequence[object]) -> None:
    """Empties lists that nobody has a use for any more, a portion a step: millions of rows that are
    freed at once hold up the loop for half a second."""
    for rows in several:
        while isinstance(rows, list) and len(rows) > DROPPED_PER_STEP:
            del rows[-DROPPED_PER_STEP:]
            await asyncio.sleep(0)
