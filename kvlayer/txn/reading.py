"""Reads of a range at a timestamp: versions, and the intents that lie in the way.

An intent of the reader's own transaction is read; of another that may still commit at or below the
read's timestamp, waited for (or what `WhenLocked` says); of one that has committed but not yet
resolved it, read as the version that it is about to become; any other is ignored. Each function is
(part of) a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from ..clock import Timestamp
from ..engine import Reader, Snapshot
from ..errors import LockUnavailable
from ..mvcc import SLICE_ROWS, body_at, intent_on, intents_in, read_at, scan_at
from ..span import Span
from ..transaction_modes import WhenLocked
from .host import TransactionHost
from .locks import LockConflict, Turn, Wish
from .record import TransactionRecord, TransactionStatus
from .steps import run_step

Row = tuple[bytes, bytes]

ENDED_INTENTS_MAX = 5000
"""Intents of a transaction that has ended which a view takes along: some ten milliseconds."""

SETTLE_SECONDS = 0.02
"""How often to look whether they have become fewer: some thousand do in that time."""


def read_key(
    host: TransactionHost, key: bytes, at: Timestamp, own: TransactionRecord | None
) -> bytes | None:
    """The body that a reader at `at` sees. Raises LockConflict."""
    found = read_version(host, key, at, own)
    return None if found is None else found[0]


def read_version(
    host: TransactionHost, key: bytes, at: Timestamp, own: TransactionRecord | None
) -> tuple[bytes, Timestamp] | None:
    """What `read_key` reads, and the timestamp of that version: an intent's, where it stands."""
    holder = host.locks.intents.get(key)
    if holder is not None and _counts(key, holder, at, own):
        intent = intent_on(host.engine, key)
        assert intent is not None, ("the lock table names an intent that is not there", key)
        body, ts = body_at(intent.value, at), holder.write_timestamp
    else:
        found = read_at(host.engine, key, at)
        if found is None:
            return None
        body, ts = body_at(found[1], at), found[0]
    return None if body is None else (body, ts)


def overlay(
    host: TransactionHost,
    span: Span,
    at: Timestamp,
    own: TransactionRecord | None,
    when_locked: WhenLocked = WhenLocked.WAIT,
) -> dict[bytes, bytes | None]:
    """What intents of the span put over its versions. Raises LockConflict, or LockUnavailable."""
    if not host.locks.intents:
        return {}
    over: dict[bytes, bytes | None] = {}
    for key, intent in intents_in(host.engine, span):
        holder = host.locks.intents[key]
        try:
            if _counts(key, holder, at, own):
                over[key] = body_at(intent.value, at)
        except LockConflict:
            match when_locked:
                case WhenLocked.WAIT:
                    raise
                case WhenLocked.NOWAIT:
                    raise LockUnavailable(key) from None
                case WhenLocked.SKIP:
                    over[key] = None
    return over


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
    reader: Reader,
    span: Span,
    at: Timestamp,
    over: dict[bytes, bytes | None],
    *,
    reverse: bool = False,
) -> Iterator[Row]:
    """The live rows of the span at `at`, an overlay's rows replacing or hiding those below."""
    rows = scan_at(reader, span, at, reverse=reverse)
    return _merged(rows, over, reverse=reverse) if over else rows


def _merged(
    rows: Iterator[Row], over: dict[bytes, bytes | None], *, reverse: bool
) -> Iterator[Row]:
    pending = sorted(over, reverse=not reverse)  # the next one last
    for key, body in rows:
        while pending and (pending[-1] > key if reverse else pending[-1] < key):
            yield from _live(pending.pop(), over)
        if pending and pending[-1] == key:
            yield from _live(pending.pop(), over)
        else:
            yield key, body
    while pending:
        yield from _live(pending.pop(), over)


def _live(key: bytes, over: dict[bytes, bytes | None]) -> Iterator[Row]:
    body = over[key]
    if body is not None:
        yield key, body


@dataclass(slots=True)
class View:
    """A span at a timestamp, held still: what a sliced read reads."""

    snapshot: Snapshot
    over: dict[bytes, bytes | None]
    index: int


async def open_view(
    host: TransactionHost,
    span: Span,
    at: Timestamp,
    own: TransactionRecord | None,
    *,
    lock_timeout: float | None,
    when_locked: WhenLocked = WhenLocked.WAIT,
) -> View:
    """Waits until the span is settled at `at`, and takes a view of it that is durable.

    HAZARD: the timestamp cache is raised over the whole span in the step that takes the snapshot.
    Raised slice by slice, a write at or below `at` could land ahead of the scan and be missed, or
    be read in one slice while its transaction's other write was missed in an earlier one.
    """

    def step(_: Turn | None) -> View:
        host.check_readable(span, at)
        over = overlay(host, span, at, own, when_locked)
        host.span_read(span, at, own)
        return View(host.engine.snapshot(), over, host.applied_index)

    await _let_settle(host, span)
    view = await run_step(host, step, waiter=own, lock_timeout=lock_timeout)
    try:
        await host.released(view.index)
    except BaseException:
        view.snapshot.close()
        raise
    return view


async def _let_settle(host: TransactionHost, span: Span) -> None:
    """Returns when few intents of a transaction that has ended are left in the span.

    They are about to become versions. To gather a million of them would hold the loop for seconds,
    and every row would be read twice. Where nothing moves (the disk is full) nobody waits.
    """
    left = 0
    while (count := _ended_intents(host, span)) > ENDED_INTENTS_MAX and count != left:
        left = count
        await asyncio.sleep(SETTLE_SECONDS)


def _ended_intents(host: TransactionHost, span: Span) -> int:
    """How many the transaction has whose intents have stood longest, if it has ended and the span
    holds some: one load after another comes to stand first."""
    holder = next(iter(host.locks.intents.values()), None)
    if holder is None or holder.status is TransactionStatus.PENDING:
        return 0
    first = next(iter(holder.intents), None)
    return len(holder.intents) if first is not None and span.contains(first) else 0


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
        rows = rows_at(view.snapshot, span, at, view.over, reverse=reverse)
        while batch := list(islice(rows, SLICE_ROWS)):
            host.check_readable(span, at)
            yield batch
            await asyncio.sleep(0)
        del rows  # an engine's iterator must not outlive its snapshot
        host.check_readable(span, at)
