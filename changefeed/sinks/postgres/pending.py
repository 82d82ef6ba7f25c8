"""The changes of one table since the last flush, reduced to the newest of each key.

emitted   k1@10  k2@11  k1@12  k2 deleted @13      then @9 of k1, replayed
newest    k1@12  k2 deleted @13
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from ....catalog.values.column_types import Datum
from ....kvlayer.clock import Timestamp
from ...contract.changes import ChangeBatch, ChangeKind
from ..mirror.conform import KEY_PREFIX_LENGTH
from .table_schema import TableSchema

STEP_ROWS = 2_000
"""Rows that one step of the loop looks at: half a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """Changes of different keys, under one version of the table. Keys are without their prefix.
    `scanned` tells that all are rows of an initial scan."""

    schema: TableSchema
    upserts: list[tuple[bytes, Timestamp, tuple[Datum, ...]]]
    deletions: list[tuple[bytes, Timestamp]]
    scanned: bool

    def __len__(self) -> int:
        return len(self.upserts) + len(self.deletions)


class PendingChanges:
    """The batches of one table under one version, since the last flush."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self.batches: list[ChangeBatch] = []
        self._newest: dict[bytes, tuple[Timestamp, tuple[Datum, ...] | None]] = {}
        self._scanned = True

    def __len__(self) -> int:
        return len(self._newest)

    def add(self, batch: ChangeBatch) -> None:
        self.batches.append(batch)
        self._scanned = self._scanned and batch.kind is ChangeKind.INITIAL_SCAN
        newest = self._newest
        changes = zip(batch.keys, batch.timestamps, batch.iterate_rows(), strict=True)
        for key, ts, row in changes:
            key = key[KEY_PREFIX_LENGTH:]
            earlier = newest.get(key)
            # A scan's row or a replay may come behind a newer version of its key.
            if earlier is None or earlier[0] <= ts:
                newest[key] = ts, row

    async def reduce(self, deleted: Mapping[bytes, Timestamp]) -> TableChanges:
        """One change a key, without those that a tombstone shows to be old. In short steps."""
        upserts: list[tuple[bytes, Timestamp, tuple[Datum, ...]]] = []
        deletions: list[tuple[bytes, Timestamp]] = []
        for place, (key, (ts, row)) in enumerate(self._newest.items(), start=1):
            if place % STEP_ROWS == 0:
                await asyncio.sleep(0)
            if (gone := deleted.get(key)) is not None and ts <= gone:
                continue
            if row is None:
                deletions.append((key, ts))
            else:
                upserts.append((key, ts, row))
        return TableChanges(
            schema=self.schema, upserts=upserts, deletions=deletions, scanned=self._scanned
        )
