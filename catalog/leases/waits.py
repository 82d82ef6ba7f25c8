"""Waiting until leases are let go: what a schema change does between two of its versions.

    for_one_version  nobody holds a version older than the newest
    for_no_version   nobody holds any: the table is dropped, and its data may go

Each wait is bounded, may be cancelled, and says whom it waits for and since when: to whoever asks
`under_way` (that is `tailrace_internal.lease_waits`), to `tell` (a job's status), and in the error
that ends it. Who holds what is read anew each time, leases and sessions as of one timestamp:
nobody is taken for alive from memory, and a session that is not there is dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import MAX_TIMESTAMP, ZERO, Timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC
from ..store.descriptor_store import decode_stored, descriptor_key
from ..store.lease_rows import SESSIONS, LeaseRow, SessionRow, leases_of
from .errors import DescriptorMissing, LeaseHolder, LeaseWaitTimeout

POLL_SECONDS_MIN = 0.002
POLL_SECONDS_MAX = 0.025
"""Leases are let go within milliseconds of a notice, or when something long ends; who waits is to
go on well within 100 ms of that."""

Tell = Callable[[Sequence[LeaseHolder]], Awaitable[None]]
"""Told whom a wait waits for, whenever that changes; at its end, that it is nobody."""


class WaitKind(Enum):
    ONE_VERSION = "one version"  # only the newest is held
    NO_VERSION = "no version"  # none is held


@dataclass(slots=True, eq=False)
class LeaseWait:
    """A wait under way. `holders` is who stood in its way when it looked last."""

    descriptor_id: int
    kind: WaitKind
    since: Timestamp
    holders: tuple[LeaseHolder, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveLeases:
    """The newest version of a descriptor (0: there is none), and the live leases on it."""

    newest: int
    holders: tuple[LeaseHolder, ...]

    def below(self, version: int) -> tuple[LeaseHolder, ...]:
        return tuple(holder for holder in self.holders if holder.version < version)


class LeaseWaits:
    """The waits of one node."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._waits: list[LeaseWait] = []

    def under_way(self) -> Sequence[LeaseWait]:
        """Oldest first."""
        return tuple(self._waits)

    async def for_one_version(
        self, descriptor_id: int, *, timeout: float, tell: Tell | None = None
    ) -> int:
        """Returns the newest version once no live lease on an older one is left.

        Raises LeaseWaitTimeout, which names the holders, and DescriptorMissing.
        """

        def blocking(found: LiveLeases) -> Sequence[LeaseHolder] | None:
            if not found.newest:
                raise DescriptorMissing(descriptor_id)
            return found.below(found.newest) or None

        return await self._wait(descriptor_id, WaitKind.ONE_VERSION, blocking, timeout, tell)

    async def for_no_version(
        self, descriptor_id: int, *, timeout: float, tell: Tell | None = None
    ) -> int:
        """Returns once no live lease on any version is left: nobody can use the object any more."""

        def blocking(found: LiveLeases) -> Sequence[LeaseHolder] | None:
            return found.holders or None

        return await self._wait(descriptor_id, WaitKind.NO_VERSION, blocking, timeout, tell)

    async def _wait(
        self,
        descriptor_id: int,
        kind: WaitKind,
        blocking: Callable[[LiveLeases], Sequence[LeaseHolder] | None],
        timeout: float,
        tell: Tell | None,
    ) -> int:
        """Looks until `blocking` says None."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + timeout
        pause = POLL_SECONDS_MIN
        with self._registered(LeaseWait(descriptor_id, kind, await self._store.now())) as wait:
            while True:
                found = await live_leases(self._store, descriptor_id)
                holders = blocking(found)
                former, wait.holders = wait.holders, tuple(holders or ())
                if tell is not None and _claims(former) != _claims(wait.holders):
                    await tell(wait.holders)
                if holders is None:
                    return found.newest
                if loop.time() >= give_up_at:
                    raise LeaseWaitTimeout(descriptor_id, kind.value, timeout, wait.holders)
                await asyncio.sleep(min(pause, max(give_up_at - loop.time(), 0.0)))
                pause = min(2 * pause, POLL_SECONDS_MAX)

    @contextmanager
    def _registered(self, wait: LeaseWait) -> Iterator[LeaseWait]:
        self._waits.append(wait)
        try:
            yield wait
        finally:
            self._waits.remove(wait)


def _claims(holders: Sequence[LeaseHolder]) -> list[tuple[str, int]]:
    """The holders and their versions, without heartbeats, which change nothing about a claim."""
    return [(holder.session_id, holder.version) for holder in holders]


async def live_leases(store: StoreAccess, descriptor_id: int) -> LiveLeases:
    """Reads descriptor, leases and sessions as of one timestamp, and counts by that timestamp."""
    transaction = store.begin(read_only=True)
    try:
        await transaction.started()
        at = transaction.read_timestamp
        key = descriptor_key(descriptor_id)
        body = await transaction.get(key)
        newest = 0 if body is None else decode_stored(key, body, ZERO).version
        leases = [LeaseRow.decode(*row) for row in await transaction.scan(leases_of(descriptor_id))]
        rows = [SessionRow.decode(*row) for row in await transaction.scan(SESSIONS)]
        alive = {row.session_id: row for row in rows if row.alive_at(at)}
        holders: list[LeaseHolder] = []
        for lease in leases:
            session = alive.get(lease.session_id)
            if session is None or lease.expiration <= at:
                continue
            stored = await transaction.get_with_timestamp(lease.key)
            assert stored is not None, "one transaction reads alike"
            holders.append(
                LeaseHolder(
                    version=lease.version,
                    node_id=lease.node_id,
                    session_id=lease.session_id,
                    since=await held_since(store, lease, stored[1]),
                    session_expiration=session.expiration,
                )
            )
        return LiveLeases(newest, tuple(holders))
    finally:
        await transaction.rollback()


async def held_since(store: StoreAccess, lease: LeaseRow, written_at: Timestamp) -> Timestamp:
    """When the lease was taken: its row is written once more when the lease is given an end."""
    if lease.expiration == MAX_TIMESTAMP:
        return written_at
    try:
        taken = await store.snapshot(Timestamp(written_at - 1)).get_with_timestamp(lease.key)
    except BatchTimestampBeforeGC:
        return written_at
    return written_at if taken is None else taken[1]
