"""The coordinator: an explicit transaction, as its client drives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import islice
from typing import TypeVar

from .. import keys as key_format
from ..clock import MAX_TIMESTAMP, Timestamp
from ..command import AbortIntent, LogicalOp, WriteIntent
from ..errors import DeadlineExceeded, TransactionAborted, TransactionState
from ..mvcc import LIVE, SLICE_ROWS, TOMBSTONE, newest_version
from ..span import Span
from .host import TransactionHost
from .limits import COMMANDS_AHEAD_MAX, check_sizes, slices
from .locks import Turn
from .reading import Row, overlay, read_key, read_version, rows_at, sliced_rows
from .record import TransactionRecord, TransactionStatus
from .refresh import refresh
from .resolution import abort, commit
from .steps import run_step

T = TypeVar("T")

ROLLED_BACK = "the transaction was rolled back"


class Transaction:
    """A serializable transaction: it reads at one timestamp and commits at one.

    Writes are durable intents from the statement on, under locks that last to the end. The write
    timestamp moves up when a write would land under somebody's read, below a newer version, or at
    or below the closed timestamp; commit then proves that what was read still holds (`refresh`),
    or raises RetryableTransaction. A read-only transaction reads only, and takes no locks.

    After any error of its own the transaction is for rolling back; a `commit` that raises has done
    that already. Not for use by two tasks at a time.

    HAZARD: data read past the transaction (a snapshot at its read timestamp) is not refreshed
    unless `track_read` says so.
    """

    def __init__(
        self,
        host: TransactionHost,
        record: TransactionRecord,
        *,
        read_only: bool,
        lock_timeout: float | None,
    ) -> None:
        self._host = host
        self._record = record
        self._acknowledged = False
        self._read_only = read_only
        self._lock_timeout = lock_timeout
        self._write_count = 0
        self.commit_checks: list[Callable[[], None]] = []
        """Run first thing by `commit`: one that raises rolls the transaction back. This is how the
        layers above make sure of what must hold of the transaction as a whole."""

    @property
    def id(self) -> bytes:
        return self._record.id

    @property
    def read_timestamp(self) -> Timestamp:
        return self._record.read_timestamp

    @property
    def write_timestamp(self) -> Timestamp:
        """Where the transaction would commit; its commit timestamp once it has."""
        return self._record.write_timestamp

    @property
    def read_only(self) -> bool:
        return self._read_only

    @property
    def state(self) -> TransactionStatus:
        return self._record.status

    @property
    def write_count(self) -> int:
        """How many values and deletions were written, a key counted each time."""
        return self._write_count

    async def started(self) -> None:
        """The read timestamp is drawn at once, where the store is near: see `access`."""

    async def get(self, key: bytes, *, for_update: bool = False) -> bytes | None:
        """The body of a key's live value. `for_update` locks the key, and sees its newest value."""
        if for_update:
            await self._lock(key)
        return await self._read_point(key, read_key)

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        """The body of a key's live value, and the timestamp of that version.

        For a value that the transaction itself wrote, that is where it would commit as it stands.
        """
        return await self._read_point(key, read_version)

    async def scan(
        self, span: Span, *, limit: int | None = None, reverse: bool = False
    ) -> list[Row]:
        """The first `limit` live rows of the span, in key order or against it."""
        host, record = self._host, self._record
        at_once = SLICE_ROWS if limit is None else min(limit, SLICE_ROWS)

        def step(_: Turn | None) -> tuple[list[Row], int]:
            self._check_active()
            at = record.read_timestamp
            host.check_readable(at)
            over = overlay(host, span, at, record)
            host.span_read(span, at, record)
            rows = rows_at(host.engine, span, at, over, reverse=reverse)
            return list(islice(rows, at_once)), host.applied_index

        self.track_read(span)
        found, index = await self._run(step)
        if len(found) < at_once or at_once == limit:
            await host.released(index)
            return found
        found = []
        async with aclosing(self._slices(span, reverse=reverse)) as parts:
            async for rows in parts:
                found += rows
                if limit is not None and len(found) >= limit:
                    return found[:limit]
        return found

    async def scan_slices(self, span: Span) -> AsyncGenerator[list[Row], None]:
        """All live rows of the span in slices; the transaction's later writes are not seen."""
        self.track_read(span)
        async with aclosing(self._slices(span)) as parts:
            async for rows in parts:
                yield rows

    async def put(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> None:
        """Writes live values, whether there were any before or not."""
        check_sizes(keys, bodies)
        await self._write(dict(zip(keys, [LIVE + body for body in bodies], strict=True)))

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Writes deletions, whether there is anything to delete or not."""
        check_sizes(keys, ())
        await self._write(dict.fromkeys(keys, TOMBSTONE))

    def track_read(self, span: Span) -> None:
        """Counts `span` among what the transaction has read at its read timestamp."""
        self._check_active()
        if not self._read_only:
            self._record.read_spans.add_span(span)

    async def commit(
        self,
        *,
        deadline: Callable[[], Timestamp] | None = None,
        commit_called_ns: int = 0,
    ) -> Timestamp:
        """Commits, and returns the commit timestamp when that is durable.

        Without writes that is the read timestamp. Raises RetryableTransaction, DeadlineExceeded
        when the commit timestamp is not below `deadline()`, and StoreClosed when the outcome will
        only be known after the next start.
        """
        self._check_active()
        host, record = self._host, self._record
        try:
            for check in self.commit_checks:
                check()
        except BaseException:
            abort(host, record, ROLLED_BACK)
            raise
        if not record.intents:
            host.check_open()
            record.status = TransactionStatus.COMMITTED
            host.locks.release_locks(record)
            host.ended(record, host.applied_index)
            self._acknowledged = True
            return record.read_timestamp
        try:
            index = await self._commit(deadline, commit_called_ns)
        except BaseException:
            if record.status is TransactionStatus.PENDING:
                abort(host, record, ROLLED_BACK)
            raise
        await host.released(index)
        self._acknowledged = True
        return record.write_timestamp

    async def rollback(self) -> None:
        """Undoes everything. Does nothing to a transaction that is rolled back already.

        Nor to one whose `commit` ended before it was known to be durable: that cannot be undone,
        and what `commit` raised must not be hidden by what is raised here.
        """
        match self._record.status:
            case TransactionStatus.PENDING:
                abort(self._host, self._record, ROLLED_BACK)
            case TransactionStatus.COMMITTED:
                if self._acknowledged:
                    raise TransactionState("the transaction is already committed")
            case TransactionStatus.ABORTED:
                pass

    async def _read_point(
        self,
        key: bytes,
        read: Callable[[TransactionHost, bytes, Timestamp, TransactionRecord | None], T],
    ) -> T:
        host, record = self._host, self._record

        def step(_: Turn | None) -> tuple[T, int]:
            self._check_active()
            at = record.read_timestamp
            host.check_readable(at)
            found = read(host, key, at, record)
            host.point_read(key, at, record)
            return found, host.applied_index

        if not self._read_only:
            record.read_spans.add_point(key)
        found, index = await self._run(step)
        await host.released(index)
        return found

    async def _commit(self, deadline: Callable[[], Timestamp] | None, commit_called_ns: int) -> int:
        host, record = self._host, self._record

        def step(_: Turn | None) -> int | None:
            self._check_active()
            at = record.write_timestamp
            if at != record.read_timestamp:
                return None  # pushed since it was refreshed
            if deadline is not None and at >= (limit := deadline()):
                raise DeadlineExceeded(at, limit)
            return commit(host, record, commit_called_ns=commit_called_ns)

        while True:
            if record.write_timestamp != record.read_timestamp:
                await refresh(host, record, record.write_timestamp)
            index = await self._run(step)
            if index is not None:
                return index

    async def _write(self, values: dict[bytes, bytes]) -> None:
        self._check_writable()
        written_before = False
        for keys, written in slices(list(values), list(values.values())):

            def step(
                turn: Turn | None, keys: list[bytes] = keys, written: list[bytes] = written
            ) -> None:
                self._write_step(keys, written, turn)

            try:
                await self._run(step)
            except BaseException:
                # Half a statement must not be committed by mistake.
                if written_before and self._record.status is TransactionStatus.PENDING:
                    abort(self._host, self._record, ROLLED_BACK)
                raise
            written_before = True
            self._write_count += len(keys)
            if len(keys) < len(values):
                await asyncio.sleep(0)
            await self._host.released(self._host.applied_index - COMMANDS_AHEAD_MAX)

    def _write_step(self, keys: list[bytes], values: list[bytes], turn: Turn | None) -> None:
        self._check_active()
        host, record = self._host, self._record
        host.locks.check_writable(keys, record, turn)
        if self._must_move(keys):
            record.move(host.clock.now())
        at = record.write_timestamp
        operations: list[LogicalOp] = []
        if record.intents:
            replaced = [key for key in keys if key in record.intents]
            if replaced:
                operations.append(AbortIntent(record.id, replaced))
        operations.append(WriteIntent(record.id, at, record.sequence + 1, keys, values))
        host.propose(operations, lowest=at)
        record.sequence += 1
        host.locks.add_intents(keys, record)
        host.closed.hold(record.id, at)

    def _must_move(self, keys: list[bytes]) -> bool:
        """Whether a write of the keys may not land at the write timestamp."""
        host, at = self._host, self._record.write_timestamp
        if at <= host.closed.closed or host.timestamp_cache.blocks(keys, at, self.id):
            return True
        length = key_format.KEYSPACE_LENGTH
        for keyspace in {key[:length] for key in keys}:
            bounds = key_format.time_index_bounds(keyspace, at, Timestamp(MAX_TIMESTAMP - 1))
            if host.engine.first(*bounds) is not None:
                break
        else:
            return False  # nothing at all was committed there since
        newest = (newest_version(host.engine, key) for key in keys)
        return any(version is not None and version > at for version in newest)

    async def _lock(self, key: bytes) -> None:
        """Takes the key, at a timestamp at which nothing newer is there."""
        host, record = self._host, self._record
        check_sizes((key,), ())
        self._check_writable()

        def step(turn: Turn | None) -> bool:
            self._check_active()
            host.locks.check_writable((key,), record, turn)
            host.locks.add_lock(key, record)
            newest = newest_version(host.engine, key)
            if newest is not None and newest > record.write_timestamp:
                record.move(host.clock.now())
            host.closed.hold(record.id, record.write_timestamp)
            return newest is not None and newest > record.read_timestamp

        if await self._run(step):
            # Reading below the newest value would only fail at commit: try to move up now.
            await refresh(host, record, record.write_timestamp)

    def _slices(self, span: Span, *, reverse: bool = False) -> AsyncGenerator[list[Row], None]:
        self._check_active()
        record = self._record
        return sliced_rows(
            self._host,
            span,
            record.read_timestamp,
            record,
            lock_timeout=self._lock_timeout,
            reverse=reverse,
        )

    async def _run(self, step: Callable[[Turn | None], T]) -> T:
        return await run_step(
            self._host, step, waiter=self._record, lock_timeout=self._lock_timeout
        )

    def _check_writable(self) -> None:
        self._check_active()
        if self._read_only:
            raise TransactionState("the transaction is read-only")

    def _check_active(self) -> None:
        match self._record.status:
            case TransactionStatus.PENDING:
                return
            case TransactionStatus.COMMITTED:
                raise TransactionState("the transaction is already committed")
            case TransactionStatus.ABORTED:
                if self._record.aborted_because == ROLLED_BACK:
                    raise TransactionState(ROLLED_BACK)
                raise TransactionAborted(self._record.aborted_because)

    def __repr__(self) -> str:
        return repr(self._record)
