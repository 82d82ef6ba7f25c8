"""Reads of a range at a timestamp: versions, and the intents that lie in the way.

An intent of the reader's own transaction is read; of another that may still commit at or below the
read's timestamp, waited for (or what `WhenLocked` says); of one that has committed but not yet
resolved it, read as the version that it is about to become; any other is ignored. Each function is
(part of) a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from ..clock import ZERO, Timestamp
from ..engine import Reader, Snapshot
from ..keys import split_version_key
from ..mvcc import (
    SLICE_ROWS,
    body_at,
    intent_on,
    newest_each,
    pausing_scan_at,
    read_at,
    take_slice,
)
from ..span import Span
from ..transaction_modes import WhenLocked
from .host import TransactionHost
from .intents_seen import PASSED, IntentsSeen, intents_seen
from .locks import LockConflict, Turn, Wish
from .record import TransactionRecord, TransactionStatus
from .steps import run_step

Row = tuple[bytes, bytes]


def read_key(
    host: TransactionHost, key: bytes, at: Timestamp, own: TransactionRecord | None
) -> bytes | None:
    """The body that a reader at `at` sees. Raises LockConflict."""
    return read_version(host, key, at, own)[0]


def read_version(
    host: TransactionHost, key: bytes, at: Timestamp, own: TransactionRecord | None
) -> tuple[bytes | None, Timestamp]:
    """Returns the result of `read_key`, and the timestamp of that version: its own write's, where
    it stands.

    A deletion is a version without a body; where there is no version at all, it is `ZERO`'s.
    """
    if own is not None and key in own.buffer.written:
        return body_at(own.buffer.written[key][1], at), own.write_timestamp
    holder = host.locks.intents.get(key)
    if holder is not None and _counts(key, holder, at, own):
        intent = intent_on(host.engine, key)
        assert intent is not None, ("the lock table names an intent that is not there", key)
        return body_at(intent.value, at), holder.write_timestamp
    found = read_at(host.engine, key, at)
    if found is None:
        return None, ZERO
    return body_at(found[1], at), found[0]


def read_versions(
    host: TransactionHost, keys: Sequence[bytes], at: Timestamp, own: TransactionRecord | None
) -> list[tuple[bytes | None, Timestamp]]:
    """Returns the result of `read_version` for each of several keys. Raises LockConflict."""
    if _touched(host, keys, own):
        return [read_version(host, key, at, own) for key in keys]
    return [
        (None, ZERO) if found is None else (body_at(found[1], at), split_version_key(found[0])[1])
        for found in newest_each(host.engine, keys, at)
    ]


def read_bodies(
    host: TransactionHost, keys: Sequence[bytes], at: Timestamp, own: TransactionRecord | None
) -> list[bytes | None]:
    """Returns the result of `read_key` for each of several keys. Raises LockConflict."""
    if _touched(host, keys, own):
        return [read_key(host, key, at, own) for key in keys]
    newest = newest_each(host.engine, keys, at)
    return [None if found is None else body_at(found[1], at) for found in newest]


def _touched(host: TransactionHost, keys: Sequence[bytes], own: TransactionRecord | None) -> bool:
    """Whether some of the keys may have more than versions."""
    if own is not None and own.buffer.written:
        return True
    return bool(host.locks.intents.among(keys))


def _counts(
    key: bytes, holder: TransactionRecord, at: Timestamp, own: TransactionRecord | None
) -> bool:
    if holder is own:
        return True
    match holder.status:
        case TransactionStatus.PENDING:
            # Where it stands in memory counts, not in the intent: it may have been moved up.
            if holder.write_timestamp <= at:
                raise LockConflict(key, holder, Wish.READ)
            return False
        case TransactionStatus.COMMITTED:
            return holder.write_timestamp <= at
        case TransactionStatus.ABORTED:
            return False


def rows_at(
    reader: Reader, span: Span, at: Timestamp, intents: IntentsSeen, *, reverse: bool = False
) -> Iterator[Row | None]:
    """The live rows of the span at `at`, those of intents replacing or hiding those below. None
    where much was passed over (`pausing_scan_at`)."""
    rows = pausing_scan_at(reader, span, at, reverse=reverse)
    if intents.span is None and not intents.buffered:
        return rows
    return merged(rows, intents.over(reader, at, reverse=reverse), reverse=reverse)


def merged(
    rows: Iterator[Row | None],
    over: Iterator[tuple[bytes, bytes | None]],
    *,
    reverse: bool = False,
) -> Iterator[Row | None]:
    """Rows, and what lies over them in the same order: another body, None for no row, or `PASSED`
    for nothing. Returns None where `rows` does, or where nothing lies over many."""
    over_key, over_body = next(over, _NO_MORE)
    for row in rows:
        if over_key is None or row is None:
            yield row
            continue
        key = row[0]
        while over_key is not None and (over_key > key if reverse else over_key < key):
            if over_body is PASSED:
                yield None
            elif over_body is not None:
                yield over_key, over_body
            over_key, over_body = next(over, _NO_MORE)
        if over_key != key or over_body is PASSED:
            yield row
            continue
        if over_body is not None:
            yield key, over_body
        over_key, over_body = next(over, _NO_MORE)
    while over_key is not None:
        if over_body is PASSED:
            yield None
        elif over_body is not None:
            yield over_key, over_body
        over_key, over_body = next(over, _NO_MORE)


_NO_MORE: tuple[None, None] = None, None


@dataclass(slots=True)
class View:
    """A span at a timestamp, held still: what a sliced read reads."""

    snapshot: Snapshot
    intents: IntentsSeen
    index: int


async def open_view(
    host: TransactionHost,
    span: Span,
    at: Timestamp,
    own: TransactionRecord | None,
    *,
    lock_timeout: float | None,
    when_locked: WhenLocked = WhenLocked.WAIT,
    after: Timestamp = ZERO,
) -> View:
    """Waits until the span is settled at `at`, and takes a view of it that is durable.

    Of intents it sees those that are not known from `after` already.

    HAZARD: the timestamp cache is raised over the whole span in the step that takes the snapshot.
    Raised slice by slice, a write at or below `at` could land ahead of the scan and be missed, or
    be read in one slice while its transaction's other write was missed in an earlier one.
    """

    def step(_: Turn | None) -> View:
        host.check_readable(span, at)
        intents = intents_seen(host, span, at, own, when_locked, after=after)
        host.span_read(span, at, own)
        return View(host.engine.snapshot(), intents, host.visible_index)

    view = await run_step(host, step, waiter=own, lock_timeout=lock_timeout)
    try:
        await host.released(view.index)
    except BaseException:
        view.snapshot.close()
        raise
    return view


async def sliced_rows(
    host: TransactionHost,
    span: Span,
    at: Timestamp,
    own: TransactionRecord | None,
    *,
    lock_timeout: float | None,
    reverse: bool = False,
    when_locked: WhenLocked = WhenLocked.WAIT,
) -> AsyncGenerator[list[Row], None]:
    """The rows of the span at `at`, in slices between which the loop does other work."""
    view = await open_view(host, span, at, own, lock_timeout=lock_timeout, when_locked=when_locked)
    with closing(view.snapshot):
        rows = rows_at(view.snapshot, span, at, view.intents, reverse=reverse)
        more = True
        while more:
            batch, more = take_slice(rows, SLICE_ROWS)
            host.check_readable(span, at)
            if batch:
                yield batch
            await asyncio.sleep(0)
        del rows  # an engine's iterator must not outlive its snapshot
        host.check_readable(span, at)
