"""From entries of a secondary index to the rows that they are of."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.index_codec import index_codec_for
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Row, Transaction
from ....kvlayer.span import Span
from ....kvlayer.transaction_modes import WhenLocked


async def rows_of_entries(
    table: TableDescriptor,
    entries: Sequence[Row],
    transaction: Transaction,
    *,
    covered: bool,
    when_locked: WhenLocked = WhenLocked.WAIT,
) -> list[Row]:
    """Keys and bodies of the rows of entries, in the entries' order.

    An entry's body is a row's, of the columns that the index holds: where those are all that is
    asked for (`covered`) no row is read. Raises SQLError XX002 for an entry without its row.
    """
    key_of = index_codec_for(table, table.primary_index).entry
    if covered:
        return [key_of(body) for _, body in entries]
    rows: list[Row] = []
    for _, body in entries:
        key, _ = key_of(body)
        found = await _read(transaction, key, when_locked)
        if found is not None:
            rows.append((key, found))
        elif when_locked is not WhenLocked.SKIP:
            raise SQLError(
                "XX002",
                f'an index of table "{table.name}" has an entry without its row',
                detail=f"The row's key is {key.hex()}.",
                hint="Drop the index and create it again.",
            )
    return rows


async def _read(transaction: Transaction, key: bytes, when_locked: WhenLocked) -> bytes | None:
    """The row's body; None where another transaction has locked it, and such are skipped."""
    if when_locked is WhenLocked.WAIT:
        return await transaction.get(key)
    found = await transaction.scan(Span.point(key), limit=1, when_locked=when_locked)
    return found[0][1] if found else None
