"""A lake table of every change of a table.

    held      a@10  b@20                c@30  d@50
    commit    a b, up to 20             c, up to 40          d waits

What comes again was not committed, so every change is in the lake table once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ....kvlayer.clock import Timestamp
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch, ChangeKind
from ..held_rows import COMMIT_TIMESTAMP, ROW_KEY, Cut
from ..protocol import SinkRefused
from .columns import lake_rows, lake_schema
from .fed_table import FedTable, FlushStamp, under
from .lake_table import another_type


class LogTable(FedTable):
    """A lake table to which changes are appended. Rows have the columns of their own schema: the
    lake table takes those that are new."""

    def hold(self, batches: Sequence[ChangeBatch]) -> None:
        for batch in batches:
            rows = lake_rows(batch).append_column(ROW_KEY, pa.array(batch.keys, pa.binary()))
            live = batch.kind is not ChangeKind.INITIAL_SCAN
            if live and min(batch.timestamps) <= self.committed:
                rows = rows.filter(pc.field(COMMIT_TIMESTAMP) > self.committed)
            if rows.num_rows:
                self._held.add(rows, live=live)

    def commit(self, upto: Timestamp, events: Sequence[TableEvent], flush: FlushStamp) -> None:
        cut = Cut.at_one(upto)
        schemas = self._held.due(cut)
        if upto <= self.committed or (not schemas and self._idle):
            return
        schema = self._merged(schemas or [lake_schema(self._table)])

        def batches() -> Iterator[pa.RecordBatch]:
            for rows in self._held.take_once(cut):
                yield from under(rows, schema).to_batches()

        self._add(schema, batches(), self._record(upto, flush))
        self._held.drop(cut)

    def _merged(self, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of all of them. Raises SinkRefused where one has changed its type, also from
        what the lake table has."""
        merged: dict[str, pa.DataType] = {}
        for schema in schemas:
            for field in schema:
                was = merged.setdefault(field.name, field.type)
                if was != field.type:
                    raise SinkRefused(another_type(self.lake.shown, field.name, was, field.type))
        merged.pop(ROW_KEY, None)
        whole = pa.schema(list(merged.items()))
        if not self._begins:
            self.lake.check_types(whole)
        return whole
