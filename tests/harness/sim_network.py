"""A network between nodes and the process that serves their store, in the simulation.

    network = SimNetwork(sim, service)
    store = await RemoteStore.connect(network.channel(), sim.wall, ...)
    network.cut()          # nothing arrives any more, in either direction, until `heal`
    network.disconnect()   # every connection breaks; the next ones work

Messages are delayed by seeded amounts, and a message under way when its channel breaks is lost
before or after it was carried out, as the seed will have it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from random import Random
from typing import Any

from tailrace.api.rpc import NodeTurnedAway, StoreService
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.remote import ChannelBroken, ChannelRefused, RemoteStore
from tailrace.kvlayer.settings import Settings
from tests.harness.simulation import Simulation

DELAY_SECONDS_MAX = 0.002
STREAM_BUFFER_MAX = 4
"""Messages of a stream that are under way: the flow control of a real channel."""


class SimNetwork:
    """Joins channels to one service. Networks of one store have names, and each its own luck."""

    def __init__(self, sim: Simulation, service: StoreService, name: str = "network") -> None:
        self.service = service
        self.name = name
        self.random = Random(f"{sim.seed}:{name}")
        self.whole = asyncio.Event()
        self.whole.set()
        self.speaking = asyncio.Event()
        self.speaking.set()
        self._sim = sim
        self._channels: list[SimChannel] = []

    def channel(self) -> SimChannel:
        channel = SimChannel(self)
        self._channels.append(channel)
        return channel

    async def join(self, settings: Settings | None = None) -> RemoteStore:
        """Another node's view of the store."""
        return await RemoteStore.connect(
            self.channel(),
            self._sim.wall,
            settings=settings or Settings(),
            metrics=Metrics(),
            random=Random(f"{self._sim.seed}:{self.name}:node {len(self._channels)}"),
        )

    def cut(self) -> None:
        self.whole.clear()

    def heal(self) -> None:
        self.whole.set()
        self.speaking.set()

    def mute(self) -> None:
        """Streams give nothing more until `heal`, though calls are answered."""
        self.speaking.clear()

    def disconnect(self) -> None:
        for channel in self._channels:
            channel.break_all()

    async def pass_message(self) -> None:
        await asyncio.sleep(self.random.random() * DELAY_SECONDS_MAX)
        await self.whole.wait()


class SimChannel:
    """Implements `kvlayer.remote.Channel`."""

    def __init__(self, network: SimNetwork) -> None:
        self._network = network
        self._under_way: set[asyncio.Task[Any]] = set()

    def break_all(self) -> None:
        for task in tuple(self._under_way):
            task.cancel()

    async def call(self, method: str, body: bytes) -> bytes:
        network = self._network
        sent = False

        async def carry() -> bytes:
            nonlocal sent
            await network.pass_message()
            sent = True
            answer = await network.service.call(method, body)
            await network.pass_message()
            return answer

        return await self._run(carry(), lambda: sent)

    async def stream(self, method: str, body: bytes) -> AsyncGenerator[bytes, None]:
        network = self._network
        arrived: asyncio.Queue[bytes | None] = asyncio.Queue(STREAM_BUFFER_MAX)

        async def carry() -> None:
            await network.pass_message()
            async with aclosing(network.service.stream(method, body)) as answers:
                async for answer in answers:
                    await network.pass_message()
                    await network.speaking.wait()
                    await arrived.put(answer)
            await arrived.put(None)

        task = asyncio.create_task(carry(), name=f"stream {method}")
        self._under_way.add(task)
        try:
            while True:
                taking = asyncio.ensure_future(arrived.get())
                try:
                    await asyncio.wait((taking, task), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not taking.done():
                        taking.cancel()
                if not taking.done() or taking.cancelled():
                    turned_away = None if task.cancelled() else task.exception()
                    if isinstance(turned_away, NodeTurnedAway):
                        raise ChannelRefused(str(turned_away))
                    raise ChannelBroken("the connection broke", sent=True)
                answer = taking.result()
                if answer is None:
                    return
                yield answer
        finally:
            task.cancel()
            await asyncio.wait([task])
            self._under_way.discard(task)
            if not task.cancelled():
                task.exception()

    async def reset(self) -> None:
        self.break_all()

    async def close(self) -> None:
        self.break_all()

    async def _run(self, work: Any, sent: Any) -> bytes:
        task: asyncio.Task[bytes] = asyncio.create_task(work)
        self._under_way.add(task)
        try:
            await asyncio.wait([task])
            if task.cancelled():
                raise ChannelBroken("the connection broke", sent=sent())
            return task.result()
        finally:
            self._under_way.discard(task)
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
