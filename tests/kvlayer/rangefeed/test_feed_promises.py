"""The promises of feeds, on a simulated store: random transactions, slow consumers, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import FeedEnd, LockTimeout, RangeFeedEnded, RetryableTransaction
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store
from tests.harness.validators import History, Watch

NAMES = "abcdefgh"
FIRST, SECOND = Span.prefix(key("", 7)), Span.prefix(key("", 8))
PART = Span(key("c", 7), key("f", 7))


@dataclass
class Scenario:
    """Some writers and watchers of one store. `ended_at` is set when the writers are done."""

    store: Store
    random: Random
    history: History = field(default_factory=History)
    ended_at: Timestamp | None = None
    timestamps: list[Timestamp] = field(default_factory=list)

    def rows(self) -> dict[bytes, bytes | None]:
        random = self.random
        return {
            key(random.choice(NAMES), random.choice((7, 7, 8))): (
                None if random.random() < 0.2 else random.randbytes(random.choice((4, 40)))
            )
            for _ in range(random.randint(1, 4))
        }

    def note(self, at: Timestamp, rows: Mapping[bytes, bytes | None]) -> None:
        self.history.note_commit(at, rows)
        self.timestamps.append(at)

    async def write(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(self.random.choice((0, 0.001, 0.03)))
            rows = self.rows()
            try:
                if self.random.random() < 0.5:
                    self.note(await put(self.store, rows), rows)
                else:
                    await self._write_in_steps(rows)
            except (RetryableTransaction, LockTimeout):
                pass

    async def _write_in_steps(self, rows: dict[bytes, bytes | None]) -> None:
        transaction = self.store.begin(lock_timeout=1.0)
        try:
            for name, body in rows.items():
                await self._think()
                if self.random.random() < 0.3:
                    await transaction.put([name], [b"overwritten in its own transaction"])
                if body is None:
                    await transaction.delete([name])
                else:
                    await transaction.put([name], [body])
            await self._think()
            if self.random.random() < 0.7:
                self.note(await transaction.commit(), rows)
                return
        except BaseException:
            await transaction.rollback()
            raise
        await transaction.rollback()

    async def _think(self) -> None:
        await asyncio.sleep(self.random.choice((0,) * 8 + (0.004, 0.05) * 4 + (4.0,)))

    def some_start(self) -> Timestamp:
        """Now, or the timestamp of some commit, or the beginning."""
        return self.random.choice([self.store.clock.last, Timestamp(0), *self.timestamps[-20:]])

    def finished(self, watch: Watch) -> bool:
        return self.ended_at is not None and watch.resolved >= self.ended_at

    async def watch_range(self, span: Span, *, with_previous: bool, patience: float) -> None:
        """Follows a range feed, and starts it again by hand from the last checkpoint."""
        start = self.some_start()
        watch = Watch(self.history, [(span, start)])
        feed = self.store.range_feed(span, start, with_previous=with_previous)
        while not self.finished(watch):
            try:
                watch.note_events(await feed.next())
            except RangeFeedEnded as end:
                assert end.reason is FeedEnd.SLOW_CONSUMER
                watch.note_restart(span, watch.resolved)
                feed = self.store.range_feed(span, watch.resolved, with_previous=with_previous)
            await asyncio.sleep(self.random.random() * patience)
        feed.close()
        watch.finish()
        assert not watch.failures, watch.failures

    async def watch_spans(self, patience: float) -> None:
        """Follows a span feed, which starts again by itself."""
        starts = [(span, self.some_start()) for span in (FIRST, SECOND)]
        watch = Watch(self.history, starts, restarts_hidden=True)
        feed = self.store.span_feed_from(starts)
        while not self.finished(watch):
            watch.note_events(await feed.next())
            assert feed.frontier.low_water == watch.resolved
            await asyncio.sleep(self.random.random() * patience)
        feed.close()
        watch.finish()
        assert not watch.failures, watch.failures


async def run_scenario(sim: Simulation) -> Scenario:
    settings = Settings(
        {"kv.rangefeed.buffer_bytes": sim.random.choice(("300", "1000", "67108864"))}
    )
    async with running_store(sim, settings=settings) as store:
        scenario = Scenario(store, sim.random)
        async with asyncio.TaskGroup() as watchers:
            async with asyncio.TaskGroup() as writers:
                for _ in range(3):
                    writers.create_task(scenario.write(12))
                for span in (FIRST, PART):
                    patience = sim.random.choice((0, 0.1, 0.5))
                    watchers.create_task(
                        scenario.watch_range(
                            span, with_previous=sim.random.random() < 0.5, patience=patience
                        )
                    )
                    await asyncio.sleep(sim.random.random() * 0.2)
                watchers.create_task(scenario.watch_spans(sim.random.choice((0, 0.5))))
            scenario.ended_at = store.clock.now()
        return scenario


@pytest.mark.parametrize("seed", range(120))
def test_feeds_keep_their_promises(seed: int) -> None:
    sim = Simulation(seed)
    scenario = sim.run(run_scenario(sim))
    assert len(scenario.timestamps) > 10
