"""From entries of a secondary index to the rows that they are of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.index_codec import index_codec_for
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Row, Transaction
from ....kvlayer.span import Span
from ....kvlayer.transaction_modes import WhenLocked

READ_AT_ONCE = 256
"""Rows that are read by their keys in one step of the loop."""


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
    for start in range(0, len(entries), READ_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        keys = [key_of(body)[0] for _, body in entries[start : start + READ_AT_ONCE]]
        bodies = await _read(transaction, keys, when_locked)
        for key, found in zip(keys, bodies, strict=True):
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


async def _read(
    transaction: Transaction, keys: Sequence[bytes], when_locked: WhenLocked
) -> list[bytes | None]:
    """The rows' bodies; None where another transaction has locked one, and such are skipped."""
    if when_locked is WhenLocked.WAIT:
        return await transaction.get_each(keys)
    bodies: list[bytes | None] = []
    for key in keys:
        found = await transaction.scan(Span.point(key), limit=1, when_locked=when_locked)
        bodies.append(found[0][1] if found else None)
    return bodies
