"""Random histories against an exact model: every read is what serial execution would have read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.errors import Deadlock, LockTimeout, RetryableTransaction
from tailrace.kvlayer.events import Checkpoint, ValueBatch
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.rangefeed import SpanFeed
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Evaluation, limits, resolution
from tests.harness.simulation import Simulation
from tests.harness.stores import key, running_store

KEYS = [key(f"{i}") for i in range(6)]
SPAN = table_span(7)

Row = tuple[bytes, bytes]


@dataclass
class Outcome:
    """What a committed transaction read, in order, and wrote."""

    at: Timestamp
    reads: list[tuple[Span, list[Row]]]
    writes: dict[bytes, bytes | None]


@dataclass
class History:
    """Transactions by commit timestamp, which is the order in which they must make sense."""

    outcomes: list[Outcome] = field(default_factory=list)
    failures: int = 0

    def check(self) -> dict[bytes, bytes]:
        """Runs them serially against a map. Returns what is left in it."""
        state: dict[bytes, bytes] = {}
        times = [outcome.at for outcome in self.outcomes if outcome.writes]
        assert len(times) == len(set(times)), "commit timestamps are unique"
        # A reader at `t` sees the writer that committed at `t`.
        for outcome in sorted(self.outcomes, key=lambda each: (each.at, not each.writes)):
            mine: dict[bytes, bytes | None] = {}
            for span, found in outcome.reads:
                expected = [(k, v) for k, v in sorted(state.items()) if span.contains(k)]
                assert found == expected, (outcome.at, span, found, expected)
            mine.update(outcome.writes)
            for name, body in mine.items():
                if body is None:
                    state.pop(name, None)
                else:
                    state[name] = body
        return state


class Client:
    """Runs random transactions. Reads come before writes, so that the model need not overlay."""

    def __init__(self, store: Store, history: History, random: Random, name: int) -> None:
        self.store = store
        self.history = history
        self.random = random
        self.name = name
        self.count = 0

    async def run(self, rounds: int) -> None:
        for _ in range(rounds):
            kind = self.random.choice([self.explicit, self.explicit, self.one_phase, self.reader])
            try:
                await kind()
            except (RetryableTransaction, Deadlock, LockTimeout):
                self.history.failures += 1
            await asyncio.sleep(self.random.random() * 0.002)

    def span(self) -> Span:
        low = self.random.randrange(len(KEYS))
        high = self.random.randrange(low, len(KEYS))
        return Span(KEYS[low], KEYS[high] + b"\x00")

    def choose(self) -> dict[bytes, bytes | None]:
        self.count += 1
        body = f"{self.name}.{self.count}".encode()
        chosen = self.random.sample(KEYS, self.random.randint(1, 3))
        return {name: body if self.random.random() < 0.8 else None for name in chosen}

    async def explicit(self) -> None:
        transaction = self.store.begin(lock_timeout=0.05)
        reads: list[tuple[Span, list[Row]]] = []
        writes: dict[bytes, bytes | None] = {}
        try:
            for _ in range(self.random.randint(0, 3)):
                span = self.span()
                if self.random.random() < 0.3:
                    name = span.start
                    body = await transaction.get(name, for_update=self.random.random() < 0.5)
                    reads.append((Span.point(name), [] if body is None else [(name, body)]))
                else:
                    reads.append((span, await transaction.scan(span)))
                await self.dither()
            for _ in range(self.random.randint(0, 2)):
                chosen = self.choose()
                writes |= chosen
                puts = {name: body for name, body in chosen.items() if body is not None}
                await transaction.put(list(puts), list(puts.values()))
                await transaction.delete([name for name in chosen if name not in puts])
                await self.dither()
            if self.random.random() < 0.15:
                await transaction.rollback()
                return
            at = await transaction.commit()
        except BaseException:
            if transaction.state.name == "PENDING":
                await transaction.rollback()
            raise
        self.history.outcomes.append(Outcome(at, reads, writes))

    async def one_phase(self) -> None:
        span, chosen = self.span(), self.choose()
        puts = {name: body for name, body in chosen.items() if body is not None}

        def evaluate(evaluation: Evaluation) -> list[Row]:
            found = evaluation.scan(span)
            evaluation.put(list(puts), list(puts.values()))
            evaluation.delete([name for name in chosen if name not in puts])
            return found

        found, at = await self.store.one_phase(evaluate, lock_timeout=0.05)
        self.history.outcomes.append(Outcome(at, [(span, found)], chosen))

    async def reader(self) -> None:
        at = Timestamp(self.store.clock.last - self.random.randrange(2) * (1 << 20))
        reader = self.store.snapshot(at, lock_timeout=0.05)
        reads = []
        for _ in range(2):
            span = self.span()
            reads.append((span, await reader.scan(span)))
            await self.dither()
        self.history.outcomes.append(Outcome(at, reads, {}))

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
        running = store._ranges.running
        if running and random.random() < 0.5:
            await store._ranges.push(random.choice(running).id)


@dataclass
class Observer:
    """Holds a feed to its promises while transactions come and go."""

    seen: dict[tuple[bytes, Timestamp], bytes | None] = field(default_factory=dict)
    newest: dict[bytes, Timestamp] = field(default_factory=dict)
    resolved: Timestamp = ZERO

    async def watch(self, feed: SpanFeed) -> None:
        while True:
            for event in await feed.next():
                match event:
                    case ValueBatch():
                        rows = zip(event.keys, event.timestamps, event.values, strict=True)
                        for name, ts, body in rows:
                            assert ts > self.newest.get(name, ZERO), "ascends per key"
                            assert ts > self.resolved, "nothing new below a checkpoint"
                            self.newest[name] = ts
                            self.seen[name, ts] = body
                    case Checkpoint():
                        self.resolved = max(self.resolved, event.resolved)


@pytest.mark.parametrize("seed", range(30))
def test_history_is_serializable(seed: int) -> None:
    check_history(seed)


@pytest.mark.parametrize("seed", range(15))
def test_history_of_sliced_commits_is_serializable(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One intent a command: every commit goes by its record, and readers meet what is left."""
    monkeypatch.setattr(limits, "COMMAND_ROWS_MAX", 1)
    monkeypatch.setattr(resolution, "COMMAND_ROWS_MAX", 1)
    check_history(seed)


def check_history(seed: int) -> None:
    sim = Simulation(seed)

    async def main() -> None:
        async with running_store(sim, settings=Settings()) as store:
            history = History()
            clients = [
                Client(store, history, Random(f"{seed}:{name}"), name).run(25) for name in range(6)
            ]
            observer = Observer()
            feed = store.span_feed([SPAN], store.clock.last)
            watching = asyncio.create_task(observer.watch(feed))
            pushing = asyncio.create_task(nemesis(store, Random(f"{seed}:nemesis")))
            await asyncio.gather(*clients)
            pushing.cancel()
            left = history.check()
            end = store.clock.last
            while observer.resolved < end:
                assert not watching.done(), watching.exception()
                await asyncio.sleep(0.01)
            watching.cancel()
            feed.close()
            versions = {
                (name, ts): body
                async for rows in store.versions(SPAN, ZERO, end)
                for name, ts, body in rows
            }
            assert observer.seen == versions
            assert await store.snapshot(store.clock.last).scan(SPAN) == sorted(left.items())
            assert len(history.outcomes) > history.failures

    sim.run(main())
