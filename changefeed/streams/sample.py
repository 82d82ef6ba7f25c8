"""Samples: some messages as a feed would send them, from a stream that ends behind them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ...kvlayer.clock import Timestamp
from ..contract.options import parse_options
from ..jobs.create import FeedRequest
from ..jobs.services import ChangefeedServices
from ..pipeline.live import FeedStopped
from ..sinks.sinkless import ChangefeedRow
from .stream import ChangefeedStream, check_texts, requested_stream


async def sample(
    services: ChangefeedServices, request: FeedRequest, count: int
) -> list[ChangefeedRow]:
    """Up to `count` messages of a feed that is not made: of its tables as of its start, or of what
    was committed above its cursor and up to `request.newest`.

    The options were checked against the feed's sink; what only that obeys changes no message, but
    for a format that is not of texts: raises SQLError 0A000.
    """
    options = parse_options(request.options, request.query)
    check_texts(options, "a sample", "for the rows as JSON")
    start_at = request.newest if options.cursor is None else options.cursor
    stream = await requested_stream(services, request, start_at, options)
    return await _first(stream, count, request.newest)


async def _first(stream: ChangefeedStream, count: int, upto: Timestamp) -> list[ChangefeedRow]:
    """The first `count` messages, or fewer where those up to `upto` are not as many.

    Raises what ends the stream before that.
    """
    found: list[ChangefeedRow] = []
    async with stream:
        # It returns behind the last row at or below: a stream's flush ends when that was taken.
        done = asyncio.create_task(stream.live.wait_until(upto))
        try:
            while len(found) < count:
                taking = asyncio.ensure_future(stream.take())
                await asyncio.wait((taking, done), return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    await asyncio.wait((taking,))
                    break
                if not (rows := taking.result()):
                    break
                found += rows
        finally:
            done.cancel()
            with suppress(asyncio.CancelledError, FeedStopped):
                await done
    return found[:count]
