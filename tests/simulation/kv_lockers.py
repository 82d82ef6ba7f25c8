"""Clients that lock: rows and names, alone and shared, waiting and not, and what reads and writes
several keys at once.

Beside what every client is told, they know who of them holds what, and that what a transaction has
read of a key that it had locked is what lies below its own version of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import suppress
from random import Random

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import KVError, LockUnavailable, StoreClosed, WriteConflict
from tailrace.kvlayer.keys import LOCK_KIND
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import Isolation, LockMode, WhenLocked
from tests.simulation.kv_clients import KEYS, REFUSED, Clients, ExplicitTransaction
from tests.simulation.kv_model import KVModel, Read

LOCK_NAMES = [LOCK_KIND + bytes(8) + name for name in (b"x", b"y")]
"""Names that clients lock by agreement: no rows."""

ATTEMPTS_MAX = 3
"""A statement under READ COMMITTED is begun anew so often."""


class Lockers(Clients):
    """The locking clients of one life of a store."""

    def __init__(self, store: Store, model: KVModel, random: Random, counts: Counter[str]) -> None:
        super().__init__(store, model, random, counts)
        self.held: dict[bytes, dict[LockingTransaction, LockMode]] = defaultdict(dict)

    async def work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            transaction = LockingTransaction(self)
            try:
                await transaction.run()
            except REFUSED as error:
                self.counts[f"lockers refused: {type(error).__name__}"] += 1
            except StoreClosed:
                return
            finally:
                transaction.let_go(())
            await asyncio.sleep(self.random.choice((0.0, 0.001, 0.01)))


class LockingTransaction(ExplicitTransaction):
    """One explicit transaction of a locking client."""

    def __init__(self, lockers: Lockers) -> None:
        super().__init__(lockers)
        self.lockers = lockers
        self.locked: dict[bytes, bytes | None] = {}
        """Keys that it has not written and holds, with what it read of them since."""
        self._before: dict[int, tuple[set[bytes], dict[bytes, bytes | None]]] = {}
        """The keys held and the rows read at each savepoint."""

    @property
    def running(self) -> bool:
        """Whether the transaction has neither committed nor been aborted."""
        with suppress(KVError):
            self.transaction.check_running()
            return True
        return False

    async def _statement(self) -> None:
        await self.transaction.begin_statement()
        statements = [
            self._write, self._write_anew, self._insert, self._get_each, self._first_existing,
            self._some_rows, self._lock, self._lock, self._lock_name, self._savepoint,
            self._release, self._roll_back_to,
        ]  # fmt: skip
        await self.random.choice(statements)()

    # Locks

    async def _lock(self) -> None:
        mode, when = self.random.choice(list(LockMode)), self.random.choice(list(WhenLocked))
        names = self.random.sample(KEYS, self.random.choice((1, 2, 5)))
        before = await self.transaction.savepoint()
        try:
            got = await self.transaction.lock(names, mode=mode, when_locked=when)
        except LockUnavailable:
            assert when is WhenLocked.NOWAIT, when
            self.clients.counts["locks refused"] += 1
            await self.transaction.rollback_to(before)
            await self.transaction.release(before)
            return
        await self.transaction.release(before)
        assert got == names or when is WhenLocked.SKIP, (got, names)
        self.clients.counts["locks skipped"] += len(names) - len(got)
        self._hold(got, mode)
        bodies = await self.transaction.get_each(got)
        for name, body in zip(got, bodies, strict=True):
            self._note(Span.point(name), {} if body is None else {name: body})
            if name not in self.own:
                self.locked[name] = body

    async def _lock_name(self) -> None:
        name, mode = self.random.choice(LOCK_NAMES), self.random.choice(list(LockMode))
        if self in self.lockers.held[name]:
            return  # in which of the modes, an unlock would have to know
        await self.transaction.lock([name], mode=mode)
        self._hold([name], mode)
        if self.random.random() < 0.5:
            await asyncio.sleep(self.random.choice((0.0, 0.002)))
            if self.running:
                self.lockers.held[name].pop(self, None)
                await self.transaction.unlock([name], mode=mode)
                self.clients.counts["names unlocked"] += 1

    def _hold(self, names: list[bytes], mode: LockMode) -> None:
        """Notes who holds the keys, which nobody may hold in a mode that excludes this one."""
        if self.model.frozen or not self.running:
            return
        for name in names:
            holders = self.lockers.held[name]
            for other, theirs in holders.items():
                if other is not self and other.running:
                    shared = mode is theirs is LockMode.SHARED
                    assert shared, f"{name!r} is held by {other.transaction} and {self.transaction}"
            if holders.get(self) is not LockMode.EXCLUSIVE:
                holders[self] = mode
        self.clients.counts["keys locked"] += len(names)

    def let_go(self, kept: set[bytes] | tuple[()]) -> None:
        """Notes that it holds no more than these keys."""
        for name, holders in self.lockers.held.items():
            if name not in kept:
                holders.pop(self, None)

    # Savepoints

    async def _savepoint(self) -> None:
        await super()._savepoint()
        held = {name for name, holders in self.lockers.held.items() if self in holders}
        self._before[self.savepoints[-1][0].sequence] = held, dict(self.locked)

    async def _release(self) -> None:
        if self.savepoints:
            place = self.random.randrange(len(self.savepoints))
            await self.transaction.release(self.savepoints[place][0])
            del self.savepoints[place:]
            self.clients.counts["savepoints released"] += 1

    async def _roll_back_to(self) -> None:
        # A key that was shared before and locked alone since is shared again: nothing is noted of
        # it, for nobody else can tell.
        self.let_go(())
        locked, self.locked = self.locked, {}
        if not self.savepoints:
            self.locked = locked
            return
        await super()._roll_back_to()
        _, before = self._before[self.savepoints[-1][0].sequence]
        self.locked = {name: body for name, body in before.items() if name in locked}

    # Reads and writes of several keys

    async def _write_anew(self) -> None:
        """A statement that begins anew where it meets a newer version, under READ COMMITTED."""
        if self.isolation is not Isolation.READ_COMMITTED:
            await self._write()
            return
        names = self.random.sample(KEYS, 2)
        self.statements += 1
        writes = dict.fromkeys(names, b"%d.%d" % (self.ticket, self.statements))
        begun = await self.transaction.savepoint()
        for attempt in range(ATTEMPTS_MAX):
            try:
                await self.transaction.put(list(writes), list(writes.values()))
                break
            except WriteConflict as conflict:
                if attempt + 1 == ATTEMPTS_MAX:
                    raise
                begun = await self.transaction.look_again(begun, conflict)
                self.clients.counts["statements begun anew"] += 1
        await self.transaction.release(begun)
        self.own |= writes

    async def _insert(self) -> None:
        names = self.random.sample(KEYS, self.random.choice((1, 3)))
        self.statements += 1
        writes = dict.fromkeys(names, b"%d.%d" % (self.ticket, self.statements))
        if await self.transaction.insert(list(writes), list(writes.values())):
            for name in names:
                self._note(Span.point(name), {})
            self.own |= writes
            self.clients.counts["inserts in one step"] += 1

    async def _get_each(self) -> None:
        names = self.random.sample(KEYS, 3)
        bodies = await self._either(lambda: self.transaction.get_each(names))
        for name, body in zip(names, bodies, strict=True):
            self._note(Span.point(name), {} if body is None else {name: body})

    async def _first_existing(self) -> None:
        names = self.random.sample(KEYS, self.random.choice((1, 4)))
        found = await self.transaction.first_existing(names)
        if found is None:
            for name in names:
                self._note(Span.point(name), {})
            return
        body = await self.transaction.get(names[found])
        assert body is not None, f"{names[found]!r} was said to be there"
        self._note(Span.point(names[found]), {names[found]: body})

    async def _some_rows(self) -> None:
        """Reads the first or the last rows of a span: all the rows of a part of it."""
        span, limit = self.clients._some_span(), self.random.choice((1, 3))
        reverse = self.random.random() < 0.5
        rows = await self.transaction.scan(span, limit=limit, reverse=reverse)
        assert [key for key, _ in rows] == sorted((key for key, _ in rows), reverse=reverse)
        if len(rows) == limit:
            last = rows[-1][0]
            span = Span(last, span.end) if reverse else Span(span.start, last + b"\x00")
        self._note(span, dict(rows))

    async def _commit(self) -> None:
        await super()._commit()
        before = Timestamp(self.transaction.write_timestamp - 1)
        for name, body in self.locked.items():
            rows = {} if body is None else {name: body}
            who = f"transaction {self.ticket}, which had locked it"
            self.model.note_read(Read(at=before, span=Span.point(name), rows=rows, who=who))
