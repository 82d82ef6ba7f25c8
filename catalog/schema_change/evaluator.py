"""The interface through which a schema change evaluates expressions of SQL over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from ..descriptors.descriptor import Column, TableDescriptor
from ..descriptors.elements import CheckConstraint
from ..values.column_types import Datum


class RowEvaluator(Protocol):
    """Evaluates expressions of a table's columns over its rows, in slices of the loop."""

    async def draw(
        self, table: TableDescriptor, columns: Sequence[Column], count: int
    ) -> Sequence[Sequence[Datum]]:
        """The defaults of `columns` for so many rows, drawn anew for each: a sequence a column."""
        ...

    async def compute(
        self, table: TableDescriptor, rows: pa.RecordBatch, columns: Sequence[Column]
    ) -> Sequence[Sequence[Datum]]:
        """The values of computed `columns` in each row: a sequence a column, as long as the batch.

        `rows` has the visible columns of `table`.
        """
        ...

    async def violates(
        self, table: TableDescriptor, rows: pa.RecordBatch, check: CheckConstraint
    ) -> int | None:
        """The place of a row for which the check is false, or None. NULL satisfies it."""
        ...
