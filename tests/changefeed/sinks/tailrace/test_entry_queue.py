"""The queue of entries: what is under way together, in which order, and what is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.sinks.tailrace.entry_queue import REQUEST_BYTES_MAX, EntryQueue
from tailrace.kvlayer.clock import Timestamp
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation

ENTRIES_MAX = 4


class Replica:
    """Takes requests, each in its time. `arrived` has their keys and messages, in order."""

    def __init__(self, sim: Simulation, seconds: float) -> None:
        self._random = sim.random
        self._seconds = seconds
        self._under_way: list[frozenset[bytes]] = []
        self.fails = False
        self.most = 0
        self.requests: list[Sequence[bytes]] = []
        self.arrived: list[bytes] = []

    async def take(self, messages: Sequence[bytes]) -> None:
        keys = frozenset(message.partition(b"@")[0] for message in messages)
        for other in self._under_way:
            assert not keys & other, "a key is in two requests at once"
        self._under_way.append(keys)
        self.most = max(self.most, len(self._under_way))
        self.requests.append(messages)
        await asyncio.sleep(self._seconds * (0.5 + self._random.random()))
        if self.fails:
            raise RuntimeError("the replica is gone")
        self.arrived += messages
        self._under_way.remove(keys)


def changes(*messages: bytes) -> ChangeBatch:
    return ChangeBatch(
        descriptor=table(),
        kind=ChangeKind.LIVE,
        keys=messages,
        timestamps=[Timestamp(1)] * len(messages),
        rows=[None] * len(messages),
    )


def encode(batch: ChangeBatch) -> list[tuple[bytes, bytes]]:
    return [(message.partition(b"@")[0], message) for message in batch.keys]


@asynccontextmanager
async def opened(replica: Replica, requests_max: int = 3) -> AsyncIterator[EntryQueue]:
    queue = EntryQueue(encode, replica.take, requests_max=requests_max, entries_max=ENTRIES_MAX)
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
                queue.put(changes(*put[first:]))
                if sim.random.random() < 0.2:
                    await queue.acknowledged()
                    assert len(replica.arrived) == len(put)
                await asyncio.sleep(sim.random.choice((0.0, 0.05, 0.3)))
            await queue.acknowledged()
        for key in range(12):
            own = b"%d@" % key
            sent = [message for message in put if message.startswith(own)]
            assert [each for each in replica.arrived if each.startswith(own)] == sent
        assert max(map(len, replica.requests)) == ENTRIES_MAX

    sim = Simulation(seed)
    sim.run(scenario())


def test_a_trickle_has_one_request_under_way_and_a_backlog_all() -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        async with opened(replica) as queue:
            for number in range(ENTRIES_MAX):
                queue.put(changes(b"%d@0" % number))
                await asyncio.sleep(0.01)
            await queue.acknowledged()
            assert [len(request) for request in replica.requests] == [1, 3]
            queue.put(changes(*(b"%d@1" % number for number in range(5 * ENTRIES_MAX))))
            await queue.acknowledged()
            assert replica.most == 3

    sim = Simulation(1)
    sim.run(scenario())


def test_entries_larger_than_a_request_go_alone() -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        async with opened(replica) as queue:
            for number in range(3):
                queue.put(changes(b"%d@" % number + b"x" * 3 * REQUEST_BYTES_MAX))
            await queue.acknowledged()
            assert [len(request) for request in replica.requests] == [1, 1, 1]

    sim = Simulation(2)
    sim.run(scenario())


def test_a_failure_is_raised_to_who_waits() -> None:
    async def scenario() -> None:
        replica = Replica(sim, seconds=0.1)
        replica.fails = True
        async with opened(replica) as queue:
            queue.put(changes(b"a@1"))
            with pytest.raises(RuntimeError, match="gone"):
                await queue.acknowledged()

    sim = Simulation(3)
    sim.run(scenario())
