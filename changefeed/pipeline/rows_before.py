"""The rows as they were before the schema event for which a backfill shows them again."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.column_types import Datum
from ...kvlayer.keys import index_prefix
from ...schemafeed.table_events import TableEvent
from .decode import PreviousRows
from .scan_reader import ScanReader


class RowsBefore:
    """Reads rows as of just below an event, under the descriptor that was in force there.

    A table that was rewritten has its rows in another index, under keys that end as before; where
    the event changed the key itself, a row has no row before it.
    """

    def __init__(self, reader: ScanReader, event: TableEvent) -> None:
        """`reader` reads as of the timestamp below the event's."""
        self._reader = reader
        self._descriptor = event.before
        self._decode_row = codec_for(event.before).decode_row
        self._prefix = _primary_prefix(event.before)
        self._skipped = len(_primary_prefix(event.after))
        self._same_key = _key(event.before) == _key(event.after)

    async def read(self, keys: Sequence[bytes]) -> dict[bytes, tuple[Datum, ...] | None]:
        """The row before each key's. A read a row: only who asked for `diff` pays it."""
        found: dict[bytes, tuple[Datum, ...] | None] = dict.fromkeys(keys)
        if self._same_key:
            for key in keys:
                old_key = self._prefix + key[self._skipped :]
                version = await self._reader.get_with_timestamp(old_key)
                if version is not None:
                    found[key] = self._decode_row(old_key, version[0])
        return found

    def of(
        self, found: dict[bytes, tuple[Datum, ...] | None], keys: Sequence[bytes]
    ) -> PreviousRows:
        """The rows before of `keys`, in their order."""
        return PreviousRows([found[key] for key in keys], self._descriptor)


def _primary_prefix(table: TableDescriptor) -> bytes:
    return index_prefix(table.id, table.primary_index_id)


def _key(table: TableDescriptor) -> list[tuple[int, object]]:
    return [(column.id, column.type) for column in table.key_columns]
