"""Looking for many keys at once, most of which are likely to be new."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import TransactionAborted
from ..keys import VERSION
from ..span import Span
from .host import TransactionHost
from .locks import Turn
from .reading import read_key
from .record import TransactionRecord, TransactionStatus
from .steps import run_step

KEYS_MAX = 128
"""Keys that one step looks at: one to three milliseconds when each of them must be read."""

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
    for start in range(0, len(keys), KEYS_MAX):
        portion = keys[start : start + KEYS_MAX]
        span = Span(min(portion), max(portion) + b"\x00")
        if tracked:
            record.read_spans.add_span(span)

        def step(
            _: Turn | None, portion: Sequence[bytes] = portion, span: Span = span
        ) -> tuple[int | None, int]:
            if record.status is not TransactionStatus.PENDING:
                raise TransactionAborted(record.aborted_because)  # while it waited
            host.check_readable(span, record.read_timestamp)
            found = _look(host, record, portion)
            host.span_read(span, record.read_timestamp, record)
            return found, host.visible_index

        found, index = await run_step(host, step, waiter=record, lock_timeout=lock_timeout)
        await host.released(index)
        if found is not None:
            return start + found
    return None


def _look(host: TransactionHost, record: TransactionRecord, keys: Sequence[bytes]) -> int | None:
    """Part of a step. Raises LockConflict."""
    low, high = VERSION + min(keys), VERSION + max(keys) + _BEHIND_VERSIONS
    intents = host.locks.intents
    own = record.buffer.written
    written = not (intents.keys().isdisjoint(keys) and own.keys().isdisjoint(keys))
    if not written and host.engine.first(low, high) is None:
        return None
    at = record.read_timestamp
    for index, key in enumerate(keys):
        if read_key(host, key, at, record) is not None:
            return index
    return None
