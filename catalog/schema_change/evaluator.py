"""What a schema change asks of SQL: values and truths of expressions over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from ..column_types import Datum
from ..descriptor import Column, TableDescriptor
from ..elements import CheckConstraint


class RowEvaluator(Protocol):
    """Evaluates expressions of a table's columns over its rows, in slices of the loop."""

    async def fill(
        self, table: TableDescriptor, rows: pa.RecordBatch, columns: Sequence[Column]
    ) -> Sequence[Sequence[Datum]]:
        """The values of `columns` in each row: one sequence per column, as long as the batch.

        `rows` has the visible columns of `table`. A column is computed, or has a default.
        """
        ...

    async def violates(
        self, table: TableDescriptor, rows: pa.RecordBatch, check: CheckConstraint
    ) -> int | None:
        """The place of a row for which the check is false, or None. NULL satisfies it."""
        ...
