"""The clients of the demo: each writes keys of its own, and keeps a record of what was answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import httpx2

from ....kvlayer.clock import ZERO, Timestamp, parse_timestamp
from .server import DemoServer

KEYS_EACH = 20
PAUSE_SECONDS = 0.05
"""Before a client asks again a server that did not answer."""

KEYSPACE = "ks"


@dataclass(slots=True)
class KeyRecord:
    """One client's record of one key, of which it is the only writer.

    `acknowledged` are the timestamps and values (None: deleted) that the server answered, in
    order. `unanswered` were sent behind the last of these: any of them may have happened.
    """

    acknowledged: list[tuple[Timestamp, bytes | None]] = field(default_factory=list)
    unanswered: list[bytes | None] = field(default_factory=list)

    def note(self, at: Timestamp, value: bytes | None) -> None:
        if self.acknowledged:
            assert at > self.acknowledged[-1][0], (at, self.acknowledged[-1])
        self.acknowledged.append((at, value))
        self.unanswered.clear()

    @property
    def possible(self) -> list[bytes | None]:
        """The values that a reader may find when all is quiet."""
        newest = self.acknowledged[-1][1] if self.acknowledged else None
        return [newest, *self.unanswered]


class Clients:
    """Writers to one server, and their records by key."""

    def __init__(self, server: DemoServer, count: int, random: Random) -> None:
        self.records: dict[str, KeyRecord] = {}
        self._server = server
        self._count = count
        self._random = random

    @property
    def middle(self) -> str:
        """About as many keys are below it as not."""
        return f"{self._count // 2:03}"

    @property
    def newest(self) -> Timestamp:
        """The greatest timestamp that was answered."""
        stamps = (record.acknowledged[-1][0] for record in self._acknowledged)
        return max(stamps, default=ZERO)

    @property
    def writes(self) -> int:
        return sum(len(record.acknowledged) for record in self.records.values())

    @property
    def _acknowledged(self) -> list[KeyRecord]:
        return [record for record in self.records.values() if record.acknowledged]

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Clients write within the block; behind it all of them have their answers."""
        stop = asyncio.Event()
        tasks = [
            asyncio.create_task(self._write(number, Random(self._random.random()), stop.is_set))
            for number in range(self._count)
        ]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    async def _write(self, number: int, random: Random, stopped: Callable[[], bool]) -> None:
        async with httpx2.AsyncClient(timeout=10.0, trust_env=False) as client:
            turn = 0
            while not stopped():
                turn += 1
                key = f"{number:03}-{random.randrange(KEYS_EACH):02}"
                value = None if random.random() < 0.1 else b"%d" % turn
                record = self.records.setdefault(key, KeyRecord())
                url = f"{self._server.url}/v1/keyspaces/{KEYSPACE}/keys/{key}"
                try:
                    if value is None:
                        answer = await client.delete(url)
                    else:
                        answer = await client.put(url, content=value)
                    answer.raise_for_status()
                except httpx2.HTTPError:
                    record.unanswered.append(value)
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                record.note(parse_timestamp(answer.json()["timestamp"]), value)
