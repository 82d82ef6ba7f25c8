"""One-phase commit: a transaction whose reads and writes all happen in one step.

It needs no intents and no record: its commit timestamp is drawn in the step that evaluates it, so
it is above everything that was read or written before, and nothing can come in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from .. import keys as key_format
from ..clock import Timestamp
from ..command import DeleteRangeOp, LogicalOp, WriteValue
from ..errors import ClockStopped, DeadlineExceeded, OracleAway, TransactionState
from ..mvcc import LIVE, TOMBSTONE, Header, body_at, encode_value
from ..span import Span
from .host import TransactionHost
from .intents_seen import intent_of, intents_seen
from .limits import check_sizes
from .locks import LockConflict, Turn, Wish
from .reading import merged, read_bodies, read_key, rows_at
from .steps import run_step

T = TypeVar("T")

_BEHIND_VERSIONS = b"\xff" * 8
_OMITTED = encode_value(b"", Header(omitted=True))
_OMITTED_TOMBSTONE = encode_value(None, Header(omitted=True))


@dataclass(frozen=True, slots=True)
class DeletedSpan:
    """A span that a transaction deletes whole."""

    span: Span
    omitted: bool

    def outside(self, span: Span) -> list[DeletedSpan]:
        """The parts of the deleted span outside `span`."""
        return [DeletedSpan(part, self.omitted) for part in self.span.minus(span)]


class Evaluation:
    """The reads and writes of a one-phase transaction, while its step lasts.

    It reads everything that was committed before and its own writes, at `timestamp`, which is also
    the timestamp at which it will commit. It may be thrown away and evaluated again.
    """

    __slots__ = ("_conflict", "_deleted", "_ended", "_host", "_writes", "timestamp")

    def __init__(self, host: TransactionHost, timestamp: Timestamp) -> None:
        self.timestamp = timestamp
        self._host = host
        self._writes: dict[bytes, bytes] = {}
        self._deleted: list[DeletedSpan] = []  # before what is in `_writes`
        self._conflict: LockConflict | None = None
        self._ended = False

    def before(self, limit: Timestamp) -> bool:
        """Whether it commits below `limit`."""
        return self.timestamp < limit

    def get(self, key: bytes) -> bytes | None:
        """The body of a key's live value."""
        self._check_running()
        if key in self._writes:
            return body_at(self._writes[key], self.timestamp)
        self._host.point_read(key, self.timestamp, None)
        return self._read(key)

    def get_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the result of `get` for each of several keys."""
        if self._writes or self._deleted:
            return [self.get(key) for key in keys]
        self._check_running()
        self._host.points_read(keys, self.timestamp, None)
        try:
            return read_bodies(self._host, keys, self.timestamp, None)
        except LockConflict as conflict:
            self._conflict = conflict
            raise

    def scan(
        self, span: Span, *, limit: int | None = None, bytes_max: int | None = None
    ) -> list[tuple[bytes, bytes]]:
        """The first `limit` live rows of the span, in key order, or fewer: the row with which
        bodies reach `bytes_max` is the last."""
        self._check_running()
        host, at = self._host, self.timestamp
        host.span_read(span, at, None)
        try:
            intents = intents_seen(host, span, at, None)
        except LockConflict as conflict:
            self._conflict = conflict
            raise
        written = sorted(key for key in self._writes if span.contains(key))
        over = ((key, body_at(self._writes[key], at)) for key in written)
        found: list[tuple[bytes, bytes]] = []
        size = 0
        for row in merged(rows_at(host.engine, span, at, intents), over):
            if row is None:
                continue
            if self._deleted and row[0] not in self._writes and self._gone(row[0]):
                continue
            if limit is not None and len(found) >= limit:
                break
            found.append(row)
            size += len(row[1])
            if bytes_max is not None and size >= bytes_max:
                break
        return found

    def first_existing(self, keys: Sequence[bytes]) -> int | None:
        """The index of one of the keys that has a live value, or None.

        Costs one seek when nothing lies between the least key and the greatest, which is how bulk
        loads come; else a seek for each key that lies in no gap.
        """
        self._check_running()
        if not keys:
            return None
        host = self._host
        low, high = min(keys), max(keys)
        host.span_read(Span(low, high + b"\x00"), self.timestamp, None)
        if self._writes and not self._writes.keys().isdisjoint(keys):
            for index, key in enumerate(keys):
                if key in self._writes and body_at(self._writes[key], self.timestamp) is not None:
                    return index
        if borne := set(host.locks.intents.among(keys)):
            for index, key in enumerate(keys):
                if key in borne and key not in self._writes and self._read(key) is not None:
                    return index
        version = key_format.VERSION
        end = version + high + _BEHIND_VERSIONS
        if host.engine.first(version + low, end) is None:
            return None
        return self._leap(keys, end)

    def put(
        self, keys: Sequence[bytes], bodies: Sequence[bytes], *, omit_from_feeds: bool = False
    ) -> None:
        """Writes live values. A key written twice keeps the later one.

        Feeds leave out what is written with `omit_from_feeds`: a backfill, which changes no row.
        """
        self._check_running()
        check_sizes(keys, bodies)
        header = _OMITTED if omit_from_feeds else LIVE
        self._writes.update(zip(keys, [header + body for body in bodies], strict=True))

    def delete(self, keys: Sequence[bytes], *, omit_from_feeds: bool = False) -> None:
        """Writes deletions, whether there is anything to delete or not."""
        self._check_running()
        check_sizes(keys, ())
        value = _OMITTED_TOMBSTONE if omit_from_feeds else TOMBSTONE
        self._writes.update(dict.fromkeys(keys, value))

    def delete_range(self, span: Span, *, omit_from_feeds: bool = False) -> None:
        """Deletes every key of the span, at the cost of one: a range tombstone.

        Keys of the span that are put afterwards are there. Waits for all who hold a key in it.
        """
        self._check_running()
        check_sizes((span.start,), ())
        for key in [key for key in self._writes if span.contains(key)]:
            del self._writes[key]
        apart: list[DeletedSpan] = []
        for known in self._deleted:
            if known.omitted == omit_from_feeds and known.span.touches(span):
                start, end = min(known.span.start, span.start), max(known.span.end, span.end)
                span = Span(start, end)
            else:
                apart += known.outside(span)
        self._deleted = [*apart, DeletedSpan(span, omit_from_feeds)]

    def _gone(self, key: bytes) -> bool:
        return any(deleted.span.contains(key) for deleted in self._deleted)

    def _leap(self, keys: Sequence[bytes], end: bytes) -> int | None:
        """Seeks from key to key in order, leaping over those below what each seek finds."""
        first, version = self._host.engine.first, key_format.VERSION
        order = sorted(range(len(keys)), key=keys.__getitem__)
        found_key = b""
        for index in order:
            key = keys[index]
            if key < found_key:
                continue
            if key != found_key:
                found = first(version + key, end)
                if found is None:
                    return None
                found_key = found[0][1:-8]
            if key == found_key and key not in self._writes and self._read(key) is not None:
                return index
        return None

    def _read(self, key: bytes) -> bytes | None:
        if self._deleted and self._gone(key):
            return None
        try:
            return read_key(self._host, key, self.timestamp, None)
        except LockConflict as conflict:
            self._conflict = conflict  # in case the caller's code catches what it should not
            raise

    def _check_running(self) -> None:
        if self._ended:
            raise TransactionState("the one-phase transaction's step is over")

    def finish(self) -> tuple[list[DeletedSpan], dict[bytes, bytes]]:
        """Ends the evaluation. What it deleted by span, and then wrote; raises the conflict that
        it met."""
        self._ended = True
        if self._conflict is not None:
            raise self._conflict
        return self._deleted, self._writes


class Pending(Generic[T]):
    """A one-phase transaction that is applied and may not be durable yet.

    `result` and `timestamp` may be used to prepare the next transaction, but must not be shown to
    anybody before `wait` has returned.
    """

    __slots__ = ("_error", "_host", "index", "result", "timestamp")

    def __init__(self, host: TransactionHost, result: T, timestamp: Timestamp, index: int) -> None:
        self._host = host
        self.result = result
        self.timestamp = timestamp
        self.index = index

    async def wait(self) -> tuple[T, Timestamp]:
        """Returns when the transaction is durable. Raises StoreClosed if it never will be."""
        await self._host.released(self.index)
        return self.result, self.timestamp


class Refused:
    """The evaluation raised, having seen the state at `index`."""

    __slots__ = ("error", "index")

    def __init__(self, error: Exception, index: int) -> None:
        self.error = error
        self.index = index


async def submit(
    host: TransactionHost,
    evaluate: Callable[[Evaluation], T],
    *,
    deadline: Callable[[], Timestamp] | None,
    commit_called_ns: int,
    lock_timeout: float | None,
) -> Pending[T]:
    """Evaluates and applies; what it raises is released when it is durable."""

    def step(turn: Turn | None) -> Pending[T] | Refused:
        at = host.clock.now()
        return evaluate_in_step(host, evaluate, at, deadline, commit_called_ns, turn)

    outcome = await run_step(host, step, waiter=None, lock_timeout=lock_timeout, at_present=True)
    if isinstance(outcome, Refused):
        # An error may say what was read ("duplicate key"), and that must not get out before it is
        # sure to survive a crash.
        await host.released(outcome.index)
        raise outcome.error
    return outcome


def evaluate_in_step(
    host: TransactionHost,
    evaluate: Callable[[Evaluation], T],
    at: Timestamp,
    deadline: Callable[[], Timestamp] | None,
    commit_called_ns: int,
    turn: Turn | None,
) -> Pending[T] | Refused:
    """Runs the transaction's step at `at`, which was drawn in this very step: the outcome is
    applied, or refused. Raises LockConflict and EngineStall, having changed nothing."""
    evaluation = Evaluation(host, at)
    try:
        result = evaluate(evaluation)
    except LockConflict:
        raise
    except Exception as error:  # the caller's own, whatever it is: it passes through
        evaluation.finish()
        return Refused(error, host.visible_index)
    deleted, writes = evaluation.finish()
    if not writes and not deleted:
        return Pending(host, result, at, host.visible_index)
    if deadline is not None and at >= (limit := deadline()):
        return Refused(DeadlineExceeded(at, limit), host.visible_index)
    if writes and next(iter(writes)).startswith(key_format.RAW_KIND):
        # A transaction writes raw keys or others, never both: see `raw.keyspace`.
        try:
            host.clock.physical.check_fresh(at)
        except (OracleAway, ClockStopped) as error:
            return Refused(error, host.visible_index)
    host.locks.check_writable(writes, None, turn)
    operations: list[LogicalOp] = []
    if deleted:
        operations += _delete_spans(host, deleted, at)
    if writes:
        operations.append(WriteValue(at, list(writes), list(writes.values())))
    index = host.propose(operations, lowest=at, commit_called_ns=commit_called_ns)
    host.committed(at, index)
    return Pending(host, result, at, index)


def _delete_spans(
    host: TransactionHost, deleted: list[DeletedSpan], at: Timestamp
) -> list[LogicalOp]:
    """Raises LockConflict while anybody holds a key of the spans.

    So no intent is left below the tombstone: whoever writes there later is moved above it.
    """
    locks = host.locks
    for part in deleted:
        found = intent_of(host, part.span, locks.intents.holders)
        if found is not None:
            raise LockConflict(found, locks.intents[found], Wish.TAKE)
        locked = locks.locked_in(part.span)
        if locked is not None:
            raise LockConflict(*locked, Wish.TAKE)
    return [DeleteRangeOp(at, part.span.start, part.span.end, part.omitted) for part in deleted]
