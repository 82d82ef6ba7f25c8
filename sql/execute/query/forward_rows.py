"""Rows that come in batches, taken by counts: what a cursor that only goes forward fetches."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pyarrow as pa

from ...results.result_batches import ResultBatches


class ForwardRows:
    """The rows of `batches`. `taken` counts those that were given; `ended` says that a taker came
    to the end."""

    def __init__(self, batches: ResultBatches) -> None:
        self.taken = 0
        self.ended = False
        self._batches = batches
        self._left: pa.Table | None = None  # of the batch that was cut

    async def take(self, count: int | None) -> AsyncGenerator[pa.Table, None]:
        """The next `count` rows, or all for None, in parts. What is not taken of it stays."""
        while count is None or count > 0:
            part = self._left if self._left is not None else await self._batches.next()
            self._left = None
            if part is None:
                self.ended = True
                return
            if count is not None and part.num_rows > count:
                part, self._left = part.slice(0, count), part.slice(count)
            if count is not None:
                count -= part.num_rows
            self.taken += part.num_rows
            yield part

    async def rest(self, schema: pa.Schema) -> pa.Table:
        """All that has not been taken; nobody takes any more."""
        parts = [] if self._left is None else [self._left]
        while (part := await self._batches.next()) is not None:
            parts.append(part)
        return pa.concat_tables(parts) if parts else schema.empty_table()
