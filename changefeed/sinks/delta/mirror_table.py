"""A Delta table that equals its source at the timestamp of each of its commits.

    held      k1@10  k2@11 | ADD COLUMN at 12 | k1@14  k1@15  k3@19        resolved 16
    commit    k1 k2, up to 11
    commit    the column, up to 12
    commit    k1@15, up to 16                          k3 waits

The newest row of each key is merged, and a schema event stands between the rows below it and those
above. What is delivered again lies at or below the last commit, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import Timestamp
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch, ChangeKind
from ...contract.options import ChangefeedOptions
from ..held_rows import COMMIT_TIMESTAMP, Cut
from ..lake.columns import KEY, OPERATION, lake_rows
from ..lake.fed_table import FedTable, FlushStamp, under
from ..lake.record import TableRecord
from ..mirror.conform import KEY_PREFIX_LENGTH
from ..protocol import FeedIdentity
from .schema_step import Step, key_columns, mirror_schema, plan_step, rewritten
from .table_folder import TableFolder

MERGE_BYTES_MAX = 64 << 20
"""Arrow bytes of changes that one commit merges, which are in memory then: more take several."""

DELETED = "_deleted"


class MirrorTable(FedTable):
    """A Delta table with the rows of its source."""

    def __init__(
        self,
        folder: TableFolder,
        identity: FeedIdentity,
        table: TableDescriptor,
        record: TableRecord | None,
        options: ChangefeedOptions,
        *,
        monotonic_ns: Callable[[], int],
    ) -> None:
        super().__init__(folder, identity, table, record, monotonic_ns=monotonic_ns)
        self.folder = folder
        known = None if record is None else record.table
        self._columns_of = known or table
        """The version of the source whose columns the Delta table has."""
        self._options = options
        self._scanned = False
        """Whether rows of a scan have come."""

    def change(self, event: TableEvent) -> None:
        super().change(event)
        if event.after.version > self._columns_of.version:
            self.events.append(event)

    def hold(self, batches: Sequence[ChangeBatch]) -> None:
        for batch in batches:
            keys = pa.array([key[KEY_PREFIX_LENGTH:] for key in batch.keys], pa.binary())
            rows = lake_rows(batch).append_column(KEY, keys)
            if batch.kind is ChangeKind.LIVE and min(batch.timestamps) <= self.committed:
                rows = rows.filter(pc.field(COMMIT_TIMESTAMP) > self.committed)
            self._scanned |= batch.kind is ChangeKind.INITIAL_SCAN
            if rows.num_rows:
                self._held.add(rows)

    def commit(self, upto: Timestamp, events: Sequence[TableEvent], flush: FlushStamp) -> None:
        for place, event in enumerate(events):
            if event.timestamp > upto:
                break
            ends = (each.timestamp - 1 for each in events[place + 1 :] if not self._hidden(each))
            self._follow(event, Timestamp(min([upto, *ends])), flush)
        self._settle(upto, flush)

    def _settle(self, upto: Timestamp, flush: FlushStamp) -> None:
        """Brings the Delta table to `upto`, under the version that it has."""
        if self._begins:
            # A scan shows each key once. Other rows may have come twice.
            least = self._held.least or upto
            at = Timestamp(min(least, upto) if self._scanned else min(least - 1, upto))
            cut = self._held.part(upto, MERGE_BYTES_MAX)
            self._replace(at, cut, flush)
        while self._held.least is not None and self._held.least <= upto:
            cut = self._held.part(upto, MERGE_BYTES_MAX)
            self._merge(cut, flush)
        if upto > self.committed and not self._idle:
            self._append_nothing(upto, flush)

    def _hidden(self, event: TableEvent) -> bool:
        """Whether nothing of the event shows."""
        return plan_step(event, event.before, self._options) is Step.NOTHING

    def _follow(self, event: TableEvent, upto: Timestamp, flush: FlushStamp) -> None:
        """Carries out a schema event. All rows from there to `upto` have its columns."""
        before, after = self._columns_of, event.after
        if after.version <= before.version:
            return
        if self._hidden(event):
            self._columns_of = after
            return
        step, at = plan_step(event, before, self._options), event.timestamp
        self._settle(Timestamp(at - 1), flush)
        if step is Step.REPLACE:
            # All of it in one commit: where a row as of the event was left out for a later one,
            # progress has passed over the time between.
            self._columns_of = after
            self._replace(at, upto, flush)
            return
        # A row of the event's own timestamp is merged behind it.
        reached = Timestamp(at - 1) if self._held.due(Cut.at_one(at)) else at
        if step is Step.REWRITE:
            self._put(rewritten(self.folder.rows(), before, after), reached, after, flush)
        self._columns_of = after
        if step is Step.GROW:
            self._append_nothing(reached, flush)

    def _replace(self, at: Timestamp, upto: Timestamp, flush: FlushStamp) -> None:
        """Puts the rows as of `at`, and the later ones up to `upto`, in the place of what is
        there."""
        schema = mirror_schema(self._columns_of)

        def batches() -> Iterator[pa.RecordBatch]:
            later = pc.field(COMMIT_TIMESTAMP) > at
            parts = [rows.filter(later) for rows in self._held.take(Cut.at_one(upto))]
            newest = _newest(parts) if parts else None
            known = pa.array([], pa.binary()) if newest is None else _whole(newest.column(KEY))
            for rows in self._held.take(Cut.at_one(at)):
                rows = rows.filter(pc.field(OPERATION) == "upsert")
                rows = rows.filter(pc.invert(pc.is_in(rows.column(KEY), value_set=known)))
                yield from under(rows, schema).to_batches()
            if newest is not None:
                rows = newest.filter(pc.field(OPERATION) == "upsert")
                yield from under(rows, schema).to_batches()

        self._put(batches(), upto, self._columns_of, flush)
        self._held.drop(Cut.at_one(upto))

    def _put(
        self,
        batches: Iterator[pa.RecordBatch],
        upto: Timestamp,
        columns_of: TableDescriptor,
        flush: FlushStamp,
    ) -> None:
        record = self._record(upto, flush, columns_of)
        self.folder.overwrite(mirror_schema(columns_of), batches, record)
        self._note(record)

    def _merge(self, upto: Timestamp, flush: FlushStamp) -> None:
        """Upserts and deletes what is held up to `upto`."""
        rows = _newest([*self._held.take(Cut.at_one(upto))])
        deleted: Any = pc.equal(rows.column(OPERATION), pa.scalar("delete"))
        changes = under(rows, mirror_schema(self._columns_of)).append_column(DELETED, deleted)
        record = self._record(max(upto, self.committed), flush, self._columns_of)
        self.folder.merge(changes, key_columns(self._columns_of), DELETED, record)
        self._note(record)
        self._held.drop(Cut.at_one(upto))

    def _append_nothing(self, upto: Timestamp, flush: FlushStamp) -> None:
        """A commit of progress, and of columns that the Delta table has not yet."""
        record = self._record(max(upto, self.committed), flush, self._columns_of)
        self._add(mirror_schema(self._columns_of), iter(()), record)


def _newest(parts: Sequence[pa.Table]) -> pa.Table:
    """The newest row of each key."""
    rows = pa.concat_tables(parts, promote_options="permissive")
    rows = rows.take(pc.sort_indices(rows.column(COMMIT_TIMESTAMP)))
    places: Any = pa.array(range(rows.num_rows), pa.int64())
    keyed = pa.table({KEY: rows.column(KEY), "place": places})
    last = keyed.group_by(KEY).aggregate([("place", "max")]).column("place_max")
    return rows.take(last)


def _whole(column: Any) -> Any:
    return column.combine_chunks()
