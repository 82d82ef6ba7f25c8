"""The effect of intents, and of its own buffered writes, on one reader: decided by transaction,
read with the rows.

Intents may be a million (a load leaves that many behind its commit, for as long as they take to
become versions); the transactions that hold them are few. So a read decides in its first step what
each transaction's intents are to it, and comes upon the intents themselves where it reads:

    holders     A committed at 90, B pending at 80, C pending at 130, D aborted
    at 100      A is seen; B is waited for (or hidden); C and D are as if they were not there
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from ..clock import ZERO, Timestamp
from ..engine import Reader
from ..errors import LockUnavailable
from ..mvcc import body_at, intents_in, run_of_intents
from ..span import Span
from ..transaction_modes import WhenLocked
from .host import TransactionHost
from .locks import LockConflict, Wish
from .record import TransactionRecord, TransactionStatus

RUN_INTENTS: Final = 128
"""Intents that are read at a time: a snapshot is one iterator, which would go back and forth
between them and the versions for each row."""

PASSED: Final = b"a run of intents has ended"
"""This object itself, for no body: whoever reads in slices ends one, for an intent costs what a few
rows do, and most may be nothing to the reader."""

WALKED_INTENTS_MAX: Final = 1000
"""So many keys of a transaction are looked through in memory; the engine finds the span's own
among more."""


@dataclass(frozen=True, slots=True)
class IntentsSeen:
    """Ids of transactions whose intents a reader takes for versions, and of those whose keys it
    passes over. Any other's are as if they were not there.

    `span` is what was asked about from its first intent to its last, None where it has none:
    around those there may be a million deletions, which only a bounded iterator, no snapshot's,
    steps over well.
    It holds of the state of the step that made it: whoever reads on later reads a snapshot of it.
    `buffered` are the reader's own writes in the span that are no intents, with their headers.
    """

    span: Span | None = None
    seen: frozenset[bytes] = frozenset()
    hidden: frozenset[bytes] = frozenset()
    buffered: Sequence[tuple[bytes, bytes]] = ()

    def over(
        self, reader: Reader, at: Timestamp, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """Yields what is put over the span's versions: bodies, or None for no row. `PASSED` at a
        key says that a run of intents ends there, and puts nothing there."""
        intents = self._intents_over(reader, at, reverse=reverse)
        if not self.buffered:
            return intents
        ordered = reversed(self.buffered) if reverse else self.buffered
        buffered = ((key, body_at(value, at)) for key, value in ordered)
        return heapq.merge(intents, buffered, key=itemgetter(0), reverse=reverse)

    def _intents_over(
        self, reader: Reader, at: Timestamp, *, reverse: bool
    ) -> Iterator[tuple[bytes, bytes | None]]:
        rest, seen, hidden = self.span, self.seen, self.hidden
        while rest is not None:
            run, more = run_of_intents(reader, rest, RUN_INTENTS, reverse=reverse)
            for key, intent in run:
                if intent.transaction_id in seen:
                    yield key, body_at(intent.value, at)
                elif intent.transaction_id in hidden:
                    yield key, None
            if more:
                yield run[-1][0], PASSED
            rest = _behind(rest, run[-1][0], reverse=reverse) if more else None


NONE_SEEN: Final = IntentsSeen()


def intents_seen(
    host: TransactionHost,
    span: Span,
    at: Timestamp,
    own: TransactionRecord | None,
    when_locked: WhenLocked = WhenLocked.WAIT,
    *,
    after: Timestamp = ZERO,
) -> IntentsSeen:
    """Part of a step. What others have committed at or below `after` the reader knows already.

    Raises LockConflict, or LockUnavailable, where the span has an intent that may still become a
    version at or below `at`.
    """
    buffered = own.buffer.within(span) if own is not None else ()
    if not host.locks.intents.holders:
        return IntentsSeen(buffered=buffered) if buffered else NONE_SEEN
    seen: list[TransactionRecord] = []
    open_: list[TransactionRecord] = []
    for holder in host.locks.intents.holders:
        if holder.intents.held_in(span) is None:
            continue
        if holder is own:
            seen.append(holder)
        elif holder.write_timestamp <= at:
            if holder.status is TransactionStatus.COMMITTED:
                if holder.write_timestamp > after:
                    seen.append(holder)
            elif holder.status is TransactionStatus.PENDING:
                # Where it stands in memory counts, not in its intents: it may have been moved up.
                open_.append(holder)
    if open_ and when_locked is not WhenLocked.SKIP:
        _check_none_of(host, span, open_, when_locked)
    held = held_part(span, [*seen, *open_])
    first = None if held is None else next(intents_in(host.engine, held), None)
    if held is None or first is None:
        return IntentsSeen(buffered=buffered)
    last = next(intents_in(host.engine, held, reverse=True))
    return IntentsSeen(
        Span(first[0], last[0] + b"\x00"),
        frozenset(holder.id for holder in seen),
        frozenset(holder.id for holder in open_),
        buffered,
    )


def held_part(span: Span, holders: Collection[TransactionRecord]) -> Span | None:
    """The part of a span in which intents of these transactions may lie; None where none does."""
    parts = [part for holder in holders if (part := holder.intents.held_in(span)) is not None]
    if not parts:
        return None
    return Span(min(part.start for part in parts), max(part.end for part in parts))


def _check_none_of(
    host: TransactionHost,
    span: Span,
    holders: Collection[TransactionRecord],
    when_locked: WhenLocked,
) -> None:
    """Raises LockConflict or LockUnavailable when the span has an intent of one of the holders."""
    met = intent_of(host, span, holders)
    if met is None:
        return
    if when_locked is WhenLocked.NOWAIT:
        raise LockUnavailable(met)
    raise LockConflict(met, host.locks.intents[met], Wish.READ)


def intent_of(
    host: TransactionHost, span: Span, holders: Collection[TransactionRecord]
) -> bytes | None:
    """The key of the span's last intent of one of the holders. Intents are mostly resolved in key
    order, so whoever waits for the last waits once."""
    intents = host.locks.intents
    if sum(len(holder.intents) for holder in holders) <= WALKED_INTENTS_MAX:
        held = (key for holder in holders for key in holder.intents)
        return max(filter(span.contains, held), default=None)
    part = held_part(span, holders)
    found = () if part is None else intents_in(host.engine, part, reverse=True)
    return next((key for key, _ in found if intents[key] in holders), None)


def _behind(span: Span, key: bytes, *, reverse: bool) -> Span | None:
    start, end = (span.start, key) if reverse else (key + b"\x00", span.end)
    return Span(start, end) if start < end else None
