"""Validation: whether the rows of before satisfy a constraint that writers already enforce.

A row that was written since satisfies it, so it is enough that every row did once, at any moment
after the last writer that did not enforce it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

from ...kvlayer.access import StoreAccess
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.elements import CheckConstraint, ForeignKey
from ..rows.row_codec import codec_for
from ..values.errors import SQLError, Violated
from .backfill import Checkpoint, null_found, slices_behind
from .evaluator import RowEvaluator


class ReferenceReader(Protocol):
    """Finds rows without the row that they refer to."""

    async def __call__(
        self, table: TableDescriptor, key: ForeignKey, bodies: Sequence[bytes]
    ) -> int | None: ...


async def validate_check(
    store: StoreAccess,
    table: TableDescriptor,
    check: CheckConstraint,
    evaluator: RowEvaluator,
    *,
    after: bytes,
    checkpoint: Checkpoint,
) -> None:
    """Raises SQLError 23514, or 23502 of a NOT NULL, where a row behind `after` violates it."""
    codec = codec_for(table.writable)
    async with aclosing(slices_behind(store, table.primary_span, after)) as slices:
        async for rows in slices:
            batch = codec.decode_columns([body for _, body in rows])
            if check.not_null_column is not None:
                column = table.column_by_id(check.not_null_column)
                if batch.column(column.name).null_count:
                    raise null_found(table, column)
            elif await evaluator.violates(table, batch, check) is not None:
                raise SQLError(
                    "23514",
                    f'check constraint "{check.name}" of relation "{table.name}" is violated by '
                    "some row",
                    violated=Violated(table.name, constraint=check.name),
                )
            await checkpoint(rows[-1][0], len(rows))


async def validate_reference(
    store: StoreAccess,
    table: TableDescriptor,
    key: ForeignKey,
    find_orphan: ReferenceReader,
    *,
    after: bytes,
    checkpoint: Checkpoint,
) -> None:
    """Raises SQLError 23503 where a row behind `after` refers to a row that is not there."""
    async with aclosing(slices_behind(store, table.primary_span, after)) as slices:
        async for rows in slices:
            if await find_orphan(table, key, [body for _, body in rows]) is not None:
                raise SQLError(
                    "23503",
                    f'insert or update on table "{table.name}" violates foreign key constraint '
                    f'"{key.name}"',
                    detail="Some row refers to a row that does not exist.",
                    violated=Violated(table.name, constraint=key.name),
                )
            await checkpoint(rows[-1][0], len(rows))
