"""Raw keyspaces in process: `db.keyspace("sessions")`.

    sessions = db.keyspace("sessions")
    sessions.put(b"ada", b"signed in", ttl_seconds=3600)
    sessions.get(b"ada")
    for key, value in sessions.scan(b"a", b"b"): ...

Each call stands alone, and is durable when it returns. Every error is an SQLError.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, TypeVar

from ..catalog.rights.privileges import Privilege
from ..kvlayer.clock import Timestamp
from ..kvlayer.raw import Deleted, RawKeyspace, Swap
from .loop_thread import LoopThread
from .node import Node

T = TypeVar("T")

Pair = tuple[bytes, bytes]

SCAN_PAIRS = 1_000
"""Pairs that a scan reads at once: between, it holds nothing but the time as of which it reads."""


class AsyncKeyspace:
    """A keyspace by its name: one that was dropped and made again is the new one."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self._name = name

    def _opened(self) -> AbstractAsyncContextManager[RawKeyspace]:
        return self._node.keyspaces.opened(self._name, needs=Privilege.SELECT)  # root's

    async def get(self, key: bytes, *, at: Timestamp | None = None) -> bytes | None:
        """The value as of `at`, or of now."""
        async with self._opened() as raw:
            return await raw.get(key, at=at)

    async def put(self, key: bytes, value: bytes, *, ttl_seconds: float | None = None) -> Timestamp:
        """Returns the timestamp of the write."""
        async with self._opened() as raw:
            return await raw.put(key, value, ttl_seconds=ttl_seconds)

    async def put_many(
        self, pairs: Sequence[Pair], *, ttl_seconds: float | None = None
    ) -> Timestamp:
        """Puts each pair, in order; returns the timestamp of the last commit."""
        async with self._opened() as raw:
            return await raw.put_many(pairs, ttl_seconds=ttl_seconds)

    async def delete(self, key: bytes) -> Timestamp:
        """Returns the timestamp of the deletion."""
        async with self._opened() as raw:
            return await raw.delete(key)

    async def delete_range(self, start: bytes = b"", end: bytes | None = None) -> Deleted:
        """Deletes each key of `[start, end)`."""
        async with self._opened() as raw:
            return await raw.delete_range(start, end)

    async def compare_and_swap(
        self,
        key: bytes,
        *,
        expected: bytes | None,
        value: bytes | None,
        ttl_seconds: float | None = None,
    ) -> Swap:
        """Puts `value` if the key's value is `expected`; None is to be absent."""
        async with self._opened() as raw:
            return await raw.compare_and_swap(
                key, expected=expected, value=value, ttl_seconds=ttl_seconds
            )

    async def scan(
        self, start: bytes = b"", end: bytes | None = None, *, at: Timestamp | None = None
    ) -> AsyncGenerator[Pair, None]:
        """Keys and values in `[start, end)` as of `at`, or of now, in key order."""
        if at is None:
            async with self._opened() as raw:
                at = await raw.moment()
        while pairs := await self._page(start, end, at):
            for pair in pairs:
                yield pair
            start = pairs[-1][0] + b"\x00"

    async def _page(self, start: bytes, end: bytes | None, at: Timestamp) -> list[Pair]:
        found: list[Pair] = []
        async with (
            self._opened() as raw,
            aclosing(raw.scan(start, end, limit=SCAN_PAIRS, at=at)) as slices,
        ):
            async for pairs in slices:
                found += pairs
        return found


class Keyspace:
    """`AsyncKeyspace` for programs without a loop, for any number of threads."""

    def __init__(self, thread: LoopThread, keyspace: AsyncKeyspace) -> None:
        self._thread = thread
        self._keyspace = keyspace

    def get(self, key: bytes, *, at: Timestamp | None = None) -> bytes | None:
        return self._outcome(self._keyspace.get(key, at=at))

    def put(self, key: bytes, value: bytes, *, ttl_seconds: float | None = None) -> Timestamp:
        return self._outcome(self._keyspace.put(key, value, ttl_seconds=ttl_seconds))

    def put_many(self, pairs: Sequence[Pair], *, ttl_seconds: float | None = None) -> Timestamp:
        return self._outcome(self._keyspace.put_many(pairs, ttl_seconds=ttl_seconds))

    def delete(self, key: bytes) -> Timestamp:
        return self._outcome(self._keyspace.delete(key))

    def delete_range(self, start: bytes = b"", end: bytes | None = None) -> Deleted:
        return self._outcome(self._keyspace.delete_range(start, end))

    def compare_and_swap(
        self,
        key: bytes,
        *,
        expected: bytes | None,
        value: bytes | None,
        ttl_seconds: float | None = None,
    ) -> Swap:
        return self._outcome(
            self._keyspace.compare_and_swap(
                key, expected=expected, value=value, ttl_seconds=ttl_seconds
            )
        )

    def scan(
        self, start: bytes = b"", end: bytes | None = None, *, at: Timestamp | None = None
    ) -> Generator[Pair, None, None]:
        """Keys and values in `[start, end)` as of `at`, or of when it began, in key order."""
        pairs = self._keyspace.scan(start, end, at=at)
        while True:
            try:
                yield self._outcome(_next(pairs))
            except StopAsyncIteration:
                return

    def _outcome(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._thread.outcome(coroutine)


async def _next(pairs: AsyncGenerator[Pair, None]) -> Pair:
    return await anext(pairs)
