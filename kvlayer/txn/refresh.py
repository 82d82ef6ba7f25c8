"""Refresh: proof that a transaction's reads, made at one timestamp, hold at a later one."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from contextlib import closing

from ..clock import Timestamp
from ..engine import Reader
from ..errors import RetryableTransaction
from ..mvcc import SLICE_ROWS, intents_in, read_at, time_entries
from ..span import Span
from .host import TransactionHost
from .intents_seen import held_part
from .record import TransactionRecord, TransactionStatus


async def refresh(host: TransactionHost, record: TransactionRecord, upto: Timestamp) -> None:
    """Raises the transaction's read timestamp to `upto`.

    Raises RetryableTransaction when another transaction has, or may yet have, a version in
    `(read timestamp, upto]` of anything that was read.

    First, in one step, the timestamp cache is raised over all that was read: from then on nothing
    new lands at or below `upto`. What is there already is either a version, which stays to be
    found however long the search takes, or an intent, which is looked for in that same step.
    """
    after, spans = record.read_timestamp, record.read_spans
    _check_readable(host, record)
    for key in spans.points:
        host.point_read(key, upto, record)
    for span in spans.spans:
        host.span_read(span, upto, record)
    _check_intents(host, record, upto)
    for key in spans.points:
        found = read_at(host.engine, key, upto)
        if found is not None and found[0] > after:
            raise _changed(key)
    if spans.spans and not _unchanged_at_once(host.engine, record, upto):
        await _check_versions(host, record, upto)
        # Versions that lay in the interval may have been collected while the search went on.
        _check_readable(host, record)
    record.read_timestamp = upto


def _check_readable(host: TransactionHost, record: TransactionRecord) -> None:
    at = record.read_timestamp
    for key in record.read_spans.points:
        host.check_readable(key, at)
    for span in record.read_spans.spans:
        host.check_readable(span, at)


def _check_intents(host: TransactionHost, record: TransactionRecord, upto: Timestamp) -> None:
    others = [
        holder
        for holder in host.locks.intents.holders
        if holder is not record
        and holder.status is not TransactionStatus.ABORTED
        and record.read_timestamp < holder.write_timestamp <= upto
    ]
    if not others:
        return
    intents = host.locks.intents
    for key in record.read_spans.points:
        if intents.get(key) in others:
            raise _changed(key)
    for span in record.read_spans.spans:
        held = held_part(span, others)
        if held is not None:
            for key, _ in intents_in(host.engine, held):
                if intents[key] in others:
                    raise _changed(key)


def _unchanged_at_once(reader: Reader, record: TransactionRecord, upto: Timestamp) -> bool:
    """Whether the spans are unchanged; False also when there is too much to look at in a step."""
    budget = SLICE_ROWS
    for span in record.read_spans.spans:
        for entry, _ in time_entries(reader, span, record.read_timestamp, upto):
            _refuse_within(span, entry)
            budget -= len(entry)
            if budget <= 0:
                return False
    return True


async def _check_versions(
    host: TransactionHost, record: TransactionRecord, upto: Timestamp
) -> None:
    after, seen = record.read_timestamp, 0
    with closing(host.engine.snapshot()) as snapshot:
        for span in list(record.read_spans.spans):
            for entry, _ in time_entries(snapshot, span, after, upto):
                _refuse_within(span, entry)
                seen += len(entry)
                if seen >= SLICE_ROWS:
                    await asyncio.sleep(0)
                    seen = 0


def _refuse_within(span: Span, written: list[bytes]) -> None:
    """Raises RetryableTransaction where one of the ascending keys `written` is in the span."""
    place = bisect_left(written, span.start)
    if place < len(written) and span.contains(written[place]):
        raise _changed(written[place])


def _changed(key: bytes) -> RetryableTransaction:
    return RetryableTransaction(
        f"the transaction's timestamp moved, and key {key.hex()} that it had read has changed since"
    )
