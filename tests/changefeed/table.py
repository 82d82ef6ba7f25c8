"""A table of a simulated store, written and read as SQL would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.live_leases import DescriptorLeased
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.txn import Evaluation
from tests.harness.nodes import CatalogFixture

Row = tuple[int, str | None]


class Table:
    """`orders (k INT8 PRIMARY KEY, v STRING)`."""

    def __init__(self, catalog: CatalogFixture, descriptor: TableDescriptor) -> None:
        self.catalog = catalog
        self.descriptor = descriptor
        self._codec = codec_for(descriptor)

    async def write(self, *rows: Row, delete: Sequence[int] = ()) -> Timestamp:
        """One transaction in one phase."""
        encoded = [self._codec.encode_row(row) for row in rows]
        gone = [self._codec.encode_key((k,)) for k in delete]
        wall = self.catalog.store.clock.wall

        def evaluate(evaluation: Evaluation) -> None:
            evaluation.put([key for key, _ in encoded], [body for _, body in encoded])
            evaluation.delete(gone)

        _, ts = await self.catalog.store.one_phase(evaluate, commit_called_ns=wall.monotonic_ns())
        return ts

    async def write_slowly(self, row: Row, seconds: float) -> Timestamp:
        """One transaction with an intent that stands for a while."""
        transaction = self.catalog.store.begin()
        key, body = self._codec.encode_row(row)
        await transaction.put([key], [body])
        await asyncio.sleep(seconds)
        return await transaction.commit()

    async def publish(self, **changes: Any) -> None:
        """The table's next version, once the one before the last is leased no more."""
        while True:
            try:
                await self.catalog.publish(self.descriptor.id, **changes)
                return
            except DescriptorLeased:
                await asyncio.sleep(0.01)

    async def rows_at(self, at: Timestamp) -> dict[int, str | None]:
        reader = self.catalog.store.snapshot(at)
        found = await reader.scan(self.descriptor.primary_span)
        rows = [self._codec.decode_row(key, body) for key, body in found]
        return {row[0]: row[1] for row in rows}  # type: ignore[misc]
