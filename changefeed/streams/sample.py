"""Samples: some messages as a feed would send them, from a stream that ends behind them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ...kvlayer.clock import Timestamp
from ..pipeline.live import FeedStopped
from ..sinks.sinkless import ChangefeedRow
from .stream import ChangefeedStream


async def sample(stream: ChangefeedStream, count: int, upto: Timestamp) -> list[ChangefeedRow]:
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
