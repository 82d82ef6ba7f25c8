"""A span feed over many ranges costs what there is to tell."""

from __future__ import annotations

import asyncio

from tailrace.kvlayer.events import Checkpoint, Event, ValueBatch
from tailrace.kvlayer.rangefeed import RangeFeed, SpanFeed
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store, unbuffered

RANGES = 1000
NAMES = [key(f"{number:04}") for number in range(RANGES)]
SPAN = Span(NAMES[0], key("~"))


async def split_all(store: Store) -> None:
    await asyncio.gather(*(store.split(name) for name in NAMES))


async def settle(sim: Simulation, feed: SpanFeed) -> None:
    """Lets the feed come to rest."""
    until = sim.now + 0.5
    while sim.now < until:
        await feed.next()
    assert feed.piece_count == RANGES


class PollCount:
    """Counts polls of range feeds, which is what a span feed spends."""

    def __init__(self) -> None:
        self.polls = 0
        self._poll = RangeFeed.poll

    def __enter__(self) -> PollCount:
        def poll(feed: RangeFeed) -> list[Event]:
            self.polls += 1
            return self._poll(feed)

        RangeFeed.poll = poll  # type: ignore[assignment, method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        RangeFeed.poll = self._poll  # type: ignore[method-assign]


def test_idle_ranges_cost_one_checkpoint_a_tick() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await split_all(store)
            feed = store.span_feed([SPAN], store.clock.now())
            await settle(sim, feed)
            before, events = feed.frontier.low_water, list[Event]()
            with PollCount() as count:
                until = sim.now + 1.0
                while sim.now < until:
                    events += await feed.next()
            assert count.polls == 0
            assert 80 <= len(events) <= 101
            assert all(isinstance(each, Checkpoint) and each.spans == (SPAN,) for each in events)
            assert feed.frontier.low_water > before
            feed.close()

    sim.run(main())


def test_intents_in_one_range_hold_back_that_range_alone() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await split_all(store)
            feed = store.span_feed([SPAN], store.clock.now())
            transaction = store.begin()
            await transaction.put([NAMES[500]], [b"1"])
            await settle(sim, feed)
            with PollCount() as count:
                until = sim.now + 1.0
                while sim.now < until:
                    await feed.next()
            assert count.polls <= 110  # those of the one range
            written_at = transaction.write_timestamp
            assert feed.frontier.at(NAMES[500]) == written_at - 1
            await transaction.rollback()
            while feed.frontier.low_water <= written_at:
                await feed.next()
            feed.close()

    sim.run(main())


def test_rows_of_many_ranges_come_with_few_checkpoints() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            await split_all(store)
            feed = store.span_feed([SPAN], store.clock.now())
            await settle(sim, feed)
            at = await put(store, dict.fromkeys(NAMES, b"v"))
            rows = 0
            while feed.frontier.low_water < at:
                for event in await feed.next():
                    rows += len(event) if isinstance(event, ValueBatch) else 0
            assert rows == RANGES
            feed.close()
            await asyncio.sleep(0.1)
            assert store._ranges.delivery.feed_count == 0

    sim.run(main())
