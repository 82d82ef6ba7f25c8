"""COPY over the wire: rows that a client sends, and rows that it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ...catalog.values.errors import SQLError
from ...sql import ClosedOnError, CopyIn, Result, ResultBatches, Session
from ...sql.syntax.statements import CopyFormat, CopyFrom, CopyTo
from . import replies
from .channel import Channel, HangUp
from .copy_formats import RowWriter, make_reader, make_writer
from .copy_formats.batches import BATCH_ROWS
from .interruption import Guard
from .messages import CopyData, CopyDone, CopyFail, Malformed
from .output import Output
from .portals import SLICE_ROWS

COLUMN_SLICE_ROWS = 2000
"""Rows of a result in columns that are written together."""


async def copy_in(
    session: Session,
    channel: Channel,
    output: Output,
    guard: Guard,
    statement: CopyFrom,
    text: str,
    *,
    more: bool,
) -> None:
    """Takes rows until the client says that they are all. Raises SQLError, and then none remain.
    The session is listed as one that runs `text`, and may be cancelled."""
    loading = await guard.run(session.copy_in(statement))
    binary = statement.options.format is CopyFormat.BINARY
    count = len(loading.columns)
    channel.write(replies.copy_response(b"G", binary=binary, column_count=count))
    channel.flush()
    channel.machine.copy_in()
    with session.activity.running(text):
        await _take_rows(channel, guard, loading, statement)
    if not more:
        if loading.row_count >= BATCH_ROWS:
            await asyncio.sleep(0)  # the commit is no part of the step that wrote the last of them
        await guard.run(session.end_batch())
    channel.machine.copy_ended()
    output.complete(Result(tag=f"COPY {loading.row_count}"))


async def _take_rows(channel: Channel, guard: Guard, loading: CopyIn, statement: CopyFrom) -> None:
    reader = make_reader(statement.options, loading.table_name, loading.columns)
    while True:
        message = await channel.next_message()
        match message:
            case CopyData(data=data):
                batches = reader.feed(data)
            case CopyDone():
                batches = reader.end()
            case CopyFail(message=why):
                raise SQLError("57014", f"COPY from stdin failed: {why}")
            case Malformed(error=error):
                raise error
            case _:
                raise HangUp
        for batch in batches:
            await asyncio.sleep(0)  # reading a block is a step, and writing each of its batches
            await guard.run(loading.write(batch))
        if isinstance(message, CopyDone):
            return


async def copy_out(
    session: Session,
    channel: Channel,
    output: Output,
    guard: Guard,
    statement: CopyTo,
    text: str,
    *,
    more: bool,
) -> None:
    """Sends the rows of a query."""
    found = await guard.run(session.copy_out(statement, text, more=more))
    async with ClosedOnError(found):
        writer = make_writer(statement.options, found.columns)
        binary = statement.options.format is CopyFormat.BINARY
        channel.write(replies.copy_response(b"H", binary=binary, column_count=len(found.columns)))
        if writer.head and not binary:
            channel.write(replies.copy_data(writer.head))
        rows = _Rows(writer, writer.head if binary else b"")
        if found.batches is None:
            for portion in rows.slices(found):
                channel.write(replies.copy_rows(portion))
                await output.turn()
            count = found.row_count
        else:
            count = await guard.run(_send_batches(session, channel, found, found.batches, rows))
    if writer.tail:
        channel.write(replies.copy_data(rows.head + writer.tail))
    channel.write(replies.COPY_DONE)
    output.complete(Result(tag=f"COPY {count}"))


async def _send_batches(
    session: Session, channel: Channel, found: Result, batches: ResultBatches, rows: _Rows
) -> int:
    """Sends the rows of a result while they are computed. Returns how many there were."""
    async with session.sending(found):
        while (table := await batches.next()) is not None:
            for portion in rows.slices(found.batch(table)):
                channel.write(replies.copy_rows(portion))
                await channel.drain()
                await asyncio.sleep(0)
    return batches.row_count


@dataclass(slots=True)
class _Rows:
    """Rows as they are sent. `head` is a binary header that is still due: it goes with the first
    row, in one message, for readers (DuckDB's extension) know it from PostgreSQL so."""

    writer: RowWriter
    head: bytes

    def slices(self, found: Result) -> Iterator[list[bytes]]:
        """The rows of a result, as many at a time as are written in about a millisecond."""
        for portion in _slices(found, self.writer):
            if self.head and portion:
                portion[0] = self.head + portion[0]
                self.head = b""
            yield portion


def _slices(found: Result, writer: RowWriter) -> Iterator[list[bytes]]:
    if found.table is None:
        rows = iter(found.rows or ())
        while portion := [writer.row(row) for row in islice(rows, SLICE_ROWS)]:
            yield portion
        return
    for start in range(0, found.table.num_rows, COLUMN_SLICE_ROWS):
        yield writer.rows(found.table.slice(start, COLUMN_SLICE_ROWS))
