"""The changes of a span since some time, as a reader sees them now.

For whoever holds the span's rows as of an earlier time and wants to bring them up to a later one.

    versions    a~130 "y", a~110 "x", b~120 deleted, c~90 "z"
    since 100, as seen at 140  ->  (a, "x"), (b, None), (a, "y")     later ones replace earlier ones
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import closing

from ..clock import Timestamp
from ..mvcc import body_at, changes_between, take_slice
from ..span import Span
from .host import TransactionHost
from .intents_seen import PASSED
from .reading import open_view
from .record import TransactionRecord

Change = tuple[bytes, bytes | None]
"""A key, and the body of its live value; None where there is none any more."""


async def sliced_changes(
    host: TransactionHost,
    span: Span,
    after: Timestamp,
    own: TransactionRecord,
    track_read: Callable[[Span], None],
    lock_timeout: float | None,
) -> AsyncGenerator[list[Change], None]:
    """Yields, in slices, the changes that turn the span's rows as of `after` into those that `own`
    sees.

    It counts as a read of the whole span at the transaction's read timestamp, and costs what was
    written since `after`. Its own writes come last; what others are about to write is waited for.
    `after` is at or below the read timestamp. Raises BatchTimestampBeforeGC, also at the end, where
    versions above `after` may have been collected.
    """
    track_read(span)
    at = own.read_timestamp
    assert after <= at, (after, at)
    oldest = Timestamp(after + 1)  # at the threshold itself nothing is lost
    host.check_readable(span, oldest)
    view = await open_view(host, span, at, own, lock_timeout=lock_timeout, after=after)
    with closing(view.snapshot):
        for changes in changes_between(view.snapshot, span, after, at):
            if changes:
                bodies = [body_at(value, at) for value in changes.values]
                yield list(zip(changes.keys, bodies, strict=True))
            await asyncio.sleep(0)
        host.check_readable(span, oldest)
        put = view.intents.over(view.snapshot, at)
        over = (None if body is PASSED else (key, body) for key, body in put)
        more = True
        while more:
            found, more = take_slice(over)
            if found:
                yield found
            await asyncio.sleep(0)
        del put, over  # an engine's iterator must not outlive its snapshot
