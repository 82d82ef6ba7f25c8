"""A raw keyspace: get, put, delete, scan, batch put, compare-and-swap and delete range.

Every write is a one-phase commit of at most `COMMAND_KEYS_MAX` keys: its timestamp is drawn in the
step that writes, and it is durable when the call returns. A call with more keys is several such
commits, one after the other. It is not atomic as a whole, and need not be: every key stands alone.

    keyspace = RawKeyspace(store, keyspace_id=104)
    await keyspace.put(b"k", b"1", ttl_seconds=60)
    await keyspace.compare_and_swap(b"k", expected=b"1", value=b"2")
    await keyspace.get(b"k")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ..access import Evaluation, StoreAccess
from ..clock import ZERO, Timestamp, duration, format_timestamp
from ..errors import KeyTooLarge
from ..keys import KEY_BYTES_MAX, KEYSPACE_LENGTH, RAW_KIND, decode_bytes, encode_bytes
from ..replication.replica import ReplicaRefused
from ..settings import declare_duration, declare_less
from ..span import Span
from .entry import decode_entry, encode_deletion, encode_entry

T = TypeVar("T")

KEYSPACE_ID_MAX = (1 << 24) - 1
"""TiKV's keyspace ids have three bytes; ours have four, of which the first is zero."""

COMMAND_KEYS_MAX = 500
"""Keys of one commit, so that its step stays under a millisecond."""

COMMAND_BYTES_MAX = 1024 * 1024
"""And bytes of its keys and values, where they are several."""

USER_KEY_BYTES_MAX = (KEY_BYTES_MAX - KEYSPACE_LENGTH) // 9 * 8 - 1
"""Memcomparable groups of nine bytes hold eight."""

TTL_SECONDS_MAX = 30 * 366 * 86_400
"""Timestamps end in 2091: a time to live beyond that would be for ever."""

DELETED_TTL = declare_duration(
    "kv.raw.deleted_ttl",
    25 * 3600.0,
    "how long a deletion in a raw keyspace is kept before it is removed",
)
START_WINDOW = declare_duration(
    "kv.raw.start_window",
    24 * 3600.0,
    "how far back a feed of a raw keyspace may start, and AS OF may read there",
)
declare_less(START_WINDOW, DELETED_TTL)


def keyspace_span(keyspace_id: int) -> Span:
    """The span of all keys of a keyspace."""
    return Span.prefix(_prefix(keyspace_id))


def keyspace_part(keyspace_id: int, start: bytes, end: bytes | None) -> Span:
    """The keys of a keyspace in `[start, end)`; no `end` is behind the last of them. Raises
    ValueError where no key lies in it."""
    whole = keyspace_span(keyspace_id)
    last = whole.end if end is None else raw_key(keyspace_id, end)
    return Span(raw_key(keyspace_id, start) if start else whole.start, last)


def keyspace_of(span: Span) -> int:
    """The keyspace whose keys the span has."""
    return int.from_bytes(span.start[len(RAW_KIND) : KEYSPACE_LENGTH], "big")


def raw_key(keyspace_id: int, key: bytes) -> bytes:
    """The store's key for a user's."""
    return _prefix(keyspace_id) + encode_bytes(key)


def raw_keys(keyspace_id: int, keys: Iterable[bytes]) -> list[bytes]:
    """As `raw_key`, for each key."""
    prefix = _prefix(keyspace_id)
    return [prefix + encode_bytes(key) for key in keys]


def user_key(key: bytes) -> bytes:
    """The user's key of a key of the store. Raises ValueError where it is none."""
    found, end = decode_bytes(key, KEYSPACE_LENGTH)
    if end != len(key):
        raise ValueError(f"{key.hex()} is no key of a raw keyspace: bytes follow its last group")
    return found


def check_key(key: bytes) -> None:
    """Raises KeyTooLarge."""
    if len(key) > USER_KEY_BYTES_MAX:
        raise KeyTooLarge(f"key of {len(key)} bytes is over the limit of {USER_KEY_BYTES_MAX}")


