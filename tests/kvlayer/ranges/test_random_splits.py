"""Ranges split and merge at random under transactions and feeds, and the power fails in between.

One seed is one history: two lives of a store, the first of which ends in a crash at some moment.
Every transaction writes a body of its own, so what the store holds in the end says which of them
happened, whole or not at all; and the feeds must have told exactly that.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tailrace.kvlayer.clock import MAX_TIMESTAMP, ZERO, Timestamp
from tailrace.kvlayer.errors import KVError, RangeRefused, StoreClosed
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, key, open_store, put, reopen
from tests.harness.validators import History, Watch

NAMES = [key(f"{name}", table) for table in (7, 8) for name in "abcdefgh"]
FIRST, SECOND = Span.prefix(key("", 7)), Span.prefix(key("", 8))
SEEDS = 20


class Life:
    """What happens to a store until it is closed, or its machine loses power."""

    def __init__(self, sim: Simulation, random: Random, watches: list[Watch]) -> None:
        self.sim = sim
        self.random = random
        self.watches = watches
        self.attempts: dict[bytes, frozenset[bytes]] = {}
        self.acknowledged: dict[bytes, Timestamp] = {}
        self.refused: set[bytes] = set()
        self._stopped = False

    async def run(self, store: Store, seconds: float) -> None:
        works = [self._write(store, writer) for writer in range(3)]
        works += [self._reshape(store), self._push(store)]
        tasks = [asyncio.create_task(work) for work in works]
        feeds = [asyncio.create_task(self._follow(store, watch)) for watch in self.watches]
        await asyncio.sleep(seconds)
        self._stopped = True
        if self.random.random() < 0.5:
            crash(self.sim)
            return
        await asyncio.gather(*tasks)
        for task in feeds:
            task.cancel()
        await asyncio.wait(feeds)
        store.check_invariants()
        await store.close()
        crash(self.sim)

    async def _write(self, store: Store, writer: int) -> None:
        random = self.random
        while not self._stopped:
            await asyncio.sleep(random.random() * 0.01)
            body = f"{writer}:{self.sim.now:.9f}".encode()
            keys = random.sample(NAMES, random.randint(1, 5))
            self.attempts[body] = frozenset(keys)
            try:
                if random.random() < 0.4:
                    self.acknowledged[body] = await put(store, dict.fromkeys(keys, body))
                else:
                    await self._transact(store, keys, body)
            except StoreClosed:
                return
            except KVError:
                self.refused.add(body)

    async def _transact(self, store: Store, keys: list[bytes], body: bytes) -> None:
        random = self.random
        transaction = store.begin(lock_timeout=0.05)
        try:
            for name in keys:
                await transaction.put([name], [body])
                if random.random() < 0.3:
                    await asyncio.sleep(random.random() * 0.02)
            if random.random() < 0.2:
                await transaction.rollback()
                self.refused.add(body)
            else:
                self.acknowledged[body] = await transaction.commit()
        except KVError:
            await transaction.rollback()
            raise

    async def _reshape(self, store: Store) -> None:
        random = self.random
        while not self._stopped:
            await asyncio.sleep(random.random() * 0.02)
            try:
                if random.random() < 0.5:
                    await store.split(random.choice(NAMES))
                else:
                    await store.merge(random.choice(store.ranges()).id)
            except RangeRefused:
                pass  # the last range has none behind it
            store.check_invariants()

    async def _push(self, store: Store) -> None:
        while not self._stopped:
            await asyncio.sleep(self.random.random() * 0.03)
            running = store._ranges.running
            if running:
                await store._ranges.push(self.random.choice(running).id)

    async def _follow(self, store: Store, watch: Watch) -> None:
        for span, at in watch.entries:
            watch.note_restart(span, at)
        feed = store.span_feed_from(watch.entries, with_previous=True)
        try:
            while True:
                watch.note_events(await feed.next())
                if self.random.random() < 0.1:
                    await asyncio.sleep(self.random.random() * 0.05)
        finally:
            feed.close()


async def written(store: Store) -> dict[bytes, dict[bytes, Timestamp]]:
    """Which keys bear which body, and since when."""
    found: dict[bytes, dict[bytes, Timestamp]] = {}
    for span in (FIRST, SECOND):
        async for slice_ in store.versions(span, ZERO, store.clock.last):
            for name, at, body in slice_:
                assert body is not None, name
                found.setdefault(body, {})[name] = at
    return found


def check_transactions(life: Life, found: dict[bytes, dict[bytes, Timestamp]]) -> None:
    for body, at in life.acknowledged.items():
        assert found.get(body), f"{body!r} was acknowledged, and is lost"
        assert set(found[body].values()) == {at}, (body, found[body], at)
    for body, keys in life.attempts.items():
        if body in found:
            assert body not in life.refused, f"{body!r} was refused, and is there"
            assert found[body].keys() == keys, (body, found[body].keys(), keys)
            assert len(set(found[body].values())) == 1, (body, found[body])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_splits_and_merges_lose_nothing(seed: int) -> None:
    sim, random, history = Simulation(seed), Random(f"{seed}:life"), History()
    watches = [
        Watch(history, [(FIRST, ZERO), (SECOND, ZERO)], restarts_hidden=True),
        Watch(history, [(Span(NAMES[2], NAMES[11]), ZERO)], restarts_hidden=True),
    ]
    life = Life(sim, random, watches)

    async def first() -> None:
        await life.run(await open_store(sim), 0.4)

    async def second() -> None:
        store = await reopen(sim)
        before = [(found.id, found.span) for found in store.ranges()]
        assert len({range_id for range_id, _ in before}) == len(before)
        found = await written(store)
        check_transactions(life, found)
        again = Life(sim, random, watches)
        await again.run(store, 0.2)
        life.attempts |= again.attempts
        life.acknowledged |= again.acknowledged
        life.refused |= again.refused

    async def last() -> None:
        store = await reopen(sim)
        found = await written(store)
        check_transactions(life, found)
        commits: dict[Timestamp, dict[bytes, bytes | None]] = {}
        for body, keys in found.items():
            for name, at in keys.items():
                commits.setdefault(at, {})[name] = body
        for at, rows in sorted(commits.items()):
            history.note_commit(at, rows)
        newest = max(commits, default=ZERO)
        for watch in watches:
            for span, at in watch.entries:
                watch.note_restart(span, at)
            feed = store.span_feed_from(watch.entries, with_previous=True)
            while watch.resolved <= newest:
                watch.note_events(await feed.next())
            feed.close()
            watch.finish()
            assert not watch.failures, watch.failures[:5]
        assert newest < MAX_TIMESTAMP
        await store.close()

    sim.run(first())
    sim.run(second())
    sim.run(last())
