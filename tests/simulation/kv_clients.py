"""Clients of a simulated store: transactions of every kind, and readers of the past.

Each tells the model what it asks and what it was answered. None knows what is right.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

from tailrace.kvlayer.access import Release
from tailrace.kvlayer.clock import ZERO, Timestamp, duration
from tailrace.kvlayer.errors import (
    BatchTimestampBeforeGC,
    LockTimeout,
    RetryableTransaction,
    StoreClosed,
    StoreFull,
    TakesWaiting,
)
from tailrace.kvlayer.savepoint import Savepoint
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import Isolation, Priority
from tailrace.kvlayer.txn import Transaction
from tailrace.kvlayer.txn.immediate import ALONE_AFTER, ImmediateStore
from tailrace.kvlayer.txn.one_phase import Evaluation
from tests.harness.stores import key
from tests.simulation.kv_model import KVModel, Read, Writes

T = TypeVar("T")

TABLES = (7, 8)
NAMES = "abcdefgh"
KEYS = [key(name, table) for table in TABLES for name in NAMES]
TABLE_SPANS = [Span.prefix(key("", table)) for table in TABLES]
ALL_TABLES = Span(TABLE_SPANS[0].start, TABLE_SPANS[-1].end)

REFUSED = (RetryableTransaction, LockTimeout, StoreFull, BatchTimestampBeforeGC)
"""What may be answered to a transaction that then has not happened."""

THINKING_SECONDS = (0.0,) * 6 + (0.002,) * 3 + (0.03, 0.03, 1.0)
"""Between two statements. Past the hold of the closed timestamp and past the push now and then."""

ISOLATIONS = (
    *[Isolation.SERIALIZABLE] * 4,
    Isolation.REPEATABLE_READ,
    Isolation.READ_COMMITTED,
)

LARGE_BODY = b"." * 3000
"""Larger than the smallest segment, so that an entry has one of its own."""


NEVER = Timestamp(2**62)


async def released(release: Release | None) -> None:
    """Returns when the commit is durable. Raises StoreClosed."""
    if release is None:
        return
    told: asyncio.Future[StoreClosed | None] = asyncio.get_running_loop().create_future()
    release(lambda refusal: None if told.done() else told.set_result(refusal))
    refusal = await told
    if refusal is not None:
        raise refusal


class Clients:
    """Random clients of one life of a store."""

    def __init__(self, store: Store, model: KVModel, random: Random, counts: Counter[str]) -> None:
        self.store = store
        self.model = model
        self.random = random
        self.counts = counts
        self._coin = Random(repr(random.getstate()))

    async def work(self, stop: asyncio.Event) -> None:
        """One client: one thing after the other, until it is told to stop or the store is gone."""
        actions: list[Callable[[], object]] = [
            *[self._blind_write] * 5,
            *[self._read_and_write] * 2,
            *[self._explicit] * 6,
            self._delete_range,
            self._look_back,
            self._list_versions,
        ]
        while not stop.is_set():
            action = self.random.choice(actions)()
            assert asyncio.iscoroutine(action)
            try:
                await action
            except REFUSED as error:
                self.counts[f"refused: {type(error).__name__}"] += 1
            except StoreClosed:
                return
            await asyncio.sleep(self.random.choice((0.0, 0.001, 0.01)))

    # One phase

    async def _blind_write(self) -> None:
        await self._one_phase(lambda evaluation, writes: None)

    async def _read_and_write(self) -> None:
        name, span = self.random.choice(KEYS), self._some_span()

        def look(evaluation: Evaluation, writes: Writes) -> None:
            found = evaluation.get(name)
            rows = dict(evaluation.scan(span))
            at = Timestamp(evaluation.timestamp - 1)
            point = {} if found is None else {name: found}
            reads.extend(
                (
                    Read(at=at, span=Span.point(name), rows=point, who="one phase"),
                    Read(at=at, span=span, rows=rows, who="one phase"),
                )
            )

        reads: list[Read] = []
        await self._one_phase(look)
        for read in reads[-2:]:  # of the evaluation that counted
            self.model.note_read(read)

    async def _delete_range(self) -> None:
        """Deletes a span of one table, and says whose deletion it was in the other."""
        names = sorted(self.random.sample(KEYS[: len(NAMES)], 2))
        span = self.random.choice((TABLE_SPANS[0], Span(*names)))
        witness = self.random.choice(KEYS[len(NAMES) :])
        ticket = self.model.begin()
        body = b"%d" % ticket
        deleted = dict.fromkeys([name for name in KEYS if span.contains(name)])

        def evaluate(evaluation: Evaluation) -> None:
            evaluation.delete_range(span)
            evaluation.put([witness], [body])

        await self._submit(ticket, {**deleted, witness: body}, evaluate)
        self.counts["range deletions"] += 1

    async def _one_phase(self, look: Callable[[Evaluation, Writes], None]) -> None:
        ticket = self.model.begin()
        writes = self._some_writes(ticket, self.random.choice((1, 1, 2, 4)))

        def evaluate(evaluation: Evaluation) -> None:
            look(evaluation, writes)
            for name, body in writes.items():
                if body is None:
                    evaluation.delete([name])
                else:
                    evaluation.put([name], [body])

        await self._submit(ticket, writes, evaluate)

    async def _submit(
        self, ticket: int, writes: Writes, evaluate: Callable[[Evaluation], None]
    ) -> None:
        self.model.submit(ticket, writes)
        try:
            at = await self._committed(evaluate)
        except REFUSED:
            self.model.abort(ticket)
            raise
        self.model.commit(ticket, at)
        self.counts["one-phase commits"] += 1

    async def _committed(self, evaluate: Callable[[Evaluation], None]) -> Timestamp:
        """The timestamp of a one-phase commit, when it is durable."""
        if self.at_once():
            with suppress(TakesWaiting):
                store = self.store.immediate
                self._speak(store)
                commit = store.commit(
                    evaluate, at=store.now(), deadline=lambda: NEVER, commit_called_ns=0
                )
                self.counts["commits at once"] += 1
                await released(commit.release)
                return commit.timestamp
        _, at = await self.store.one_phase(evaluate)
        return at

    def _speak(self, store: ImmediateStore) -> None:
        """One client asks, so often that the store takes it to be alone, or another does, once."""
        alone = self._coin.random() < 0.5
        for _ in range(ALONE_AFTER + 1 if alone else 1):
            store.heard(int(alone))
        self.counts["commits of one who is alone"] += alone

    def at_once(self) -> bool:
        """Whether a statement is to be tried in one step, as the Postgres door carries out most.
        The coin has a seed of its own."""
        return self._coin.random() < 0.5

    # Explicit transactions

    async def _explicit(self) -> None:
        await ExplicitTransaction(self).run()

    # Readers of the past

    def some_past(self) -> Timestamp:
        """The present, a moment ago, or a time that may be gone."""
        now = self.store.clock.now()
        ago = self.random.choice((0.0, 0.001, 0.05, 0.5))
        return Timestamp(max(1, now - duration(seconds=self.random.random() * ago)))

    async def _look_back(self) -> None:
        if self.at_once():
            with suppress(TakesWaiting):
                self._look_now()
                return
        reader, span = self.store.snapshot(self.some_past()), self._some_span()
        rows: dict[bytes, bytes] = {}
        async for part in reader.scan_slices(span):
            rows |= dict(part)
            await asyncio.sleep(self.random.choice((0.0, 0.02)))
        self.model.note_read(Read(at=reader.at, span=span, rows=rows, who="snapshot"))

    def _look_now(self) -> None:
        """Reads one key in this step. Raises TakesWaiting."""
        name, at = self.random.choice(KEYS), self.store.immediate.now()
        found = self.store.immediate.get(name, at)
        rows = {} if found is None else {name: found}
        self.model.note_read(Read(at=at, span=Span.point(name), rows=rows, who="at once"))
        self.counts["reads at once"] += 1

    async def _list_versions(self) -> None:
        """Every version in an interval is a version that was committed in it, and none lacks."""
        upto, span = self.some_past(), self._some_span()
        after = self.random.choice((ZERO, self.some_past()))
        if after >= upto:
            return
        rows: dict[bytes, bytes] = {}
        newest: dict[bytes, bytes | None] = {}
        async for versions in self.store.versions(span, after, upto):
            newest |= {name: body for name, _, body in versions}
        base = {name: self.model.get(name, after) for name in KEYS if span.contains(name)}
        rows = {name: body for name, body in (base | newest).items() if body is not None}
        if not self.model.frozen and after == ZERO:
            self.model.note_read(Read(at=upto, span=span, rows=rows, who="versions"))

    # Choices

    def _some_span(self) -> Span:
        kind = self.random.random()
        if kind < 0.4:
            return self.random.choice(TABLE_SPANS)
        if kind < 0.5:
            return ALL_TABLES
        first, last = sorted(self.random.sample(KEYS, 2))
        return Span(first, last)

    def _some_writes(self, ticket: int, count: int) -> dict[bytes, bytes | None]:
        return self.bodies(ticket, self.random.sample(KEYS, count), 0)

    def bodies(self, ticket: int, names: Sequence[bytes], number: int) -> dict[bytes, bytes | None]:
        """New bodies that tell whose they are, and deletions after the first."""
        writes: dict[bytes, bytes | None] = {}
        for name in names:
            gone = writes and self.random.random() < 0.3
            writes[name] = None if gone else b"%d.%d" % (ticket, number)
        if self.random.random() < 0.03:
            writes[names[0]] = b"%d.%d%s" % (ticket, number, LARGE_BODY)
        return writes


class ExplicitTransaction:
    """One explicit transaction: some statements, and one end or another."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.random = clients.random
        self.model = clients.model
        self.ticket = clients.model.begin()
        self.isolation = self.random.choice(ISOLATIONS)
        self.transaction: Transaction = clients.store.begin(
            lock_timeout=0.5,
            isolation=self.isolation,
            priority=self.random.choice((Priority.NORMAL,) * 4 + (Priority.LOW, Priority.HIGH)),
        )
        self.savepoints: list[tuple[Savepoint, dict[bytes, bytes | None]]] = []
        self.own: dict[bytes, bytes | None] = {}
        self.reads: list[Read] = []
        self.statements = 0

    async def run(self) -> None:
        try:
            for _ in range(self.random.choice((1, 2, 3, 6))):
                await self._statement()
                await asyncio.sleep(self.random.choice(THINKING_SECONDS))
            end = self.random.random()
            if end < 0.75 and any(self.own.values()):
                await self._commit()
            elif end < 0.96:
                await self.transaction.rollback()
                self.clients.counts["rollbacks"] += 1
            else:
                # Dropped without a word, as a client that died: nobody heartbeats it any more.
                self.clients.counts["abandoned"] += 1
        except REFUSED:
            self.model.abort(self.ticket)
            await self.transaction.rollback()
            raise
        except asyncio.CancelledError:
            raise
        finally:
            # However it ended, what it was told when it asked was true.
            for read in self.reads:
                self.model.note_read(read)

    async def _statement(self) -> None:
        statements = [
            self._write,
            self._write,
            self._write,
            self._get,
            self._scan,
            self._get_for_update,
            self._savepoint,
            self._roll_back_to,
        ]
        await self.transaction.begin_statement()
        await self.random.choice(statements)()

    async def _write(self) -> None:
        names = self.random.sample(KEYS, self.random.choice((1, 1, 3)))
        self.statements += 1
        writes = self.clients.bodies(self.ticket, names, self.statements)
        gone = [name for name, body in writes.items() if body is None]
        puts = {name: body for name, body in writes.items() if body is not None}
        await self._either(lambda: self.transaction.put(list(puts), list(puts.values())))
        self.own |= puts
        if gone:
            await self._either(lambda: self.transaction.delete(gone))
            self.own |= dict.fromkeys(gone)

    async def _either(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of what is one step where nothing is in its way."""
        if self.clients.at_once():
            with suppress(TakesWaiting):
                found = self.clients.store.immediate.write(self.transaction, work())
                self.clients.counts["statements at once"] += 1
                return found
        return await work()

    async def _savepoint(self) -> None:
        self.savepoints.append((await self.transaction.savepoint(), dict(self.own)))

    async def _roll_back_to(self) -> None:
        if self.savepoints:
            place = self.random.randrange(len(self.savepoints))
            del self.savepoints[place + 1 :]
            savepoint, own = self.savepoints[place]
            await self.transaction.rollback_to(savepoint)
            self.own = dict(own)
            self.clients.counts["savepoint rollbacks"] += 1

    async def _get(self, *, for_update: bool = False) -> None:
        name = self.random.choice(KEYS)
        found = await self._either(lambda: self.transaction.get(name, for_update=for_update))
        self._note(Span.point(name), {} if found is None else {name: found})

    async def _get_for_update(self) -> None:
        await self._get(for_update=True)

    async def _scan(self) -> None:
        span = self.clients._some_span()
        self._note(span, dict(await self.transaction.scan(span)))

    def _note(self, span: Span, rows: dict[bytes, bytes]) -> None:
        # Its timestamps are its own alone: what it may later commit there, it has not read.
        at = Timestamp(self.transaction.read_timestamp - 1)
        self.reads.append(
            Read(at=at, span=span, rows=rows, own=dict(self.own), who=f"transaction {self.ticket}")
        )

    async def _committed(self) -> Timestamp:
        if self.clients.at_once():
            with suppress(TakesWaiting):
                commit = self.clients.store.immediate.commit_transaction(
                    self.transaction, deadline=lambda: NEVER, commit_called_ns=0
                )
                self.clients.counts["commits at once"] += 1
                await released(commit.release)
                return commit.timestamp
        return await self.transaction.commit()

    async def _commit(self) -> None:
        self.model.submit(self.ticket, self.own)
        at = await self._committed()
        self.model.commit(self.ticket, at)
        self.clients.counts["explicit commits"] += 1
        self.clients.counts[f"commits: {self.isolation.value}"] += 1
        if self.isolation is not Isolation.SERIALIZABLE:
            return
        # All of it happened at the commit timestamp.
        before = Timestamp(at - 1)
        for read in self.reads:
            self.model.note_read(
                Read(at=before, span=read.span, rows=read.rows, own=read.own, who=read.who)
            )
