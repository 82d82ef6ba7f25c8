"""Concurrent random transactions over lists, judged by the dependencies between them.

Clients append to lists and read them, with pushes, priorities, lock timeouts, savepoints that are
gone back to, rollbacks and one-phase transactions in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tailrace.kvlayer.errors import (
    Deadlock,
    LockTimeout,
    LockUnavailable,
    RetryableTransaction,
    WriteConflict,
)
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import Isolation, LockMode, Priority, WhenLocked
from tailrace.kvlayer.txn import Evaluation, Transaction, limits, resolution, rewind
from tests.harness.list_append import Anomaly, History, Status, check
from tests.harness.simulation import Simulation
from tests.harness.stores import key, running_store

KEYS = [key(f"{i}") for i in range(5)]
SPAN = table_span(7)
STATEMENT_ATTEMPTS = 20

Conflict = (RetryableTransaction, Deadlock, LockTimeout, LockUnavailable)


def decoded(body: bytes | None) -> list[int]:
    return [int(part) for part in body.split()] if body else []


def longer(body: bytes | None, element: int) -> bytes:
    return b" ".join([body, b"%d" % element]) if body else b"%d" % element


class Client:
    """Runs random transactions one after another, and notes what each did and saw."""

    def __init__(self, store: Store, name: int, isolation: Isolation, random: Random) -> None:
        self.store = store
        self.name = name
        self.isolation = isolation
        self.random = random
        self.histories: list[History] = []
        self.elements = iter(range(name, 1 << 30, 100))

    async def run(self, rounds: int) -> None:
        for number in range(rounds):
            history = History(f"{self.name}.{number}")
            self.histories.append(history)
            work = self.one_phase if self.random.random() < 0.2 else self.explicit
            try:
                await work(history)
            except Conflict:
                history.status = Status.ABORTED
            await asyncio.sleep(self.random.random() * 0.002)

    async def one_phase(self, history: History) -> None:
        chosen, element = self.random.choice(KEYS), next(self.elements)
        seen = self.random.choice(KEYS)

        def evaluate(evaluation: Evaluation) -> tuple[list[int], list[int]]:
            read, before = decoded(evaluation.get(seen)), evaluation.get(chosen)
            evaluation.put([chosen], [longer(before, element)])
            return read, decoded(before)

        (read, before), _ = await self.store.one_phase(evaluate, lock_timeout=0.05)
        history.read(seen, read)
        history.read(chosen, before)
        history.append(chosen, element)
        history.status = Status.COMMITTED

    async def explicit(self, history: History) -> None:
        transaction = self.store.begin(
            lock_timeout=0.05,
            isolation=self.isolation,
            priority=self.random.choice([Priority.NORMAL] * 6 + [Priority.LOW, Priority.HIGH]),
        )
        try:
            for _ in range(self.random.randint(1, 5)):
                await self.operation(transaction, history)
                await self.dither()
            if self.random.random() < 0.1:
                await transaction.rollback()
                history.status = Status.ABORTED
                return
            await transaction.commit()
        except BaseException:
            await transaction.rollback()
            raise
        history.status = Status.COMMITTED

    async def operation(self, transaction: Transaction, history: History) -> None:
        """One statement; now and then one that a savepoint takes back."""
        kind = self.random.choice([self.read, self.scan, self.append, self.append])
        if self.random.random() < 0.15:
            savepoint = await transaction.savepoint()
            scrap = History("scrap")
            for _ in range(self.random.randint(1, 2)):
                await self.statement(transaction, scrap, self.append)
            await self.dither()
            await transaction.rollback_to(savepoint)
            await transaction.release(savepoint)
        await self.statement(transaction, history, kind)

    async def statement(
        self,
        transaction: Transaction,
        history: History,
        kind: Callable[[Transaction, History], Awaitable[None]],
    ) -> None:
        if self.isolation is not Isolation.READ_COMMITTED:
            await kind(transaction, history)
            return
        await transaction.begin_statement()
        savepoint = await transaction.savepoint()
        for _ in range(STATEMENT_ATTEMPTS):
            tried = History("tried")
            try:
                await kind(transaction, tried)
            except WriteConflict as conflict:
                savepoint = await transaction.look_again(savepoint, conflict)
            else:
                await transaction.release(savepoint)
                history.operations += tried.operations
                return
        raise RetryableTransaction("looked again too often")

    async def read(self, transaction: Transaction, history: History) -> None:
        chosen = self.random.choice(KEYS)
        if self.random.random() < 0.3:
            mode = self.random.choice(list(LockMode))
            when = self.random.choice(list(WhenLocked))
            if not await transaction.lock((chosen,), mode=mode, when_locked=when):
                return
        history.read(chosen, decoded(await transaction.get(chosen)))

    async def scan(self, transaction: Transaction, history: History) -> None:
        rows = dict(await transaction.scan(SPAN))
        for name in KEYS:
            history.read(name, decoded(rows.get(name)))

    async def append(self, transaction: Transaction, history: History) -> None:
        chosen, element = self.random.choice(KEYS), next(self.elements)
        before = await transaction.get(chosen)
        if self.random.random() < 0.3:
            await self.dither()
        await transaction.put([chosen], [longer(before, element)])
        history.read(chosen, decoded(before))
        history.append(chosen, element)

    async def dither(self) -> None:
        if self.random.random() < 0.7:
            await asyncio.sleep(self.random.random() * 0.003)


async def nemesis(store: Store, random: Random) -> None:
    """Pushes transactions, closes timestamps and looks at invariants, at random moments."""
    while True:
        await asyncio.sleep(random.random() * 0.004)
        store.check_invariants()
        if random.random() < 0.5:
            store.closed_timestamps.close()
        feed = store.span_feed([SPAN], store.clock.last)
        feed.close()


def anomalies(seed: int, isolation: Isolation, *, rounds: int = 25) -> list[Anomaly]:
    sim = Simulation(seed)

    async def main() -> list[Anomaly]:
        async with running_store(sim) as store:
            clients = [
                Client(store, name, isolation, Random(f"{seed}:{name}")) for name in range(6)
            ]
            pushing = asyncio.create_task(nemesis(store, Random(f"{seed}:nemesis")))
            await asyncio.gather(*(client.run(rounds) for client in clients))
            pushing.cancel()
            last = History("last", status=Status.COMMITTED)
            for name, body in await store.snapshot(store.clock.last).scan(SPAN):
                last.read(name, decoded(body))
            histories = [history for client in clients for history in client.histories]
            committed = sum(history.status is Status.COMMITTED for history in histories)
            assert committed > len(histories) / 4, "most of it must come to something"
            return check([*histories, last])

    return sim.run(main())


@pytest.mark.parametrize("seed", range(25))
def test_serializable_histories_have_no_circle(seed: int) -> None:
    assert anomalies(seed, Isolation.SERIALIZABLE) == []


@pytest.mark.parametrize("seed", range(8))
def test_sliced_commits_and_rollbacks_have_no_circle(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (limits, resolution, rewind):
        monkeypatch.setattr(module, "COMMAND_ROWS_MAX", 1)
    assert anomalies(seed, Isolation.SERIALIZABLE) == []


def test_repeatable_read_shows_write_skew_and_nothing_else() -> None:
    kinds = {
        anomaly.kind for seed in range(15) for anomaly in anomalies(seed, Isolation.REPEATABLE_READ)
    }
    assert kinds == {"G2"}


def test_read_committed_shows_no_dirty_read() -> None:
    kinds = {
        anomaly.kind for seed in range(15) for anomaly in anomalies(seed, Isolation.READ_COMMITTED)
    }
    assert "G-single" in kinds
    assert kinds <= {"G-single", "G2"}
