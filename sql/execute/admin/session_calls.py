"""Carries out the calls for `SessionCalls`: ends what other sessions run, or these themselves, and
takes and gives back advisory locks.

Who may end sessions: PostgreSQL's rule. One's own, and those of roles that one is a member of; with
CANCELQUERY those of all who are no admins (as pg_signal_backend there); admins all of them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from decimal import Decimal
from typing import Protocol

from ....catalog.descriptors.keyspace import whole_seconds
from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.rights.rights import Rights
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....catalog.values.interval_text import read_interval
from ....kvlayer.clock import Timestamp, format_timestamp, parse_timestamp
from ....kvlayer.raw import RawKeyspace
from ...results.results import Result
from ...runtime.activity import SessionView
from ...runtime.advisory_locks import WAIT_SECONDS, AdvisoryLocks, key_of
from ...runtime.authorization import current_rights
from ...runtime.keyspaces import RawKeyspaces
from ...runtime.services import Services
from ...runtime.transactions import OpenTransaction, lock_timeout
from .jobs import seen_jobs


class CallingTransactions(Protocol):
    """The transactions and locks of the calling session."""

    @property
    def opened(self) -> OpenTransaction | None: ...
    @property
    def advisory_locks(self) -> AdvisoryLocks: ...


class CallingSession:
    """Implements `SessionCalls` for one session."""

    def __init__(
        self, services: Services, session: SessionView, transactions: CallingTransactions
    ) -> None:
        self._services = services
        self._session = session
        self._transactions = transactions
        self._keyspaces = RawKeyspaces(services)
        self._warnings: list[str] = []
        self._database = ("", 0)

    def told(self, result: Result) -> Result:
        """The result, with what the statement's calls had to say beside what they returned."""
        if not self._warnings:
            return result
        warnings, self._warnings = self._warnings, []
        return replace(result, warnings=tuple(warnings))

    async def call(self, name: str, arguments: Sequence[Datum]) -> Datum:
        writes_keys = name.startswith("raw_") and name != "raw_get"
        if writes_keys and self._transactions.opened is not None:
            raise SQLError(
                "25001",
                f"{name} cannot be called inside a transaction block",
                hint="What it writes is durable at once, and no ROLLBACK undoes it.",
            )
        if name in _CALLS:
            return await _CALLS[name](self, *arguments)
        (number,) = arguments
        assert isinstance(number, int), number
        key, tries = key_of(await self._database_id(), number), "_try_" in name
        locked = await self._lock(key, in_transaction="_xact_" in name, tries=tries)
        return locked if tries else ""

    async def _cancel(self, process_id: int) -> bool:
        session = await self._session_to_end(process_id)
        if session is not None:
            session.activity.interrupt()
        return session is not None

    async def _terminate(self, process_id: int) -> bool:
        session = await self._session_to_end(process_id)
        if session is not None:
            session.terminate()
        return session is not None

    async def _wait(self, job_id: int, *given: str | None) -> Decimal:
        """Waits for a feed: until when, and how long, stand in either order."""
        if self._transactions.opened is not None:
            raise SQLError(
                "25001",
                "wait_for_changefeed cannot be called inside a transaction block",
                hint="What the transaction wrote is in no sink before it has committed.",
            )
        until, seconds = _until_and_seconds([text for text in given if text is not None])
        until = until or self._session.activity.committed_at or await self._services.store.now()
        await seen_jobs(self._services, self._session.user, [job_id])
        resolved = await self._services.jobs.wait(job_id, until, seconds=seconds)
        return Decimal(format_timestamp(resolved))

    async def _lock(self, key: bytes, *, in_transaction: bool, tries: bool) -> bool:
        locks, opened = self._transactions.advisory_locks, self._transactions.opened
        timeout = lock_timeout(self._session.variables) or WAIT_SECONDS
        seconds = None if tries else timeout
        if opened is None:
            locked = await locks.lock(key, seconds=seconds, opened=None)
            if locked and in_transaction:  # the statement is one by itself, and ends here
                await locks.unlock(key)
            return locked
        if in_transaction:
            return await locks.lock_in(opened.transaction, key, seconds=seconds)
        opened.shown = True  # what the session locks is not undone, nor locked twice
        return await locks.lock(key, seconds=seconds, opened=opened.transaction)

    async def _unlock(self, number: int) -> bool:
        if self._transactions.opened is not None:
            self._transactions.opened.shown = True
        key = key_of(await self._database_id(), number)
        unlocked = await self._transactions.advisory_locks.unlock(key)
        if not unlocked:
            self._warnings.append("you don't own a lock of type ExclusiveLock")
        return unlocked

    async def _unlock_all(self) -> str:
        await self._transactions.advisory_locks.release_all()
        return ""

    async def _database_id(self) -> int:
        name = self._session.database
        if self._database[0] != name:
            async with self._services.reading() as reader:
                found = await self._services.catalog.descriptors.lookup(reader, 0, 0, name)
            if found is None:
                raise SQLError("3D000", f'database "{name}" does not exist')
            self._database = (name, found)
        return self._database[1]

    async def _session_to_end(self, process_id: int) -> SessionView | None:
        """The session of a process, if there is one. Raises SQLError 42501."""
        session = self._services.sessions.find_process(process_id)
        if session is None:
            self._warnings.append(f"PID {process_id} is not a PostgreSQL backend process")
            return None
        opened = self._transactions.opened
        reader = None if opened is None else opened.transaction
        rights = await current_rights(self._services, reader)
        if not may_end(rights, self._session.user, session.activity.user):
            raise SQLError(
                "42501",
                f"permission denied to end what {session.activity.user} runs",
                hint="GRANT SYSTEM CANCELQUERY TO a role lets it end what others run, but admins.",
            )
        return session

    # Raw keyspaces. Each call is durable when it returns, and stays where the statement fails
    # behind it. Raises SQLError as `RawKeyspaces.opened` does.

    def _keyspace(self, name: str, needs: Privilege) -> AbstractAsyncContextManager[RawKeyspace]:
        user, database = self._session.user, self._session.database
        return self._keyspaces.opened(name, needs=needs, user=user, database=database)

    async def _raw_get(self, name: str, key: bytes) -> Datum:
        async with self._keyspace(name, Privilege.SELECT) as keyspace:
            return await keyspace.get(key)

    async def _raw_put(self, name: str, key: bytes, value: bytes, ttl: str | None = None) -> Datum:
        seconds = None if ttl is None else whole_seconds(ttl)
        async with self._keyspace(name, Privilege.INSERT) as keyspace:
            return _shown(await keyspace.put(key, value, ttl_seconds=seconds))

    async def _raw_delete(self, name: str, key: bytes) -> Datum:
        async with self._keyspace(name, Privilege.DELETE) as keyspace:
            return _shown(await keyspace.delete(key))

    async def _raw_delete_range(self, name: str, start: bytes | None, end: bytes | None) -> Datum:
        """Deletes the keys of `[start, end)` and returns their number; NULL is the first key, and
        behind the last."""
        async with self._keyspace(name, Privilege.SELECT | Privilege.DELETE) as keyspace:
            return (await keyspace.delete_range(start or b"", end)).count

    async def _raw_cas(
        self, name: str, key: bytes | None, expected: bytes | None, value: bytes | None
    ) -> Datum:
        """Whether the key had the expected value, and now has the new one; NULL is to be absent."""
        if key is None:
            raise SQLError("22004", "raw_cas: the key must not be NULL")
        needs = Privilege.SELECT | (Privilege.DELETE if value is None else Privilege.INSERT)
        async with self._keyspace(name, needs) as keyspace:
            return (await keyspace.compare_and_swap(key, expected=expected, value=value)).swapped


