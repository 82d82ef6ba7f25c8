"""The progress of a feed, as the commits of its lake tables tell it.

Each commit of a table bears a record: the application, which is `tailrace/<store>/<job>`, the
timestamp up to which the table holds everything, the position in the store's log, and which table
it is. No two commits of one application pass each other: a feed whose claim was taken over, and
that did not see the commit of its successor, cannot commit any more.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence

import msgspec

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.descriptor_encoding import decode_descriptor, encode_descriptor
from ....kvlayer.clock import ZERO, Timestamp
from ....kvlayer.history import StorePosition
from ....kvlayer.keys import table_id_of
from ....kvlayer.span import Span
from ..protocol import FeedIdentity, SinkProgress, SinkStand

FIELD = "tailrace"


class TableRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The feed as a commit describes it. `counts` tells that the table was not behind the feed's
    others. `descriptor` is the version whose columns a mirror has, in base 64. A table that was
    `released` is the feed's no more."""

    application: str
    resolved: int
    incarnation: str
    index: int
    spans: list[tuple[str, str]]
    table_id: int = 0
    counts: bool = True
    descriptor: str = ""
    released: bool = False

    @property
    def table(self) -> TableDescriptor | None:
        """The version of the source table whose columns a mirror has."""
        if not self.descriptor:
            return None
        found = decode_descriptor(b64decode(self.descriptor), ZERO)
        assert isinstance(found, TableDescriptor), found
        return found

    @property
    def position(self) -> StorePosition:
        return StorePosition(incarnation=self.incarnation, index=self.index)

    def letting_go(self, position: StorePosition) -> TableRecord:
        """The record of a table that is the feed's no more."""
        return msgspec.structs.replace(
            self, incarnation=position.incarnation, index=position.index, released=True
        )

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()


def application(identity: FeedIdentity) -> str:
    return f"{FIELD}/{identity.store_id}/{identity.job_id}"


def written_version(table: TableDescriptor) -> str:
    """A version of a table, as `TableRecord.descriptor` has it."""
    return b64encode(encode_descriptor(table)).decode()


def decode_record(text: str) -> TableRecord:
    record = msgspec.json.decode(text, type=TableRecord)
    if record.table_id:
        return record
    # An earlier version wrote it, whose feeds had one table.
    start, _ = record.spans[0]
    return msgspec.structs.replace(record, table_id=table_id_of(bytes.fromhex(start)))


def feed_stand(records: Sequence[TableRecord]) -> SinkStand | None:
    """The stand of a feed by its tables' last commits. Each table stands where its own commit says;
    resolved is what all hold that are not behind. None where no table has a commit."""
    if not records:
        return None
    frontier = [
        (Span(bytes.fromhex(start), bytes.fromhex(end)), Timestamp(record.resolved))
        for record in records
        for start, end in record.spans
    ]
    counting = [record for record in records if record.counts] or records
    return SinkStand(
        progress=SinkProgress(
            frontier=tuple(sorted(frontier)),
            resolved=Timestamp(min(record.resolved for record in counting)),
            scan_complete=True,
        ),
        position=max(records, key=lambda record: record.resolved).position,
    )