def _prefix(keyspace_id: int) -> bytes:
    assert 0 < keyspace_id <= KEYSPACE_ID_MAX, keyspace_id
    return RAW_KIND + keyspace_id.to_bytes(4, "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """The outcome of a compare-and-swap: the value that it found, and the timestamp of its write
    (None where it did not write)."""

    swapped: bool
    previous: bytes | None
    timestamp: Timestamp | None


@dataclass(frozen=True, slots=True)
class Deleted:
    """The outcome of a delete range: the number of keys, and the timestamp of the last deletion
    (None: there were none)."""

    count: int
    timestamp: Timestamp | None


Deadline = Callable[[], Timestamp]
"""A write that would commit at or above it is refused: see `StoreAccess.one_phase`."""

Pairs = Sequence[tuple[bytes, bytes]]


class RawKeyspace:
    """One keyspace of a store, wherever the store is.

    `ttl_seconds` is the time to live of what is put without one. A replica is read as of what is
    `resolved` of it: below, nothing is still to come. Every call raises KeyTooLarge for
    a key or a value over its limit, having written nothing of its commit.
    """

    def __init__(
        self,
        store: StoreAccess,
        keyspace_id: int,
        *,
        ttl_seconds: float | None = None,
        deadline: Deadline | None = None,
        resolved: Timestamp | None = None,
    ) -> None:
        self.id = keyspace_id
        self.span = keyspace_span(keyspace_id)
        self._prefix = _prefix(keyspace_id)
        self._store = store
        self._ttl_seconds = ttl_seconds
        self._deadline = deadline
        self._resolved = resolved

    # Reading

    async def moment(self, at: Timestamp | None = None) -> Timestamp:
        """As of when it is read: `at`, or the newest there is. Raises ReplicaRefused for what a
        replica has not resolved."""
        if self._resolved is None:
            return await self._store.now() if at is None else at
        if at is not None and at > self._resolved:
            raise ReplicaRefused(
                f"the replica has resolved {format_timestamp(self._resolved)}: it cannot be read "
                f"as of {format_timestamp(at)} yet"
            )
        return self._resolved if at is None else at

    async def get(self, key: bytes, *, at: Timestamp | None = None) -> bytes | None:
        """The value as of `at`, or of now. Raises BatchTimestampBeforeGC."""
        check_key(key)
        at = await self.moment(at)
        body = await self._store.snapshot(at).get(self._prefix + encode_bytes(key))
        return None if body is None else decode_entry(body).value_at(at)

    async def scan(
        self,
        start: bytes = b"",
        end: bytes | None = None,
        *,
        limit: int | None = None,
        at: Timestamp | None = None,
    ) -> AsyncGenerator[Pairs, None]:
        """Keys and values in `[start, end)` as of `at`, or of now, in key order, in slices. Without
        an `end` up to the last key; `limit` pairs at most. Raises BatchTimestampBeforeGC."""
        span = self._part(start, end)
        if span is None or limit == 0:
            return
        at = await self.moment(at)
        left = limit
        async with aclosing(self._store.snapshot(at).scan_slices(span)) as slices:
            async for rows in slices:
                found = [
                    (user_key(key), value)
                    for key, body in rows
                    if (value := decode_entry(body).value_at(at)) is not None
                ]
                if left is not None:
                    found = found[:left]
                    left -= len(found)
                yield found
                if left == 0:
                    return

    # Writing

    async def put(self, key: bytes, value: bytes, *, ttl_seconds: float | None = None) -> Timestamp:
        """Returns the timestamp of the write, which is durable."""
        return await self.put_many([(key, value)], ttl_seconds=ttl_seconds)

    async def put_many(self, pairs: Pairs, *, ttl_seconds: float | None = None) -> Timestamp:
        """Puts each pair, the last of a key's last; returns the timestamp of the last commit, and
        ZERO where there are no pairs. What an error leaves behind is whole commits."""
        for key, _ in pairs:
            check_key(key)
        ttl = self._ttl(ttl_seconds)
        last = ZERO
        for part in _commands(pairs):
            keys = [self._prefix + encode_bytes(key) for key, _ in part]
            last = await self._write(keys, [value for _, value in part], ttl)
        return last

    async def delete(self, key: bytes) -> Timestamp:
        """Returns the timestamp of the deletion, which is durable, whether the key was there."""
        return await self.delete_many([key])

    async def delete_many(self, keys: Iterable[bytes]) -> Timestamp:
        """As `put_many`."""
        found = list(keys)
        for key in found:
            check_key(key)
        last = ZERO
        for first in range(0, len(found), COMMAND_KEYS_MAX):
            part = found[first : first + COMMAND_KEYS_MAX]
            encoded = [self._prefix + encode_bytes(key) for key in part]
            _, last = await self._commit(partial(self._bury, keys=encoded))
        return last

    async def compare_and_swap(
        self,
        key: bytes,
        *,
        expected: bytes | None,
        value: bytes | None,
        ttl_seconds: float | None = None,
    ) -> Swap:
        """Puts `value` if the key's value is `expected`. None is the absent value: expected, the
        key is not there; as the new value, it is deleted."""
        check_key(key)
        encoded, ttl = self._prefix + encode_bytes(key), self._ttl(ttl_seconds)

        def evaluate(evaluation: Evaluation) -> tuple[bool, bytes | None]:
            body = evaluation.get(encoded)
            found = None if body is None else decode_entry(body).value_at(evaluation.timestamp)
            if found != expected:
                return False, found
            if value is None:
                self._bury(evaluation, [encoded])
            else:
                evaluation.put([encoded], [encode_entry(value, _ends(evaluation, ttl))])
            return True, found

        (swapped, previous), at = await self._commit(evaluate)
        return Swap(swapped=swapped, previous=previous, timestamp=at if swapped else None)

    async def delete_range(self, start: bytes = b"", end: bytes | None = None) -> Deleted:
        """Deletes each key of `[start, end)` that is there when its commit comes to it."""
        left = self._part(start, end)
        count, last = 0, None
        while left is not None:
            (deleted, rest), at = await self._commit(partial(self._bury_first, span=left))
            if deleted:
                count, last = count + deleted, at
            left = rest
        return Deleted(count, last)

    # Parts

    def _part(self, start: bytes, end: bytes | None) -> Span | None:
        """The store's keys of `[start, end)`; None where there can be none."""
        check_key(start)
        if end is not None:
            check_key(end)
        first = self._prefix + encode_bytes(start)
        last = self.span.end if end is None else self._prefix + encode_bytes(end)
        return Span(first, last) if first < last else None

    def _ttl(self, ttl_seconds: float | None) -> int | None:
        seconds = self._ttl_seconds if ttl_seconds is None else ttl_seconds
        if seconds is None:
            return None
        assert 0 < seconds <= TTL_SECONDS_MAX, seconds
        return duration(seconds=seconds)

    async def _write(self, keys: list[bytes], values: list[bytes], ttl: int | None) -> Timestamp:
        def evaluate(evaluation: Evaluation) -> None:
            ends = _ends(evaluation, ttl)
            evaluation.put(keys, [encode_entry(value, ends) for value in values])

        _, at = await self._commit(evaluate)
        return at

    async def _commit(self, evaluate: Callable[[Evaluation], T]) -> tuple[T, Timestamp]:
        return await self._store.one_phase(evaluate, deadline=self._deadline)

    def _bury(self, evaluation: Evaluation, keys: list[bytes]) -> None:
        kept = duration(seconds=self._store.settings.get(DELETED_TTL))
        deletion = encode_deletion(Timestamp(evaluation.timestamp + kept))
        evaluation.put(keys, [deletion] * len(keys))

    def _bury_first(self, evaluation: Evaluation, span: Span) -> tuple[int, Span | None]:
        """Deletes what is live of the span's first entries; how many these were, and the rest."""
        rows = evaluation.scan(span, limit=COMMAND_KEYS_MAX, bytes_max=COMMAND_BYTES_MAX)
        at = evaluation.timestamp
        live = [key for key, body in rows if decode_entry(body).value_at(at) is not None]
        if live:
            self._bury(evaluation, live)
        read = sum(len(body) for _, body in rows)
        if len(rows) < COMMAND_KEYS_MAX and read < COMMAND_BYTES_MAX:
            return len(live), None
        start = rows[-1][0] + b"\x00"
        return len(live), Span(start, span.end) if start < span.end else None

    def __repr__(self) -> str:
        return f"<RawKeyspace {self.id}>"


def _ends(evaluation: Evaluation, ttl: int | None) -> Timestamp | None:
    return None if ttl is None else Timestamp(evaluation.timestamp + ttl)


def _commands(pairs: Pairs) -> Iterable[Pairs]:
    """The pairs, cut into what one commit takes: one pair at least, whatever its size."""
    start = size = 0
    for place, (key, value) in enumerate(pairs):
        length = len(key) + len(value)
        full = place - start == COMMAND_KEYS_MAX or size + length > COMMAND_BYTES_MAX
        if full and place > start:
            yield pairs[start:place]
            start, size = place, 0
        size += length
    if start < len(pairs):
        yield pairs[start:]
