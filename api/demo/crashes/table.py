"""A column table in shared memory, without transactions: a cell is exchanged as one atom.

Each column is an array of 64-bit integers. Two writers of one row interleave as they like.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ....kvlayer.relaxed.shared import FileLock

NOTHING = -(1 << 63)
"""What a cell without a value holds."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's name, its columns and how many rows it may have."""

    name: str
    columns: tuple[str, ...]
    rows: int

    @property
    def size(self) -> int:
        return len(self.columns) * self.rows * 8


CRASHES = Shape("crashes", ("signal", "frames", "pid", "issue"), 64)
ISSUES = Shape("issues", ("crashes", "assignee"), 8)


class CrashTable:
    """One table, as one process sees it."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        """Maps the table of that name in the folder, or makes it, without a value."""
        self.shape = shape
        descriptor = os.open(folder / f"{shape.name}.cells", os.O_RDWR | os.O_CREAT, 0o600)
        self._lock = FileLock(descriptor)
        self._lock.acquire()
        try:
            fresh = os.fstat(descriptor).st_size == 0
            if fresh:
                os.ftruncate(descriptor, shape.size)
            self._map = mmap.mmap(descriptor, shape.size)
            self.cells: npt.NDArray[np.int64] = np.frombuffer(self._map, np.int64).reshape(
                len(shape.columns), shape.rows
            )
            if fresh:
                self.cells[:] = NOTHING
        finally:
            self._lock.release()
        self._columns = {name: self.cells[at] for at, name in enumerate(shape.columns)}

    def exchange(self, row: bytes, column: str, new: bytes | None) -> bytes | None:
        """Stores a value, or none, and returns the one that it replaced."""
        at, cells = int(row), self._columns[column]
        value = NOTHING if new is None else int(new)
        self._lock.acquire()
        try:
            old = int(cells[at])
            cells[at] = value
        finally:
            self._lock.release()
        return None if old == NOTHING else b"%d" % old

    def image(self) -> bytes:
        """Every cell, bit for bit."""
        return self._map[:]

    def values(self) -> dict[tuple[str, bytes, str], bytes]:
        """The cells that have a value, by table, row and column."""
        return cells_of(self.shape, self.image())


def image_of(shape: Shape, columns: Mapping[str, npt.NDArray[np.int64]]) -> bytes:
    """The image of a table of these columns, bit for bit."""
    cells = np.stack([columns[name] for name in shape.columns])
    assert cells.shape == (len(shape.columns), shape.rows), cells.shape
    return cells.tobytes()


def cells_of(shape: Shape, image: bytes) -> dict[tuple[str, bytes, str], bytes]:
    """The cells of an image."""
    cells = np.frombuffer(image, np.int64).reshape(len(shape.columns), shape.rows)
    return {
        (shape.name, b"%d" % row, shape.columns[column]): b"%d" % cells[column, row]
        for column, row in zip(*np.nonzero(cells != NOTHING), strict=True)
    }
