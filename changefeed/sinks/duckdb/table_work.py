"""The work of one flush at one table of a file.

The loop takes what has gathered (`prepare` of each table), and the file's lane reduces and writes
it: of a large flush both take long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .tombstones import Tombstone, Tombstones


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    """The work of a flush on one table. `write` belongs to the file's lane and to the flush's
    transaction; it raises duckdb.Error.

    `lone_statement` tells that all of it is one statement, which needs no transaction around it.
    """

    write: Callable[[Tombstones], None]
    lone_statement: bool
    carries_rows: bool
    deleted: Sequence[Tombstone] = ()


Prepared = Callable[[Tombstones], TableWork]
"""The rows that a flush has taken of a table: called in the file's lane, it returns the work."""
