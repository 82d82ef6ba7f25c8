"""Well-behaved clients: each commits a row, or reads one back, at times that a seed chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from time import perf_counter

import asyncpg

CLIENTS = 200
TABLES = 10
CAPACITY_SECONDS = 5.0
CAPACITY_CLIENTS = 16

_keys = count()


@dataclass(slots=True)
class Heard:
    """What clients were told: seconds for each statement that was done, and every error."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def quantile(self, of: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(of * len(ordered)))]


class Client:
    """One connection, and the rows that it has committed."""

    def __init__(self, connection: asyncpg.Connection, seed: int) -> None:
        self._connection = connection
        self._random = Random(seed)
        self._written: tuple[int, int] | None = None

    async def work(self, heard: Heard) -> None:
        """One statement, and how long it took."""
        began = perf_counter()
        try:
            await self._one()
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            heard.errors.append(repr(error))
        else:
            heard.seconds.append(perf_counter() - began)

    async def _one(self) -> None:
        if self._written is None or self._random.random() < 0.5:
            table, key = self._random.randrange(TABLES), next(_keys)
            await self._connection.execute(f"INSERT INTO good{table} VALUES ($1, $2)", key, "note")
            self._written = table, key
        else:
            table, key = self._written
            query = f"SELECT note FROM good{table} WHERE k = $1"
            found = await self._connection.fetchval(query, key)
            assert found == "note", (table, key, found)

    async def follow(self, rate: float, until: float, heard: Heard) -> None:
        """Works `rate` times a second until then, however long each statement takes."""
        due = perf_counter() + self._random.expovariate(rate)
        while due < until:
            await asyncio.sleep(max(0.0, due - perf_counter()))
            await self.work(heard)
            due += self._random.expovariate(rate)

    async def close(self) -> None:
        await self._connection.close()


async def connect(port: int, number: int, user: str = "good", password: str = "x") -> Client:
    connection = await asyncpg.connect(
        host="127.0.0.1", port=port, user=user, password=password, database="defaultdb"
    )
    return Client(connection, number)


async def capacity(clients: Sequence[Client]) -> float:
    """Statements a second, where each of some clients has always one under way."""
    heard = Heard()
    until = perf_counter() + CAPACITY_SECONDS

    async def busy(client: Client) -> None:
        while perf_counter() < until:
            await client.work(heard)

    await asyncio.gather(*(busy(client) for client in clients[:CAPACITY_CLIENTS]))
    assert not heard.errors, heard.errors[:3]
    return len(heard.seconds) / CAPACITY_SECONDS


async def offered(clients: Sequence[Client], rate: float, seconds: float) -> Heard:
    """What all clients hear while they send `rate` statements a second between them."""
    heard = Heard()
    until = perf_counter() + seconds
    await asyncio.gather(*(client.follow(rate / len(clients), until, heard) for client in clients))
    return heard
