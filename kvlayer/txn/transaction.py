"""The coordinator: an explicit transaction, as its client drives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, TypeVar

from ..clock import Timestamp
from ..engine import EngineStall
from ..errors import (
    DeadlineExceeded,
    TakesWaiting,
    TransactionAborted,
    TransactionState,
    WriteConflict,
)
from ..keys import LOCK_KIND, PROTECTION_KIND
from ..mvcc import LIVE, SLICE_ROWS, TOMBSTONE, take_slice
from ..savepoint import Savepoint, marks
from ..span import Span, prefix_end
from ..transaction_modes import Isolation, LockMode, Priority, WhenLocked
from .buffer import BUFFER_BYTES, cost
from .changes import Change, sliced_changes
from .existing import first_existing
from .host import TransactionHost
from .intents_seen import intents_seen
from .limits import COMMANDS_AHEAD_MAX, check_sizes, slices
from .locking import lock_keys
from .locks import LockConflict, Turn
from .reading import Row, read_bodies, read_version, read_versions, rows_at, sliced_rows
from .record import COMMITTED, PENDING, TransactionRecord, TransactionStatus
from .refresh import refresh
from .resolution import abort, commit, free_locks
from .rewind import roll_back_to
from .steps import run_step
from .writing import buffer_step, hold_key, insert_step, settle, spill_step, write_step

T = TypeVar("T")

_BEHIND_PROTECTIONS = prefix_end(PROTECTION_KIND)
ROLLED_BACK = "the transaction was rolled back"

PORTION_KEYS = 4_096
"""Keys of a statement that are looked at in one step of the loop."""


class Transaction:
    """A transaction: it reads at one timestamp and commits at one.

    Writes are buffered in memory, under locks that last to the end, and become versions with the
    commit, in one entry of the log; those that outgrow the buffer are durable intents from the
    statement on. The write timestamp moves up when a write would land under somebody's read, below
    a newer version, or at or below the closed timestamp: of what is buffered, at the commit. A
    read-only transaction reads only, and takes no locks.

    How isolated it is shows in two places. A SERIALIZABLE transaction tracks what it reads, and its
    commit proves that all of it still holds at the commit timestamp (`refresh`), or raises
    RetryableTransaction. The weaker ones track only what they are told to (`tracking`), commit
    wherever their writes have come to stand, and raise WriteConflict when they write or lock a key
    that has a version newer than what they read. Under READ COMMITTED the layer above begins each
    statement with `begin_statement`, and answers that conflict with `look_again`.

    After any error of its own the transaction is for rolling back, whole or to a savepoint; a
    `commit` that raises has done that already. Not for use by two tasks at a time.

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
        assert record.read_timestamp <= record.write_timestamp, record
        self._host = host
        self._record = record
        self._acknowledged = False
        self._read_only = read_only
        self._tracks = record.isolation is Isolation.SERIALIZABLE
        self._half_written = False  # a statement failed between two of its commands
        self._write_count = 0
        self.lock_timeout = lock_timeout
        """Seconds that each wait may take; None for the store's setting."""
        self.writes_wait = True
        """False where a write is to be one step, or to raise TakesWaiting and have written nothing:
        who left it at a wait behind its step, to write again, would meet what it wrote."""
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
        """The timestamp at which the transaction would commit; its commit timestamp once it has."""
        return self._record.write_timestamp

    @property
    def read_only(self) -> bool:
        return self._read_only

    @property
    def state(self) -> TransactionStatus:
        return self._record.status

    @property
    def isolation(self) -> Isolation:
        return self._record.isolation

    @property
    def priority(self) -> Priority:
        return self._record.priority

    @property
    def untouched(self) -> bool:
        """Whether it holds nothing, neither intents nor locks, and has tracked no read.

        What it has buffered it has locked.
        """
        record = self._record
        return not (record.intents or record.locks or record.shares or record.read_spans)

    @property
    def write_count(self) -> int:
        """The number of values and deletions that were written, a key counted each time."""
        return self._write_count

    def check_running(self) -> None:
        """Raises KVError once it has ended, as far as that is known without asking."""
        self._check_active()

    async def started(self) -> None:
        """The read timestamp is drawn at once, where the store is near: see `access`."""

    async def get(self, key: bytes, *, for_update: bool = False) -> bytes | None:
        """The body of a key's live value. `for_update` locks the key, and sees its newest value."""
        if for_update:
            await self.lock((key,))
        return (await self._read_point(key))[0]

    async def get_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The body of each key's live value, all read in one step."""
        host, record = self._host, self._record

        def step(_: Turn | None) -> tuple[list[bytes | None], int]:
            self._check_active()
            at = record.read_timestamp
            for key in keys if at <= host.greatest_threshold else ():
                host.check_readable(key, at)
            index = 0
            if host.all_durable:
                bodies = read_bodies(host, keys, at, record)
            else:
                found = read_versions(host, keys, at, record)
                bodies = [body for body, _ in found]
                index = max((host.undurable(ts) or 0 for _, ts in found), default=0)
            host.points_read(keys, at, record)
            return bodies, index

        if self._tracks and not self._read_only:
            for key in keys:
                record.read_spans.add_point(key)
        bodies, index = await self._run(step)
        if index:
            await host.released(index)
        return bodies

    async def lock(
        self,
        keys: Sequence[bytes],
        *,
        mode: LockMode = LockMode.EXCLUSIVE,
        when_locked: WhenLocked = WhenLocked.WAIT,
    ) -> list[bytes]:
        """Locks the keys in turn, whether anything is there or not, and returns those it got.

        What is read of them from then on is their newest value: a serializable transaction moves
        up to it, if what it read before still holds there; the others raise WriteConflict. Raises
        LockUnavailable where it may not wait.
        """
        check_sizes(keys, ())
        self._check_writable()
        return await lock_keys(
            self._host, self._record, keys, mode, when_locked, self._run, self._check_active
        )

    async def unlock(self, keys: Sequence[bytes], *, mode: LockMode = LockMode.EXCLUSIVE) -> None:
        """Lets go of keys that it locked in that mode, before its end: keys of `LOCK_KIND` alone,
        for what a transaction does with rows rests on their locks."""
        self._check_active()
        for key in keys:
            assert key[:1] == LOCK_KIND, key
            self._host.locks.release_lock(key, self._record, mode)

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        """The body of a key's live value, and the timestamp of that version.

        For a value that the transaction itself wrote, that is where it would commit as it stands.
        """
        body, ts = await self._read_point(key)
        return None if body is None else (body, ts)

    async def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        when_locked: WhenLocked = WhenLocked.WAIT,
    ) -> list[Row]:
        """The first `limit` live rows of the span, in key order or against it.

        `when_locked` says what becomes of rows that another transaction is about to change.
        """
        host, record = self._host, self._record
        at_once = SLICE_ROWS if limit is None else min(limit, SLICE_ROWS)

        def step(_: Turn | None) -> tuple[list[Row], bool, int]:
            self._check_active()
            at = record.read_timestamp
            host.check_readable(span, at)
            intents = intents_seen(host, span, at, record, when_locked)
            host.span_read(span, at, record)
            rows = rows_at(host.engine, span, at, intents, reverse=reverse)
            return *take_slice(rows, at_once), host.visible_index

        self.track_read(span)
        found, more, index = await self._run(step)
        if not more or len(found) == limit:
            await host.released(index)
            return found
        found = []
        parts = self._slices(span, reverse=reverse, when_locked=when_locked)
        async with aclosing(parts):
            async for rows in parts:
                found += rows
                if limit is not None and len(found) >= limit:
                    return found[:limit]
        return found

    async def scan_slices(
        self, span: Span, *, when_locked: WhenLocked = WhenLocked.WAIT
    ) -> AsyncGenerator[list[Row], None]:
        """All live rows of the span in slices; the transaction's later writes are not seen."""
        self.track_read(span)
        parts = self._slices(span, when_locked=when_locked)
        async with aclosing(parts):
            async for rows in parts:
                yield rows

    def changed_slices(self, span: Span, after: Timestamp) -> AsyncGenerator[list[Change], None]:
        """Yields the changes that turn the span's rows as of `after` into those that the
        transaction sees now."""
        timeout = self.lock_timeout
        return sliced_changes(self._host, span, after, self._record, self.track_read, timeout)

    async def insert(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> bool:
        """Writes live values to keys that have none, in one step: see `access.Transaction`."""
        check_sizes(keys, bodies)
        self._check_writable()
        self._host.check_open()
        values = dict(zip(keys, [LIVE + body for body in bodies], strict=True))
        if not self._bufferable(values) or not insert_step(self._host, self._record, values):
            return False
        if self._tracks:
            for key in keys:
                self._record.read_spans.add_point(key)
        self._write_count += len(keys)
        return True

    async def put(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> None:
        """Writes live values, whether there were any before or not."""
        assert len(keys) == len(bodies), (len(keys), len(bodies))
        self._check_writable()
        await _check_sizes(keys, bodies)
        for start in range(0, len(keys), PORTION_KEYS):
            part = slice(start, start + PORTION_KEYS)
            values = [LIVE + body for body in bodies[part]]
            await self._write(dict(zip(keys[part], values, strict=True)), begun=start > 0)

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Writes deletions, whether there is anything to delete or not."""
        self._check_writable()
        await _check_sizes(keys, ())
        for start in range(0, len(keys), PORTION_KEYS):
            values = dict.fromkeys(keys[start : start + PORTION_KEYS], TOMBSTONE)
            await self._write(values, begun=start > 0)

    def track_read(self, span: Span) -> None:
        """Counts `span` among what the transaction has read at its read timestamp."""
        self._check_active()
        if self._tracks and not self._read_only:
            self._record.read_spans.add_span(span)

    @contextmanager
    def tracking(self, enabled: bool) -> Iterator[None]:
        """Whether what is read meanwhile must still hold at the commit.

        A weakly isolated transaction tracks the reads on which an invariant rests. A locking read
        does not track what it looks at before it has the locks.
        """
        before, self._tracks = self._tracks, enabled
        try:
            yield
        finally:
            self._tracks = before

    # Statements and savepoints

    async def begin_statement(self) -> None:
        """Under READ COMMITTED, what is read from here on is read at the present."""
        host, record = self._host, self._record
        if record.isolation is not Isolation.READ_COMMITTED:
            return
        self._check_active()
        at = host.clock.now()
        record.move(at)
        if record.intents:
            host.closed.hold(record.id, at)
        if record.read_spans:
            await refresh(host, record, at)
        else:
            record.read_timestamp = at
        assert record.read_timestamp >= at, (record, at)

    async def look_again(self, savepoint: Savepoint, conflict: WriteConflict) -> Savepoint:
        """Begins anew the statement that began at `savepoint` and met `conflict`.

        The key is locked first, so that each attempt gets further than the last one. Returns the
        savepoint from which the statement begins now.
        """
        await self.rollback_to(savepoint)
        await self.release(savepoint)

        def step(turn: Turn | None) -> None:
            self._check_active()
            self._host.locks.check_lockable(conflict.key, self._record, turn, LockMode.EXCLUSIVE)
            hold_key(self._host, self._record, conflict.key, LockMode.EXCLUSIVE)

        await self._run(step)
        await self.begin_statement()
        return await self.savepoint()

    async def savepoint(self) -> Savepoint:
        """Marks this moment. It stands until it is released, or an earlier one is gone back to."""
        self._check_active()
        record = self._record
        record.sequence += 1
        assert not record.savepoints or record.savepoints[-1] < record.sequence, record.savepoints
        record.savepoints.append(record.sequence)
        record.buffer.mark(record.sequence)
        return Savepoint(
            record.sequence,
            self._write_count,
            tuple(self.commit_checks),
            marks(self.commit_checks),
        )

    async def release(self, savepoint: Savepoint) -> None:
        """Forgets the savepoint and those made since, and keeps what was done."""
        standing = self._record.savepoints
        del standing[standing.index(savepoint.sequence) :]
        self._record.buffer.release(savepoint.sequence)

    async def rollback_to(self, savepoint: Savepoint) -> None:
        """Undoes what was written and locked since. The savepoint stands; those made since do not.

        What was read stays read: a transaction that cannot be serialized is not cured by this.
        """
        self._check_active()
        record = self._record
        assert savepoint.write_count <= self._write_count, (savepoint, self._write_count)
        self._half_written = True  # until all of it is undone
        record.buffer.roll_back_to(savepoint.sequence)
        await roll_back_to(self._host, record, savepoint.sequence, self._check_active)
        del record.savepoints[record.savepoints.index(savepoint.sequence) + 1 :]
        assert record.savepoints[-1] == savepoint.sequence, (savepoint, record.savepoints)
        self._half_written = False
        self._write_count = savepoint.write_count
        self.commit_checks[:] = savepoint.checks
        for restore in savepoint.restore:
            restore()

    # The end

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
            if self._half_written:
                raise TransactionState("half of a statement cannot be committed")
            for check in self.commit_checks:
                check()
        except BaseException:
            abort(host, record, ROLLED_BACK)
            raise
        if not record.intents and not record.buffer:
            self._end_unwritten()
            return record.read_timestamp
        try:
            index = await self._commit(deadline, commit_called_ns)
        except BaseException:
            if record.status is TransactionStatus.PENDING:
                abort(host, record, ROLLED_BACK)
            raise
        assert record.status is TransactionStatus.COMMITTED, record
        assert record.read_timestamp <= record.write_timestamp, record
        await host.released(index)
        self._acknowledged = True
        return record.write_timestamp

    def commit_at_once(
        self, *, deadline: Callable[[], Timestamp], commit_called_ns: int
    ) -> tuple[Timestamp, int | None]:
        """As `commit`, within this step: its timestamp, and the entry that is to be durable before
        anybody is told; None where nothing was written.

        Raises TakesWaiting where `commit` would wait before it is applied, or fail: the transaction
        is as it was then.
        """
        self._check_active()
        host, record = self._host, self._record
        if self._half_written or self.commit_checks or record.intents or self._must_refresh():
            raise TakesWaiting
        if not record.buffer:
            self._end_unwritten()
            return record.read_timestamp, None
        host.check_open()
        try:
            settle(host, record)
            if self._must_refresh() or record.write_timestamp >= deadline():
                raise TakesWaiting
            index = commit(host, record, commit_called_ns=commit_called_ns)
        except (LockConflict, EngineStall):
            raise TakesWaiting from None
        return record.write_timestamp, index

    def _end_unwritten(self) -> None:
        """Commits what wrote nothing."""
        host, record = self._host, self._record
        host.check_open()
        record.status = TransactionStatus.COMMITTED
        free_locks(host, record)
        host.ended(record, host.applied_index)
        self._acknowledged = True

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

    async def _read_point(self, key: bytes) -> tuple[bytes | None, Timestamp]:
        host, record = self._host, self._record

        def step(_: Turn | None) -> tuple[bytes | None, Timestamp, int | None]:
            self._check_active()
            at = record.read_timestamp
            host.check_readable(key, at)
            body, ts = read_version(host, key, at, record)
            host.point_read(key, at, record)
            return body, ts, host.undurable(ts)

        if self._tracks and not self._read_only:
            record.read_spans.add_point(key)
        body, ts, index = await self._run(step)
        if index is not None:
            await host.released(index)
        return body, ts

    async def first_existing(self, keys: Sequence[bytes]) -> int | None:
        """The index of one of the keys that has a live value, or None.

        For many keys that are likely to be new: it costs one seek where no version lies between the
        least and the greatest, and counts as a read of all that lies between.
        """
        self._check_active()
        tracked, timeout = self._tracks and not self._read_only, self.lock_timeout
        return await first_existing(
            self._host, self._record, keys, tracked=tracked, lock_timeout=timeout
        )

    async def _commit(self, deadline: Callable[[], Timestamp] | None, commit_called_ns: int) -> int:
        host, record = self._host, self._record

        def step(_: Turn | None) -> int | None:
            self._check_active()
            if record.buffer:
                settle(host, record)
            at = record.write_timestamp
            assert not self._half_written, record
            if self._must_refresh():
                return None  # pushed since it was refreshed
            if deadline is not None and at >= (limit := deadline()):
                raise DeadlineExceeded(at, limit)
            return commit(host, record, commit_called_ns=commit_called_ns)

        if record.intents:
            await self._spill()  # which was interrupted
        pushed = False
        while True:
            if self._must_refresh():
                await refresh(host, record, record.write_timestamp)
                # What a first refresh looks through is a step's work. One that was pushed looks
                # through little and commits at once: of two transactions that read what the other
                # has buffered, each would push the other again in that gap, for ever.
                if not pushed:
                    await asyncio.sleep(0)
            index = await self._run(step)
            if index is not None:
                return index
            pushed = True

    def _must_refresh(self) -> bool:
        record = self._record
        if record.write_timestamp == record.read_timestamp:
            return False
        return record.isolation is Isolation.SERIALIZABLE or bool(record.read_spans)

    async def _spill(self) -> None:
        """Makes intents of everything that is buffered."""

        def step(_: Turn | None) -> None:
            self._check_active()
            spill_step(self._host, self._record)

        while self._record.buffer:
            await self._run(step)
            if self._record.buffer:
                await asyncio.sleep(0)
            await self._host.released(self._host.applied_index - COMMANDS_AHEAD_MAX)

    def _bufferable(self, values: dict[bytes, bytes]) -> bool:
        """Whether the values may be buffered and there is room; beside intents there is none."""
        bound, buffer = self._host.settings.get(BUFFER_BYTES), self._record.buffer
        if self._record.intents:
            return False
        if min(values) < _BEHIND_PROTECTIONS and any(key[:1] == PROTECTION_KIND for key in values):
            return False
        return buffer.byte_count + cost(values.keys(), values.values()) <= bound

    async def _write(self, values: dict[bytes, bytes], *, begun: bool) -> None:
        """Writes a statement's values, or a portion of them; the statement has `begun` where
        portions are written already."""
        written_before = begun
        parts: list[tuple[list[bytes], list[bytes]]]
        if self._bufferable(values):
            take, parts = buffer_step, slices(list(values), list(values.values()))
            if len(parts) > 1 and not self.writes_wait:
                raise TakesWaiting
        elif not self.writes_wait:
            raise TakesWaiting
        else:
            if self._record.buffer:
                await self._spill()
                await asyncio.sleep(0)  # each slice of it was a step's work
            assert not self._record.buffer, self._record
            take, parts = write_step, slices(list(values), list(values.values()))
        for keys, written in parts:

            def step(
                turn: Turn | None, keys: list[bytes] = keys, written: list[bytes] = written
            ) -> bool:
                self._check_active()
                return take(self._host, self._record, keys, written, turn)

            try:
                if await self._run(step) and self.writes_wait:
                    # Its reads are likely to have been of that key: better to hear of it now, when
                    # the layer above may begin anew, than at commit, which does the same.
                    await refresh(self._host, self._record, self._record.write_timestamp)
            except BaseException:
                # Half a statement must not be committed by mistake.
                if written_before and self._record.status is TransactionStatus.PENDING:
                    self._half_written = True
                    if not self._record.savepoints:
                        abort(self._host, self._record, ROLLED_BACK)
                raise
            written_before = True
            self._write_count += len(keys)
            if len(keys) < len(values):
                await asyncio.sleep(0)
            if take is write_step:  # what is buffered is no command yet
                await self._host.released(self._host.applied_index - COMMANDS_AHEAD_MAX)

    def _slices(
        self, span: Span, *, when_locked: WhenLocked, reverse: bool = False
    ) -> AsyncGenerator[list[Row], None]:
        self._check_active()
        record = self._record
        return sliced_rows(
            self._host,
            span,
            record.read_timestamp,
            record,
            lock_timeout=self.lock_timeout,
            reverse=reverse,
            when_locked=when_locked,
        )

    def _run(self, step: Callable[[Turn | None], T]) -> Coroutine[Any, Any, T]:
        return run_step(self._host, step, waiter=self._record, lock_timeout=self.lock_timeout)

    def _check_writable(self) -> None:
        self._check_active()
        if self._read_only:
            raise TransactionState("the transaction is read-only")

    def _check_active(self) -> None:
        if self._record.status is PENDING:
            return
        if self._record.status is COMMITTED:
            raise TransactionState("the transaction is already committed")
        if self._record.aborted_because == ROLLED_BACK:
            raise TransactionState(ROLLED_BACK)
        raise TransactionAborted(self._record.aborted_because)

    def __repr__(self) -> str:
        return repr(self._record)


async def _check_sizes(keys: Sequence[bytes], bodies: Sequence[bytes]) -> None:
    """Raises KeyTooLarge before anything of a statement is written."""
    for start in range(0, len(keys), PORTION_KEYS):
        part = slice(start, start + PORTION_KEYS)
        check_sizes(keys[part], bodies[part])
        if part.stop < len(keys):
            await asyncio.sleep(0)
