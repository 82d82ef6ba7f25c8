"""Closing on a whole store: who holds it back, who does not, and that no write comes too late."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp, seconds_between
from tailrace.kvlayer.closed_timestamp import TARGET_DURATION, lowest_timestamp
from tailrace.kvlayer.command import decode_command
from tailrace.kvlayer.errors import LockTimeout, RetryableTransaction
from tailrace.kvlayer.events import Checkpoint
from tailrace.kvlayer.rangefeed import TICK_INTERVAL
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import hold_log, key, put, release_log, running_store, submit, unbuffered

SPAN = Span.prefix(key(""))
IDLE_LAG_SECONDS = 2 * TICK_INTERVAL.default


class Watcher:
    """Consumes a feed, and looks from outside how far it is behind."""

    def __init__(self, store: Store) -> None:
        self.resolved = ZERO
        self._store = store
        self._feed = store.range_feed(SPAN, ZERO)
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for events in self._feed:
            for event in events:
                if isinstance(event, Checkpoint):
                    self.resolved = event.resolved

    async def worst_lag(self, seconds: float) -> float:
        """The greatest lag in seconds, looked at every millisecond for so long."""
        until, worst = asyncio.get_running_loop().time() + seconds, 0.0
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.001)
            worst = max(worst, seconds_between(self.resolved, self._store.clock.now()))
        return worst

    def close(self) -> None:
        self._task.cancel()
        self._feed.close()


async def write_at_random(store: Store, sim: Simulation) -> None:
    random = sim.random
    for _ in range(15):
        await asyncio.sleep(random.choice((0, 0.001, 0.02)))
        try:
            if random.random() < 0.4:
                await put(store, {key(random.choice("abc")): b"v"})
                continue
            transaction = store.begin(lock_timeout=0.5)
            try:
                if random.random() < 0.5:
                    await transaction.get(key(random.choice("abc")))
                await asyncio.sleep(random.choice((0, 0.01, 0.03, 4.0)))
                await transaction.put([key(random.choice("abc"))], [b"v"])
                await asyncio.sleep(random.choice((0, 0.01, 4.0)))
                await transaction.commit()
            except BaseException:
                await transaction.rollback()
                raise
        except (RetryableTransaction, LockTimeout):
            pass


@pytest.mark.parametrize("seed", range(20))
def test_no_write_lands_at_or_below_a_closed_timestamp(seed: int) -> None:
    """Every entry carries what was closed when it was appended. Whatever it writes lies above that,
    and so above all that was ever closed before it, while closing goes on beside it."""
    sim = Simulation(seed)

    async def run() -> None:
        async with running_store(sim) as store:
            watcher = Watcher(store)
            await asyncio.gather(*(write_at_random(store, sim) for _ in range(4)))
            await store.log.wait_durable(store.log.last_index)
            closed, writes = ZERO, 0
            for _, payload in store.log.read(store.log.first_retained_index, store.log.last_index):
                command = decode_command(payload)
                assert command.closed >= closed, "closed never falls"
                closed = command.closed
                lowest = lowest_timestamp(command)
                if lowest is not None:
                    assert lowest > closed
                    writes += 1
            assert writes > 10
            assert closed > ZERO
            watcher.close()

    sim.run(run())


def test_idle_store_resolves_within_a_tick() -> None:
    sim = Simulation(1)

    async def run() -> None:
        async with running_store(sim) as store:
            watcher = Watcher(store)
            await asyncio.sleep(0.1)
            assert await watcher.worst_lag(1.0) < IDLE_LAG_SECONDS
            watcher.close()

    sim.run(run())


@pytest.mark.parametrize("reads", [False, True])
def test_transaction_that_idles_or_reads_does_not_hold(reads: bool) -> None:
    sim = Simulation(2)

    async def run() -> None:
        async with running_store(sim) as store:
            watcher = Watcher(store)
            await asyncio.sleep(0.1)
            transaction = store.begin()
            if reads:
                await transaction.get(key("a"))
            await asyncio.sleep(0.02)
            assert await watcher.worst_lag(0.5) < IDLE_LAG_SECONDS
            if reads:
                await transaction.get(key("b"))
            assert await watcher.worst_lag(10.0) < IDLE_LAG_SECONDS
            await transaction.rollback()
            watcher.close()

    sim.run(run())


def test_reader_of_the_past_never_holds() -> None:
    sim = Simulation(3)

    async def run() -> None:
        async with running_store(sim) as store:
            at = await put(store, {key("a"): b"1"})
            watcher = Watcher(store)
            await asyncio.sleep(0.1)
            transaction = store.begin(read_timestamp=at)
            assert store.closed_timestamps.holder_count == 0
            assert await watcher.worst_lag(0.5) < IDLE_LAG_SECONDS
            await transaction.rollback()
            watcher.close()

    sim.run(run())


def test_first_write_below_closed_is_forwarded() -> None:
    sim = Simulation(4)

    async def run() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            watcher = Watcher(store)
            await asyncio.sleep(0.1)
            transaction = store.begin()
            await watcher.worst_lag(0.5)
            closed = store.closed_timestamps.closed
            assert closed > transaction.read_timestamp
            await transaction.put([key("a")], [b"1"])
            assert transaction.write_timestamp > closed
            assert await transaction.commit() > closed
            watcher.close()

    sim.run(run())


def test_writer_holds_resolved_for_the_target_duration_at_most() -> None:
    sim = Simulation(5)

    async def run() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            watcher = Watcher(store)
            await asyncio.sleep(0.1)
            transaction = store.begin()
            await transaction.put([key("a")], [b"1"])
            worst = await watcher.worst_lag(30.0)
            assert 1.0 < worst < TARGET_DURATION.default + TICK_INTERVAL.default
            await transaction.commit()
            watcher.close()

    sim.run(run())


def test_entry_that_is_not_durable_holds() -> None:
    sim = Simulation(6)

    async def run() -> None:
        async with running_store(sim) as store:
            feed = store.range_feed(SPAN, ZERO)
            await feed.next()
            hold_log(store)
            pending = await submit(store, key("a"), b"1")
            await asyncio.sleep(1.0)
            shown = [e.resolved for e in feed.poll() if isinstance(e, Checkpoint)]
            assert max(shown, default=ZERO) < pending.timestamp
            release_log(store)
            await pending.wait()
            resolved = Timestamp(0)
            while resolved < pending.timestamp:
                found = [e.resolved for e in await feed.next() if isinstance(e, Checkpoint)]
                resolved = max(found, default=resolved)
            feed.close()

    sim.run(run())
