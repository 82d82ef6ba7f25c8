"""Looking for many keys at once, most of which are likely to be new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..errors import TransactionAborted
from ..keys import VERSION
from ..span import Span
from .host import TransactionHost
from .locks import Turn
from .reading import read_bodies
from .record import TransactionRecord, TransactionStatus
from .steps import run_step

KEYS_MAX = 128
"""Keys that one step looks for where it need not read any."""
READ_MAX = 32
"""Keys that one step reads, of those: each takes 20 to 90 µs."""

_BEHIND_VERSIONS = b"\xff" * 8


async def first_existing(
    host: TransactionHost,
    record: TransactionRecord,
    keys: Sequence[bytes],
    *,
    tracked: bool,
    lock_timeout: float | None,
) -> int | None:
    """The index of one of the keys that has a live value for the transaction, or None.

    Costs one seek for each KEYS_MAX keys between whose least and greatest there is no version, and
    counts as a read of all that lies between them.
    """
    if tracked and keys:
        record.read_spans.add_span(_span(keys))
    start = 0
    while start < len(keys):
        portion = keys[start : start + KEYS_MAX]
        span = _span(portion)

        def step(
            _: Turn | None, portion: Sequence[bytes] = portion, span: Span = span
        ) -> tuple[int | None, int, int]:
            if record.status is not TransactionStatus.PENDING:
                raise TransactionAborted(record.aborted_because)  # while it waited
            host.check_readable(span, record.read_timestamp)
            found, looked = _look(host, record, portion)
            host.span_read(span, record.read_timestamp, record)
            return found, looked, host.visible_index

        found, looked, index = await run_step(host, step, waiter=record, lock_timeout=lock_timeout)
        await host.released(index)
        if found is not None:
            return start + found
        start += looked
        if looked < len(portion):
            await asyncio.sleep(0)
    return None


def _span(keys: Sequence[bytes]) -> Span:
    return Span(min(keys), max(keys) + b"\x00")


def _look(
    host: TransactionHost, record: TransactionRecord, keys: Sequence[bytes]
) -> tuple[int | None, int]:
    """Returns the place of the first key that has a live value, and how many keys were looked at.
    Part of a step. Raises LockConflict."""
    low, high = VERSION + min(keys), VERSION + max(keys) + _BEHIND_VERSIONS
    own = record.buffer.written
    written = host.locks.intents.among(keys) or not own.keys().isdisjoint(keys)
    if not written and host.engine.first(low, high) is None:
        return None, len(keys)
    some = keys[:READ_MAX]
    bodies = read_bodies(host, some, record.read_timestamp, record)
    live = (index for index, body in enumerate(bodies) if body is not None)
    return next(live, None), len(some)
