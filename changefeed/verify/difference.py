"""Differences: what a verification tells of a mirror, a log or a replica."""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import RowUnreadable, codec_for
from ...kvlayer.clock import Timestamp
from ..contract.changes import ChangeKind

DIFFERENCES_MAX = 10_000
"""Then the sink holds another table, and who asked knows enough."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not the same on both sides. `key` is the store's own."""

    table: TableDescriptor
    key: bytes
    what: str

    @property
    def shown_table(self) -> str:
        return self.table.name

    @property
    def shown_key(self) -> str:
        return shown_key(self.table, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDifference:
    """A change that is not the same in a table's history and in the log of it.

    `table` is the descriptor in force at `at`, and `key` the store's own, None for a truncation.
    `lacks` is the kind of change that the log lacks and the feed may send again; None where the log
    has something.
    """

    log: str
    table: TableDescriptor
    key: bytes | None
    at: Timestamp
    what: str
    lacks: ChangeKind | None = None

    @property
    def shown_table(self) -> str:
        return self.log

    @property
    def shown_key(self) -> str:
        return "" if self.key is None else shown_key(self.table, self.key)


AnyDifference = Difference | LogDifference


def shown_key(table: TableDescriptor, key: bytes) -> str:
    """A key of the store as its columns, `k=7`; in hex where it is no key of the table."""
    try:
        values = codec_for(table).decode_key(key)
    except (ValueError, IndexError, RowUnreadable):
        return key.hex()
    shown = [v.hex() if isinstance(v, bytes) else str(v) for v in values]
    return ", ".join(f"{c.name}={v}" for c, v in zip(table.key_columns, shown, strict=True))
