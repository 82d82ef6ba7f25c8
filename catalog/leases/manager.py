"""The lease manager of a node: which versions of descriptors its statements and feeds may use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp, duration
from ...kvlayer.errors import (
    ClockStopped,
    KVError,
    LockTimeout,
    OutcomeUnknown,
    RetryableTransaction,
    StoreClosed,
    StoreFull,
)
from ...kvlayer.metrics import Metrics
from ...kvlayer.settings import declare_duration
from ..descriptors.descriptor import TableDescriptor
from ..store.descriptor_store import DescriptorStore
from .errors import (
    DescriptorDropped,
    DescriptorMissing,
    DescriptorUnavailable,
    LeaseBeyondSession,
)
from .held_versions import NO_VERSION, HeldVersion, HeldVersions, Miss, RowState
from .incarnation import Incarnation
from .lease import Lease
from .lease_store import LeaseStore
from .liveness import LivenessSession, SessionLost
from .observers import LeaseObserver, Observers
from .waits import LeaseWaits, Tell
from .wanted_work import Spawn, WantedWork
from .watcher import DescriptorWatcher

LEASE_DURATION = declare_duration(
    "sql.catalog.descriptor_lease_duration",
    300.0,
    "how long a lease may go on once its version is no longer the newest",
)

ATTEMPTS_MAX = 10
"""Turns of an acquisition: each must have learned something, so a few are enough."""

RETRY_SECONDS = 0.1
"""Between attempts at work in the background that the store asked to retry."""

RETRIED = (
    ClockStopped,
    LeaseBeyondSession,
    LockTimeout,
    OutcomeUnknown,
    RetryableTransaction,
    StoreFull,
)
"""Errors after which work in the background is attempted again."""

T = TypeVar("T")


class _Entry:
    """One descriptor. Its `turn` is held for each change of its lease rows, so that a row that is
    deleted is never the one that an acquisition under way has just written.

    `doubtful` once an acquisition may have written a row that nobody has heard of: its answer was
    lost. Such a row blocks the next schema change but one for as long as the session lives, so the
    next acquisition deletes every row that memory does not know.
    """

    __slots__ = ("acquiring", "doubtful", "held", "refresh", "release", "turn")

    def __init__(
        self,
        table_id: int,
        reap: Callable[[_Entry], None],
        refresh: Callable[[_Entry], Awaitable[None]],
        spawn: Spawn,
    ) -> None:
        self.held = HeldVersions(table_id)

        def release(version: HeldVersion) -> None:
            self.held.release(version)
            if version.references == 0 and version.version < self.held.retired_below:
                reap(self)

        self.release = release
        self.refresh = WantedWork(lambda: refresh(self), spawn)
        self.turn = asyncio.Lock()
        self.acquiring: asyncio.Task[HeldVersion] | None = None
        self.doubtful = False


class LeaseManager:
    """Acquires leases, keeps them, and lets them go when there is a newer version.

    The newest version of a table stays leased when nobody uses it: that stops no schema change, and
    the next statement finds it in memory. All work on lease rows runs in tasks of the manager, so
    that a cancelled caller never leaves a row that nobody remembers.
    """

    def __init__(
        self, store: StoreAccess, descriptors: DescriptorStore, session: LivenessSession
    ) -> None:
        self._store = store
        self._session = session
        self._rows = LeaseStore(store, descriptors, session.node_id)
        self._entries: dict[int, _Entry] = {}
        self._observers = Observers()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watcher: DescriptorWatcher | None = None
        self._closing = False
        self._sweep = WantedWork(lambda: self._retrying(self._rows.sweep), self._spawn)
        self.waits = LeaseWaits(store)

    @property
    def node_id(self) -> int:
        """The node that holds them."""
        return self._session.node_id

    async def start(self) -> None:
        """Removes what dead sessions left behind, and begins to listen for new versions.

        Whatever is acquired from here on was read above the watcher's start, so no version that
        follows it can escape notice.
        """
        assert self._watcher is None, "the lease manager is started already"
        self._session.on_lost(self._on_session_lost)
        self._session.on_removed(self._on_sessions_removed)
        self._watcher = DescriptorWatcher(
            self._store,
            after=await self._store.now(),
            on_version=self.note_version,
            on_gap=self._refresh_all,
        )
        await self._rows.sweep()

    # Acquiring.

    def try_acquire(self, table_id: int, at: Timestamp) -> Lease | None:
        """A lease on the version valid at `at`, if the node holds one."""
        entry = self._entries.get(table_id)
        if entry is None:
            return None
        found = entry.held.find(at)
        if isinstance(found, Miss):
            return None
        return self._lease(entry, found)

    def claim_end(self, table: TableDescriptor, at: Timestamp) -> Timestamp | None:
        """The end of the node's claim that this very version of a table is valid, at `at` and on;
        None where it has none. It is true of the step that asks: a lease makes it last."""
        entry = self._entries.get(table.id)
        if entry is None:
            return None
        found = entry.held.find(at)
        if isinstance(found, HeldVersion) and found.descriptor is table:
            return found.coverage_end()
        return None

    async def acquire(self, table_id: int, at: Timestamp) -> Lease:
        """A lease on the version valid at `at`; one from history has no row, and commits nothing.

        While the disk is full neither a lease nor the session can be written, and the version is
        read from history: reads go on. Raises DescriptorUnavailable, LeaseBeyondSession, and what a
        transaction raises.
        """
        self._check_open()
        entry = self._entry(table_id)
        try:
            return await self._acquire(entry, at)
        except StoreFull as full:
            return await self._acquire_from_history(entry, at, full)

    async def _acquire(self, entry: _Entry, at: Timestamp) -> Lease:
        for _ in range(ATTEMPTS_MAX):
            found = entry.held.find(at)
            if isinstance(found, HeldVersion):
                return self._lease(entry, found)
            if found is Miss.HISTORY:
                return await self._acquire_from_history(entry, at)
            if entry.held.newest is not None:
                if not await self._session.ensure_beyond(at):
                    break
                continue
            try:
                await asyncio.shield(self._join_acquisition(entry))
            except DescriptorDropped as dropped:
                if at >= dropped.dropped_at:
                    raise
                return await self._acquire_from_history(entry, at)
        raise LeaseBeyondSession(entry.held.table_id, at, self._session.incarnation.expiration)

    async def acquire_freshest(self, table_id: int) -> Lease:
        """A lease on the version that is newest at some moment after the call.

        It joins no acquisition that was under way: that one may have read before the call.
        """
        self._check_open()
        entry = self._entry(table_id)
        for _ in range(ATTEMPTS_MAX):
            held = await asyncio.shield(self._acquisition(entry))
            if held.row is RowState.HELD and held in entry.held.versions:
                return self._lease(entry, held)
        raise LeaseBeyondSession(
            table_id, self._store.clock.last, self._session.incarnation.expiration
        )

    async def acquire_canonical(self, table_id: int, at: Timestamp) -> Lease:
        """A lease on the very version that was canonical at `at`, as it is read now.

        What `acquire` answers may be the one before, which is as good for reading and writing rows.
        """
        lease = await self.acquire_freshest(table_id)
        if lease.descriptor.modification_time <= at:
            return lease
        lease.release()
        return await self._acquire_from_history(self._entry(table_id), at)

    def _join_acquisition(self, entry: _Entry) -> asyncio.Task[HeldVersion]:
        """The acquisition under way, or a new one: there is one at a time."""
        if entry.acquiring is None or entry.acquiring.done():
            entry.acquiring = self._acquisition(entry)
        return entry.acquiring

    def _acquisition(self, entry: _Entry) -> asyncio.Task[HeldVersion]:
        """Goes on when its caller is cancelled; then nobody asks what it failed with."""
        task = self._spawn(self._take_newest(entry))

        def see(done: asyncio.Task[HeldVersion]) -> None:
            failed = not done.cancelled() and done.exception() is not None
            if failed and entry.doubtful and not self._closing:
                entry.refresh.want(pause=RETRY_SECONDS)

        task.add_done_callback(see)
        return task

    async def _take_newest(self, entry: _Entry) -> HeldVersion:
        """Leases the newest version, and retires what is older."""
        table_id = entry.held.table_id
        async with entry.turn:
            for _ in range(ATTEMPTS_MAX):
                incarnation = self._session.incarnation
                keep = entry.held.leased_versions if entry.doubtful else None
                entry.doubtful = True
                try:
                    descriptor, taken_at = await self._rows.take(table_id, incarnation, keep=keep)
                except SessionLost:
                    await self._session.heartbeat()
                    continue
                except DescriptorDropped as dropped:
                    self._retire_all(entry)
                    raise dropped
                if not incarnation.lost:
                    break
            else:
                raise LeaseBeyondSession(
                    table_id, self._store.clock.last, self._session.incarnation.expiration
                )
            entry.doubtful = False
            return self._record(entry, descriptor, incarnation, taken_at)

    def _record(
        self,
        entry: _Entry,
        descriptor: TableDescriptor,
        incarnation: Incarnation,
        taken_at: Timestamp,
    ) -> HeldVersion:
        """A lease row stands: in one step, so that no notice and no observer falls in between."""
        news = entry.held.note(descriptor.version)
        newest = entry.held.newest
        again = newest is not None and newest.version == descriptor.version
        held = entry.held.add_acquired(descriptor, incarnation, taken_at)
        entry.held.retire(descriptor.version)
        if news:
            self._observers.tell_new_version(descriptor.id, descriptor.version)
        if descriptor.version < entry.held.version_seen:
            # A notice came while this version was read. If it is ahead of what can be read, as
            # the read before this one showed, asking without a pause would keep the loop busy.
            entry.refresh.want(pause=RETRY_SECONDS if again else 0.0)
        self._reap(entry)
        self._limit_superseded(entry)
        return held

    async def _acquire_from_history(
        self, entry: _Entry, at: Timestamp, full: StoreFull | None = None
    ) -> Lease:
        found = await self._rows.read_history(entry.held.table_id, at)
        if found is None:
            raise DescriptorMissing(entry.held.table_id)
        descriptor, expires_at = found
        if descriptor.dropped:
            raise DescriptorDropped(descriptor.id, descriptor.name, descriptor.modification_time)
        return self._lease(entry, entry.held.add_history(descriptor, expires_at), full)

    def _lease(self, entry: _Entry, held: HeldVersion, full: StoreFull | None = None) -> Lease:
        held.references += 1
        return Lease(held, entry.release, full)

    # New versions.

    def observe(self, table_ids: Iterable[int], observer: LeaseObserver) -> dict[int, int]:
        """Tells `observer` of new versions from here on.

        Returns, from the same step, the greatest version known of each table (0: none is): a
        version is either among these or will be told.
        """
        ids = tuple(table_ids)
        self._observers.add(ids, observer)
        return {id: self._entry(id).held.version_seen for id in ids}

    def unobserve(self, observer: LeaseObserver) -> None:
        self._observers.remove(observer)

    def note_version(self, table_id: int, version: int) -> None:
        """A version was published, says whoever saw it."""
        entry = self._entries.get(table_id)
        if entry is None or self._closing or not entry.held.note(version):
            return
        self._observers.tell_new_version(table_id, version)
        if entry.held.versions:
            entry.refresh.want()

    async def wait_for_one_version(
        self, table_id: int, *, timeout: float, tell: Tell | None = None
    ) -> int:
        """Returns the newest version once nobody holds an older one.

        This node's own leases that nobody uses are let go first. Raises LeaseWaitTimeout. `tell`
        hears whom it waits for; so it does in the next one.
        """
        await self._let_go(table_id, timeout)
        return await self.waits.for_one_version(table_id, timeout=timeout, tell=tell)

    async def wait_for_no_version(
        self, table_id: int, *, timeout: float, tell: Tell | None = None
    ) -> int:
        """Returns once nobody holds any version of a table that is dropped."""
        await self._let_go(table_id, timeout)
        return await self.waits.for_no_version(table_id, timeout=timeout, tell=tell)

    async def _let_go(self, table_id: int, timeout: float) -> None:
        """Reads the newest version, so that older ones that nobody uses here are released.

        Before the wait, not beside it: what follows the wait reads the very rows that this writes.
        """
        entry = self._entries.get(table_id)
        if entry is not None and entry.held.versions:
            await asyncio.wait([entry.refresh.want()], timeout=timeout)

    async def _refresh(self, entry: _Entry) -> None:
        """Takes the newest version and lets go of what is older, however often it takes."""

        async def attempt() -> None:
            try:
                await self._take_newest(entry)
            except DescriptorUnavailable:
                self._retire_all(entry)

        await self._retrying(attempt)

    def _refresh_all(self) -> None:
        """Notices may have been missed: every version is read anew, older ones are let go."""
        for entry in self._entries.values():
            entry.refresh.want()

    def _retire_all(self, entry: _Entry) -> None:
        """Retires every version of a table that is dropped."""
        entry.held.retire(NO_VERSION)
        self._reap(entry)
        self._limit_superseded(entry)

    def _reap(self, entry: _Entry) -> None:
        """Deletes the rows of versions that are out of date and unused."""
        for held in entry.held.take_doomed():
            held.begin_delete(self._store.clock.last)
            self._background(self._delete(entry, held))

    async def _delete(self, entry: _Entry, held: HeldVersion) -> None:
        incarnation = held.incarnation
        assert incarnation is not None, held

        async def attempt() -> None:
            async with entry.turn:
                deleted_at = await self._rows.drop(entry.held.table_id, held.version, incarnation)
            held.finish_delete(deleted_at)

        await self._retrying(attempt)

    def _limit_superseded(self, entry: _Entry) -> None:
        """Versions that are out of date and still used get an end, so that no wait is for ever."""
        for held in entry.held.superseded():
            seconds = self._store.settings.get(LEASE_DURATION)
            held.limit(Timestamp(self._store.clock.last + duration(seconds=seconds)))
            self._background(self._write_limit(entry, held))

    async def _write_limit(self, entry: _Entry, held: HeldVersion) -> None:
        incarnation = held.incarnation
        assert incarnation is not None, held

        async def attempt() -> None:
            async with entry.turn:
                if held.row is RowState.HELD:
                    await self._rows.limit(
                        entry.held.table_id, held.version, incarnation, held.expires_at
                    )

        await self._retrying(attempt)

    # The session, and the end.

    def _on_sessions_removed(self, _: Sequence[str]) -> None:
        if not self._closing:
            self._sweep.want()

    def _on_session_lost(self, lost: Incarnation) -> None:
        """Every lease went with it; what was in memory is taken anew under the next one."""
        for entry in self._entries.values():
            if entry.held.take_lost():
                entry.refresh.want()
        self._sweep.want()
        self._observers.tell_leases_lost()

    async def close(self) -> None:
        """Lets every lease go, used or not, and claims nothing from here on."""
        self._closing = True
        if self._watcher is not None:
            await self._watcher.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for entry in self._entries.values():
            for held in entry.held.versions:
                held.limit(Timestamp(self._store.clock.last + 1))
        self._entries.clear()
        try:
            await self._rows.drop_all(self._session.incarnation)
        except KVError:
            pass  # the session will expire

    @property
    def metrics(self) -> Metrics:
        return self._store.metrics

    @property
    def active_count(self) -> int:
        """Versions that this node holds, of all descriptors."""
        return sum(len(entry.held.versions) for entry in self._entries.values())

    def check_invariants(self) -> None:
        for entry in self._entries.values():
            entry.held.check_invariants()

    def _entry(self, table_id: int) -> _Entry:
        entry = self._entries.get(table_id)
        if entry is None:
            entry = self._entries[table_id] = _Entry(
                table_id, self._reap, self._refresh, self._spawn
            )
        return entry

    def _check_open(self) -> None:
        if self._closing:
            raise StoreClosed("the lease manager is closed")

    async def _retrying(self, attempt: Callable[[], Awaitable[object]]) -> None:
        """Work in the background, until the store has done it or is no more."""
        while not self._closing:
            try:
                await attempt()
                return
            except RETRIED:
                self._store.metrics.add("lease_retries_total")
                await asyncio.sleep(RETRY_SECONDS)
            except StoreClosed:
                return

    def _spawn(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _background(self, work: Coroutine[object, object, None]) -> None:
        if self._closing:
            work.close()
        else:
            self._spawn(work)