def may_end(rights: Rights, user: str, owner: str) -> bool:
    """Whether a user may end the sessions of another, or what they run."""
    if rights.admin(user) or owner in rights.roles_of(user):
        return True
    return bool(rights.held(user, SYSTEM) & Privilege.CANCELQUERY) and not rights.admin(owner)


def _until_and_seconds(texts: Sequence[str]) -> tuple[Timestamp | None, float | None]:
    """A number is a timestamp of the store, everything else an interval. Raises SQLError 22023."""
    until: Timestamp | None = None
    seconds: float | None = None
    for text in texts:
        try:
            if _NUMBER.fullmatch(text):
                given = parse_timestamp(text)
                if until is not None:
                    raise ValueError("two timestamps are given")
                until = given
            elif seconds is None:
                seconds = read_interval(text).length / MICROSECONDS
            else:
                raise ValueError("two intervals are given")
        except ValueError as error:
            raise SQLError(
                "22023",
                f"wait_for_changefeed: {error}",
                hint="wait_for_changefeed(job [, timestamp] [, interval]), the timestamp as "
                "cluster_logical_timestamp() is.",
            ) from error
    return until, seconds


MICROSECONDS = 1_000_000
_NUMBER = re.compile(r"\s*\d+(\.\d*)?\s*")


def _shown(at: Timestamp) -> Decimal:
    return Decimal(format_timestamp(at))


_CALLS: dict[str, Callable[..., Awaitable[Datum]]] = {
    "pg_advisory_unlock": CallingSession._unlock,
    "pg_advisory_unlock_all": CallingSession._unlock_all,
    "pg_cancel_backend": CallingSession._cancel,
    "pg_terminate_backend": CallingSession._terminate,
    "raw_cas": CallingSession._raw_cas,
    "raw_delete": CallingSession._raw_delete,
    "raw_delete_range": CallingSession._raw_delete_range,
    "raw_get": CallingSession._raw_get,
    "raw_put": CallingSession._raw_put,
    "wait_for_changefeed": CallingSession._wait,
}
