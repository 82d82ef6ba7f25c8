"""Frames come whole and in order, whatever the ring's size, and nobody waits for one who reads."""

from __future__ import annotations

import asyncio
import socket
from random import Random

import pytest

from tailrace.kvlayer.worker import Channel, SocketDoorbell
from tests.harness.loop_doorbell import LoopDoorbell
from tests.harness.simulation import Simulation


class Side:
    """One side of a channel, and the frames that came to it."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.frames: list[bytes] = []
        self.ends = 0
        channel.start(lambda frame: self.frames.append(bytes(frame)), self._end)

    def _end(self) -> None:
        self.ends += 1


def sides(size: int, *, sockets: bool = False) -> tuple[Side, Side]:
    there, back = (memoryview(bytearray(size)) for _ in range(2))
    if sockets:
        ends = [SocketDoorbell(end) for end in socket.socketpair()]
        return Side(Channel(ends[0], there, back)), Side(Channel(ends[1], back, there))
    near, far = LoopDoorbell.pair()
    return Side(Channel(near, there, back)), Side(Channel(far, back, there))


async def settled(*sides: Side) -> None:
    while any(side.channel.waiting_bytes for side in sides):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)


async def exchange(one: Side, other: Side, random: Random) -> None:
    """Each side sends frames of any size, many at once and few."""
    sent: dict[Side, list[bytes]] = {one: [], other: []}
    for _ in range(200):
        sender = random.choice([one, other])
        frame = random.randbytes(random.choice([0, 1, 7, 60, 100, 5_000]))
        sent[sender].append(frame)
        sender.channel.send(frame, rings=random.random() < 0.5)
        if random.random() < 0.2:
            await asyncio.sleep(0)
    for side in sent:
        side.channel.send(b"last")
    await settled(one, other)
    assert other.frames == [*sent[one], b"last"]
    assert one.frames == [*sent[other], b"last"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [1, 9, 64, 1_000_000])
def test_frames_come_whole_and_in_order(seed: int, size: int) -> None:
    sim = Simulation(seed)

    async def scenario() -> None:
        await exchange(*sides(size), sim.random)

    sim.run(scenario())


@pytest.mark.parametrize("size", [64, 4_096])
def test_frames_come_over_sockets_as_in_one_loop(size: int) -> None:
    async def scenario() -> None:
        one, other = sides(size, sockets=True)
        await exchange(one, other, Random(size))
        one.channel.close()
        await asyncio.sleep(0.01)
        assert (one.ends, other.ends) == (0, 1)

    asyncio.run(scenario())


def test_full_memory_keeps_nobody_waiting() -> None:
    """What finds no room waits in its sender until the reader has taken what was before it."""

    async def scenario() -> None:
        one, other = sides(1_000)
        frames = [bytes([number]) * 600 for number in range(10)]
        for frame in frames:
            one.channel.send(frame)
        assert one.channel.waiting_bytes == 10 * (600 + 8) - 1_000
        assert not other.frames
        await settled(one)
        assert other.frames == frames

    Simulation(1).run(scenario())


def test_a_frame_may_wait_for_the_next_that_rings() -> None:
    async def scenario() -> None:
        one, other = sides(1_000)
        one.channel.send(b"quiet", rings=False)
        await asyncio.sleep(1)
        assert other.frames == []
        one.channel.send(b"loud")
        await asyncio.sleep(1)
        assert other.frames == [b"quiet", b"loud"]

    Simulation(1).run(scenario())


def test_what_was_told_of_comes_before_the_end() -> None:
    async def scenario() -> None:
        one, other = sides(64)
        one.channel.send(b"last words")
        one.channel.close()
        one.channel.send(b"and more")
        await asyncio.sleep(1)
        assert other.frames == [b"last words"]
        assert (one.ends, other.ends) == (0, 1)
        other.channel.send(b"to nobody")

    Simulation(1).run(scenario())
