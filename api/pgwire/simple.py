"""The simple protocol: a text of any number of statements, all rows in text."""

from __future__ import annotations

from ...sql import ClosedOnError, Session
from ...sql.syntax.statements import CopyFrom, CopyTo
from ...sql.syntax.transaction_statements import FetchCursor
from . import replies
from .channel import Channel
from .copying import copy_in, copy_out
from .extended import Extended
from .interruption import Guard
from .output import Output


async def run_text(
    session: Session,
    channel: Channel,
    output: Output,
    guard: Guard,
    extended: Extended,
    text: str,
) -> None:
    """Runs the statements of a Query as one batch: one transaction, unless it says BEGIN.

    A portal of `extended` is a cursor, too, for MOVE.

    Raises SQLError at the first that fails.
    """
    statements = await guard.run(session.parse(text))
    if not statements:
        channel.write(replies.EMPTY_QUERY)
        return
    last = len(statements) - 1
    for place, prepared in enumerate(statements):
        more = place < last
        match prepared.statement:
            case CopyFrom() as statement:
                await copy_in(session, channel, output, guard, statement, text, more=more)
            case CopyTo() as statement:
                await copy_out(session, channel, output, guard, statement, text, more=more)
            case FetchCursor(moves=True) as statement if extended.has_portal(statement.name):
                await extended.move(statement)
            case _:
                result = await guard.run(session.run(prepared, more=more, streamed=True))
                async with ClosedOnError(result):
                    if result.batches is not None:
                        await output.content(result)
                    if not more and session.in_batch:
                        # A client that reads of the last one's completion may rely on the commit.
                        await guard.run(session.end_batch())
                    if result.batches is None:
                        await output.content(result)
                    output.complete(result)
    if session.in_batch:
        await guard.run(session.end_batch())
