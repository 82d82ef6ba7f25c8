"""The queue of entries: what is under way together, in which order, and what is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tailrace.changefeed.sinks.tailrace.entry_queue import (
    REQUEST_BYTES_MAX,
    Entries,
    EntryQueue,
    Told,
)
from tailrace.kvlayer.clock import Timestamp
from tests.harness.simulation import Simulation

ENTRIES_MAX = 4
TOLD = Told(b"note", Timestamp(9))


class Replica:
    """Takes requests, each in its time. `arrived` has their entries, in order."""

    def __init__(self, sim: Simulation, seconds: float) -> None:
        self._random = sim.random
        self._seconds = seconds
        self._under_way: list[frozenset[bytes]] = []
        self.fails = False
        self.most = 0
        self.requests: list[int] = []
        self.arrived: list[bytes] = []
        self.told: list[tuple[int, Told]] = []
        """What was told, and how many entries had arrived then."""

    async def take(self, entries: Entries, told: Told | None) -> None:
        keys = frozenset(entries.keys)
        for other in self._under_way:
            assert not keys & other, "a key is in two requests at once"
        self._under_way.append(keys)
        self.most = max(self.most, len(self._under_way))
        self.requests.append(len(entries))
        await asyncio.sleep(self._seconds * (0.5 + self._random.random()))
        if self.fails:
            raise RuntimeError("the replica is gone")
        self.arrived += entries.bodies
        self._under_way.remove(keys)
        if told is not None:
            self.told.append((len(self.arrived), told))


def entries(*bodies: bytes) -> Entries:
    """An entry of key `k` is `k@…`."""
    keys = [body.partition(b"@")[0] for body in bodies]
    return Entries(keys, list(bodies), [Timestamp(1)] * len(bodies))


@asynccontextmanager
async def opened(replica: Replica, requests_max: int = 3) -> AsyncIterator[EntryQueue]:
    queue = EntryQueue(replica.take, requests_max=requests_max, entries_max=ENTRIES_MAX)
    try:
        yield queue
    finally:
        await queue.close()


@pytest.mark.parametrize("seed", range(20))
def test_keys_keep_their_order_and_are_under_way_once(seed: int) -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        put: list[bytes] = []
        async with opened(replica) as queue:
            for _ in range(60):
                count = sim.random.choice((1, 3, 30))
                first = len(put)
                put += [b"%d@%d" % (sim.random.randrange(12), first + n) for n in range(count)]
                queue.put(entries(*put[first:]))
                if sim.random.random() < 0.2:
                    await queue.flushed()
                    assert len(replica.arrived) == len(put)
                await asyncio.sleep(sim.random.choice((0.0, 0.05, 0.3)))
            await queue.flushed()
        for key in range(12):
            own = b"%d@" % key
            sent = [body for body in put if body.startswith(own)]
            assert [each for each in replica.arrived if each.startswith(own)] == sent
        assert max(replica.requests) == ENTRIES_MAX

    sim = Simulation(seed)
    sim.run(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_progress_is_told_behind_what_it_covers(seed: int) -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        put_count = told_count = 0
        async with opened(replica) as queue:
            for _ in range(60):
                for _ in range(sim.random.choice((0, 1, 3))):
                    count = sim.random.choice((1, ENTRIES_MAX, 30))
                    queue.put(entries(*(b"%d@" % sim.random.randrange(99) for _ in range(count))))
                    put_count += count
                flushing = asyncio.create_task(queue.flushed(TOLD))
                await asyncio.sleep(0)  # what is put from here on is not covered, and may go along
                covered = put_count
                if sim.random.random() < 0.5:
                    await asyncio.sleep(sim.random.random() * 0.1)
                    queue.put(entries(b"late@"))
                    put_count += 1
                if await flushing:
                    told_count += 1
                    assert replica.told[-1][0] >= covered
                assert len(replica.told) == told_count
                assert len(replica.arrived) >= covered
        assert told_count > 10

    sim = Simulation(seed)
    sim.run(scenario())


def test_a_trickle_goes_with_a_flush_and_takes_its_progress_along() -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        async with opened(replica) as queue:
            queue.put(entries(b"0@"))
            await asyncio.sleep(1)
            assert not replica.requests
            queue.put(entries(b"1@"))
            assert await queue.flushed(TOLD)
            assert replica.requests == [2]
            assert replica.told == [(2, TOLD)]
            assert not await queue.flushed(TOLD), "nothing went that could take it along"

    sim = Simulation(1)
    sim.run(scenario())


def test_a_trickle_has_one_request_under_way_and_a_backlog_all() -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        async with opened(replica) as queue:
            queue.put(entries(b"0@"))
            flushing = asyncio.create_task(queue.flushed())
            for number in range(1, ENTRIES_MAX):
                await asyncio.sleep(0.01)
                queue.put(entries(b"%d@" % number))
            await flushing
            await queue.flushed()
            assert replica.requests == [1, 3]
            queue.put(entries(*(b"%d@1" % number for number in range(5 * ENTRIES_MAX))))
            await queue.flushed()
            assert replica.most == 3

    sim = Simulation(1)
    sim.run(scenario())


def test_entries_larger_than_a_request_go_alone() -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        async with opened(replica) as queue:
            for number in range(3):
                queue.put(entries(b"%d@" % number + b"x" * 3 * REQUEST_BYTES_MAX))
            await queue.flushed()
            assert replica.requests == [1, 1, 1]

    sim = Simulation(2)
    sim.run(scenario())


def test_a_failure_is_raised_to_who_waits() -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        replica.fails = True
        async with opened(replica) as queue:
            queue.put(entries(b"a@1"))
            with pytest.raises(RuntimeError, match="gone"):
                await queue.flushed()

    sim = Simulation(3)
    sim.run(scenario())
