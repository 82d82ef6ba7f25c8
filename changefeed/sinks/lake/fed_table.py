"""One table of a feed, and the lake table that it goes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import ZERO, Timestamp
from ....kvlayer.history import StorePosition
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch
from ..held_rows import HeldRows
from ..protocol import FeedIdentity, SinkRefused
from .columns import check_names
from .lake_table import LakeTable
from .record import TableRecord, application, written_version

IDLE_COMMIT_NS = 60 * 10**9
"""Without changes progress is committed so often: a commit is a file that stays for weeks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushStamp:
    """The note in the commits of one flush: where the store's log stood, and whether the table
    counts for what the feed has resolved."""

    position: StorePosition
    counts: bool


class FedTable:
    """The changes that wait for one lake table, and the timestamp up to which they are complete.

    Rows wait in `held` until everything at or below them is there, so that a commit holds the table
    up to one timestamp. `change` and `events` belong to the loop, all else to the lane. After a
    write that failed the object is of no further use.
    """

    def __init__(
        self,
        lake: LakeTable,
        identity: FeedIdentity,
        table: TableDescriptor,
        record: TableRecord | None,
        *,
        monotonic_ns: Callable[[], int],
    ) -> None:
        """`record` is that of the feed's last commit: without one the lake table begins anew."""
        self.lake = lake
        self.table_id = table.id
        self.span = table.span
        self.committed = ZERO if record is None else Timestamp(record.resolved)
        self.events: list[TableEvent] = []
        """The schema events that are still to be followed."""
        self._table = table
        self._begins = record is None
        self._identity = identity
        self._held = HeldRows()
        self._monotonic_ns = monotonic_ns
        self._committed_at = monotonic_ns()

    def change(self, event: TableEvent) -> None:
        """A schema event, between the batches. Raises SinkRefused where a lake table cannot have
        the columns."""
        try:
            check_names(event.after)
        except SQLError as error:
            raise SinkRefused(f"{error.message}: {error.detail}") from error

    def hold(self, batches: Sequence[ChangeBatch]) -> None:
        """Takes changes, which wait for `commit`. What was committed already may come again."""
        raise NotImplementedError

    def commit(self, upto: Timestamp, events: Sequence[TableEvent], flush: FlushStamp) -> None:
        """Brings the lake table to `upto`: all at or below it is held. `events` are the ones to
        follow, in order."""
        raise NotImplementedError

    def close(self) -> None:
        self._held.close()

    @property
    def _idle(self) -> bool:
        """Whether no commit is due but for the sake of changes."""
        return not self._begins and self._monotonic_ns() - self._committed_at < IDLE_COMMIT_NS

    def _record(
        self, resolved: Timestamp, flush: FlushStamp, columns_of: TableDescriptor | None = None
    ) -> TableRecord:
        """The record of a commit that holds every change of the table at or below `resolved`."""
        return TableRecord(
            application=application(self._identity),
            resolved=resolved,
            incarnation=flush.position.incarnation,
            index=flush.position.index,
            spans=[(self.span.start.hex(), self.span.end.hex())],
            table_id=self.table_id,
            counts=flush.counts,
            descriptor="" if columns_of is None else written_version(columns_of),
        )

    def _add(
        self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], record: TableRecord
    ) -> None:
        """Appends rows, the first of them in the place of what an earlier feed of the job left."""
        write = self.lake.overwrite if self._begins else self.lake.append
        write(schema, batches, record)
        self._note(record)

    def _note(self, record: TableRecord) -> None:
        """The lake table holds what `record` says."""
        resolved = Timestamp(record.resolved)
        assert resolved >= self.committed, (resolved, self.committed)
        self._begins = False
        self.committed, self._committed_at = resolved, self._monotonic_ns()


def under(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of `schema`: NULL where they have none."""
    names = set(rows.column_names)
    columns = [
        rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
