"""A lake table of every change of a table.

    held      a@10  b@20                c@30  d@50
    commit    a b, up to 20             c, up to 40          d waits

What comes again was not committed, so every change is in the lake table once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import Timestamp
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch, ChangeKind
from ..held_rows import Cut
from ..protocol import FeedIdentity, SinkRefused
from .columns import lake_rows, lake_schema
from .fed_table import FedTable, FlushStamp, under
from .lake_table import LakeTable, another_type
from .record import TableRecord


class LogTable(FedTable):
    """A lake table to which changes are appended. Rows have the columns of their own schema: the
    lake table takes those that are new."""

    def __init__(
        self,
        lake: LakeTable,
        identity: FeedIdentity,
        table: TableDescriptor,
        record: TableRecord | None,
        *,
        monotonic_ns: Callable[[], int],
    ) -> None:
        super().__init__(lake, identity, table, record, monotonic_ns=monotonic_ns)
        self._seen: set[tuple[bytes, Timestamp]] = set()
        """The changes that wait, but for those of an initial scan."""

    def hold(self, batches: Sequence[ChangeBatch]) -> None:
        for batch in batches:
            rows = lake_rows(batch)
            if batch.kind is not ChangeKind.INITIAL_SCAN:
                new = [
                    self._new(*change) for change in zip(batch.keys, batch.timestamps, strict=True)
                ]
                rows = rows if all(new) else rows.filter(pa.array(new))
            if rows.num_rows:
                self._held.add(rows)

    def _new(self, key: bytes, ts: Timestamp) -> bool:
        """Whether the change was not seen yet: it may be delivered twice."""
        if ts <= self.committed or (key, ts) in self._seen:
            return False
        self._seen.add((key, ts))
        return True

    def commit(self, upto: Timestamp, events: Sequence[TableEvent], flush: FlushStamp) -> None:
        cut = Cut.at_one(upto)
        schemas = self._held.due(cut)
        if upto <= self.committed or (not schemas and self._idle):
            return
        schema = self._merged(schemas or [lake_schema(self._table)])

        def batches() -> Iterator[pa.RecordBatch]:
            for rows in self._held.take(cut):
                yield from under(rows, schema).to_batches()

        self._add(schema, batches(), self._record(upto, flush))
        self._held.drop(cut)
        self._seen = {change for change in self._seen if change[1] > upto}

    def _merged(self, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of all of them. Raises SinkRefused where one has changed its type, also from
        what the lake table has."""
        merged: dict[str, pa.DataType] = {}
        for schema in schemas:
            for field in schema:
                was = merged.setdefault(field.name, field.type)
                if was != field.type:
                    raise SinkRefused(another_type(self.lake.shown, field.name, was, field.type))
        whole = pa.schema(list(merged.items()))
        if not self._begins:
            self.lake.check_types(whole)
        return whole
