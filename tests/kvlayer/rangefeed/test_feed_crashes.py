"""A feed across a crash: nothing left before it was durable, and nothing is lost."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.events import Checkpoint, Event, ValueBatch
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, key, open_store, put, reopen

SPAN = Span.prefix(key(""))
Seen = dict[tuple[bytes, Timestamp], bytes | None]


class Consumer:
    """Keeps what a feed delivered, and the last checkpoint, as a sink would."""

    def __init__(self) -> None:
        self.seen: Seen = {}
        self.resolved = ZERO

    def take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, ValueBatch):
                rows = zip(event.keys, event.timestamps, event.values, strict=True)
                self.seen |= {(name, ts): body for name, ts, body in rows}
            elif isinstance(event, Checkpoint):
                self.resolved = max(self.resolved, event.resolved)

    async def follow(self, store: Store) -> None:
        with closing(store.range_feed(SPAN, self.resolved)) as feed:
            while True:
                self.take(await feed.next())


async def write_until_the_crash(sim: Simulation, consumers: list[Consumer], acked: Seen) -> None:
    store = await open_store(sim)

    async def write() -> None:
        while True:
            name, body = key(sim.random.choice("abc")), sim.random.randbytes(8)
            acked[name, await put(store, {name: body})] = body
            await asyncio.sleep(sim.random.choice((0, 0.001, 0.003)))

    async def read(consumer: Consumer) -> None:
        # Registers over and over, so that some crash finds an entry in a snapshot but not on disk.
        while True:
            await asyncio.sleep(sim.random.random() * 0.002)
            with suppress(TimeoutError):
                async with asyncio.timeout(sim.random.random() * 0.002):
                    await consumer.follow(store)

    async with asyncio.TaskGroup() as running:
        tasks = [running.create_task(write()) for _ in range(2)]
        tasks += [running.create_task(read(consumer)) for consumer in consumers]
        await asyncio.sleep(sim.random.random() * 0.06)
        crash(sim)
        for task in tasks:
            task.cancel()


async def check_after_the_crash(sim: Simulation, consumers: list[Consumer], acked: Seen) -> None:
    store = await reopen(sim)
    now = store.clock.now()
    kept: Seen = {}
    async for versions in store.versions(SPAN, ZERO, now):
        kept |= {(name, ts): body for name, ts, body in versions}
    assert acked.items() <= kept.items()
    for consumer in consumers:
        assert consumer.seen.items() <= kept.items(), "a row was delivered that was not durable"
        following = asyncio.create_task(consumer.follow(store))
        while consumer.resolved < now:
            await asyncio.sleep(0.01)
        following.cancel()
        assert consumer.seen == kept
    await store.close()


@pytest.mark.parametrize("seed", range(25))
def test_feed_resumes_after_a_crash(seed: int) -> None:
    sim, acked = Simulation(seed), Seen()
    consumers = [Consumer() for _ in range(4)]
    sim.run(write_until_the_crash(sim, consumers, acked))
    sim.run(check_after_the_crash(sim, consumers, acked))
