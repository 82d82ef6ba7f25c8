"""The part of a descriptor that makes a table a view: its query, and the tables which that reads.

CREATE VIEW late AS SELECT * FROM orders WHERE placed < due

ViewQuery(text='SELECT id, placed, due FROM defaultdb.public.orders WHERE placed < due',
          reads=(ViewDependency(table_id=104, columns=(1, 2, 3)),))
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ViewDependency:
    """A table, or another view, that a view reads, and the ids of the columns that it names."""

    table_id: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """A query that names tables in full, and columns where a star was written.

    So it means the same in every session, and is not changed by a column that comes later.
    """

    text: str
    reads: tuple[ViewDependency, ...]
