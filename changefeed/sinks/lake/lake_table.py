"""The protocol of one table of a lake."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from ....kvlayer.history import StorePosition
from .record import TableRecord


class LakeTable(Protocol):
    """A table of a lake, which may not be there yet, and the commits of one feed to it. It does
    I/O: use it in a lane."""

    @property
    def shown(self) -> str:
        """The table's name in errors."""
        ...

    def read(self) -> TableRecord | None:
        """The record of the feed's last commit; None where the table is not the feed's. Raises
        SinkRefused where that cannot be told."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether there is a table to which the feed has never written."""
        ...

    def check_types(self, schema: pa.Schema) -> None:
        """Raises SinkRefused where a column of the table has another type than in `schema`."""
        ...

    def append(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], record: TableRecord
    ) -> None:
        """Adds rows, and the columns of `schema` that the table has not, in one commit."""
        ...

    def overwrite(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], record: TableRecord
    ) -> None:
        """Puts rows and columns in the place of those that are there, in one commit."""
        ...

    def release(self, record: TableRecord, position: StorePosition) -> None:
        """Lets go of the table: it stays as it is, and its commits tell no progress any more."""
        ...


def another_type(shown: str, column: str, was: object, now: object) -> str:
    """The words for a column whose type has changed."""
    return (
        f"{shown}: column {column} was {was} and is {now} now, and a column keeps its type: create "
        "another changefeed into another table, with a cursor where this one is resolved"
    )
