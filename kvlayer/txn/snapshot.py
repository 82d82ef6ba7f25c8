"""Reads at a timestamp outside any transaction: scans, exports, versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing

from ..clock import Timestamp
from ..engine import Snapshot
from ..mvcc import body_of, changes_between, intents_in
from ..span import Span
from .host import TransactionHost
from .intents_seen import held_part
from .locks import LockConflict, Turn, Wish
from .reading import Row, read_version, sliced_rows
from .record import TransactionStatus
from .steps import run_step

Version = tuple[bytes, Timestamp, bytes | None]


class SnapshotReader:
    """Reads as of `at`, however long reading takes.

    Each read waits for the transactions that may yet commit at or below `at` in what it reads,
    and makes all others commit above; so two reads of one reader agree, whenever they are made.
    """

    def __init__(
        self, host: TransactionHost, at: Timestamp, *, lock_timeout: float | None = None
    ) -> None:
        self._host = host
        self._lock_timeout = lock_timeout
        self.at = at

    async def get(self, key: bytes) -> bytes | None:
        """The body of a key's live value at `at`."""
        return (await self._read(key))[0]

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        """The body of a key's live value at `at`, and the timestamp of that version."""
        body, ts = await self._read(key)
        return None if body is None else (body, ts)

    async def _read(self, key: bytes) -> tuple[bytes | None, Timestamp]:
        host, at = self._host, self.at

        def step(_: Turn | None) -> tuple[bytes | None, Timestamp, int | None]:
            host.check_readable(key, at)
            body, ts = read_version(host, key, at, None)
            host.point_read(key, at, None)
            return body, ts, host.undurable(ts)

        body, ts, index = await run_step(host, step, waiter=None, lock_timeout=self._lock_timeout)
        if index is not None:
            await host.released(index)
        return body, ts

    def scan_slices(self, span: Span) -> AsyncGenerator[list[Row], None]:
        """The live rows of the span in key order, in slices. Raises BatchTimestampBeforeGC also
        at the end, when versions may have been collected meanwhile."""
        return sliced_rows(self._host, span, self.at, None, lock_timeout=self._lock_timeout)

    async def scan(self, span: Span) -> list[Row]:
        """All live rows of a span that is known to be small."""
        return [row async for rows in self.scan_slices(span) for row in rows]


async def sliced_versions(
    host: TransactionHost, span: Span, after: Timestamp, upto: Timestamp
) -> AsyncGenerator[list[Version], None]:
    """Every version in `(after, upto]`, deletions with a body of None, in slices of one keyspace.

    Within a keyspace in order of time, so per key from oldest to newest. Waits for transactions
    that may yet commit in the interval.
    """

    oldest = Timestamp(after + 1)  # the start is exclusive: at the threshold itself nothing is lost

    def step(_: Turn | None) -> tuple[Snapshot, int]:
        host.check_readable(span, oldest)
        _check_settled(host, span, upto)
        host.span_read(span, upto, None)
        return host.engine.snapshot(), host.visible_index

    snapshot, index = await run_step(host, step, waiter=None, lock_timeout=None)
    with closing(snapshot):
        await host.released(index)
        for changes in changes_between(snapshot, span, after, upto):
            host.check_readable(span, oldest)
            if changes:
                bodies = [body_of(value) for value in changes.values]
                yield list(zip(changes.keys, changes.timestamps, bodies, strict=True))
            await asyncio.sleep(0)
        host.check_readable(span, oldest)


def _check_settled(host: TransactionHost, span: Span, upto: Timestamp) -> None:
    """Raises LockConflict while the span has an intent that is or becomes a version by `upto`."""
    holders = [
        holder
        for holder in host.locks.intents.holders
        if holder.status is not TransactionStatus.ABORTED and holder.write_timestamp <= upto
    ]
    held = held_part(span, holders)
    if held is None:
        return
    for key, _ in intents_in(host.engine, held):
        holder = host.locks.intents[key]
        if holder in holders:
            raise LockConflict(key, holder, Wish.READ)
