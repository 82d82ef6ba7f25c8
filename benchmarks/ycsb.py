"""The six YCSB workloads through the Postgres door, beside PostgreSQL 15.

    python -m benchmarks.ycsb [--records 10000] [--operations 2000] [--clients 1]
                              [--workloads abcdef]

One table of a text key and ten fields of 100 bytes, as YCSB's; keys are drawn by a Zipfian
distribution (exponent 0.99, scattered), for workload D by recency. Statements are prepared; every
write is a durable commit of its own.

    a  half reads, half updates           d  reads of what was inserted last, 5 % inserts
    b  95 % reads, 5 % updates            e  short scans (up to 100 rows), 5 % inserts
    c  reads alone                        f  half reads, half read-modify-writes

Metrics: `a_per_s` and, where PostgreSQL is installed, `a_over_postgres`, and so on.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from itertools import accumulate
from pathlib import Path
from random import Random

import asyncpg

from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server

FIELDS = [f"field{number}" for number in range(10)]
FIELD_LENGTH = 100
SCAN_ROWS_MAX = 100
ZIPFIAN_EXPONENT = 0.99
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

Prepared = asyncpg.prepared_stmt.PreparedStatement


class Keys:
    """Which records operations are about."""

    def __init__(self, random: Random, count: int) -> None:
        self.count = count
        self._random = random
        self._weights = list(accumulate(1 / rank**ZIPFIAN_EXPONENT for rank in range(1, count + 1)))
        self._scattered = list(range(count))
        random.shuffle(self._scattered)

    def popular(self) -> str:
        return name_of(self._scattered[self._rank()])

    def latest(self) -> str:
        return name_of(max(0, self.count - 1 - self._rank()))

    def new(self) -> str:
        self.count += 1
        return name_of(self.count - 1)

    def _rank(self) -> int:
        return bisect_left(self._weights, self._random.random() * self._weights[-1])


def name_of(number: int) -> str:
    """As YCSB names records: their numbers hashed, so that neighbours are strangers."""
    return f"user{number * 0x9E3779B97F4A7C15 % 2**64:020d}"


def values(random: Random) -> list[str]:
    return ["".join(random.choices(LETTERS, k=FIELD_LENGTH)) for _ in FIELDS]


class Client:
    """One connection and its prepared statements."""

    def __init__(self, connection: asyncpg.Connection, random: Random, keys: Keys) -> None:
        self.connection = connection
        self._random = random
        self._keys = keys
        self._statements: dict[str, Prepared] = {}

    async def prepare(self) -> None:
        places = ", ".join(f"${number}" for number in range(1, len(FIELDS) + 2))
        texts = {
            "read": "SELECT * FROM usertable WHERE ycsb_key = $1",
            "scan": "SELECT * FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2",
            "insert": f"INSERT INTO usertable VALUES ({places})",
            **{f: f"UPDATE usertable SET {f} = $1 WHERE ycsb_key = $2" for f in FIELDS},
        }
        for name, text in texts.items():
            self._statements[name] = await self.connection.prepare(text)

    async def read(self) -> None:
        await self._statements["read"].fetch(self._keys.popular())

    async def read_latest(self) -> None:
        await self._statements["read"].fetch(self._keys.latest())

    async def update(self) -> None:
        value = "".join(self._random.choices(LETTERS, k=FIELD_LENGTH))
        field = self._random.choice(FIELDS)
        await self._statements[field].fetch(value, self._keys.popular())

    async def insert(self) -> None:
        await self._statements["insert"].fetch(self._keys.new(), *values(self._random))

    async def scan(self) -> None:
        rows = self._random.randint(1, SCAN_ROWS_MAX)
        await self._statements["scan"].fetch(self._keys.popular(), rows)

    async def read_modify_write(self) -> None:
        await self.read()
        await self.update()


Operation = Callable[[Client], Awaitable[None]]
WORKLOADS: dict[str, tuple[float, Operation, Operation]] = {
    "a": (0.5, Client.read, Client.update),
    "b": (0.95, Client.read, Client.update),
    "c": (1.0, Client.read, Client.update),
    "d": (0.95, Client.read_latest, Client.insert),
    "e": (0.95, Client.scan, Client.insert),
    "f": (0.5, Client.read, Client.read_modify_write),
}
"""How often the first operation is drawn; otherwise it is the second."""


async def measure(port: int, database: str, sizes: argparse.Namespace) -> dict[str, float]:
    """Operations a second of one server, by workload."""
    random = Random(7)
    keys = Keys(random, sizes.records)
    clients: list[Client] = []
    try:
        for _ in range(sizes.clients):
            connection = await asyncpg.connect(
                host="127.0.0.1", port=port, user="root", database=database
            )
            clients.append(Client(connection, random, keys))
        first = clients[0].connection
        columns = ", ".join(f"{field} TEXT" for field in FIELDS)
        await first.execute(f"CREATE TABLE usertable (ycsb_key TEXT PRIMARY KEY, {columns})")
        records = [(name_of(number), *values(random)) for number in range(sizes.records)]
        await first.copy_records_to_table("usertable", records=records)
        for client in clients:
            await client.prepare()
        return {name: await _run(clients, random, name, sizes) for name in sizes.workloads}
    finally:
        for client in clients:
            await client.connection.close()


async def _run(
    clients: list[Client], random: Random, name: str, sizes: argparse.Namespace
) -> float:
    often, usual, other = WORKLOADS[name]
    share = sizes.operations // len(clients)

    async def work(client: Client) -> None:
        for _ in range(share):
            await (usual if random.random() < often else other)(client)

    for _ in range(100):
        await usual(clients[0])  # plans and caches are warm
    began = time.perf_counter()
    await asyncio.gather(*map(work, clients))
    return float(share * len(clients) / (time.perf_counter() - began))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--operations", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--workloads", default="abcdef")
    sizes = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-ycsb-") as name:
        folder = Path(name)
        with tailrace_server(folder) as (_, port):
            ours = asyncio.run(measure(port, "defaultdb", sizes))
        metrics = {f"{workload}_per_s": rate for workload, rate in ours.items()}
        if postgres_installed():
            with postgres_server(folder) as port:
                theirs = asyncio.run(measure(port, "postgres", sizes))
            for workload, rate in theirs.items():
                metrics[f"{workload}_over_postgres"] = ours[workload] / rate
    print_outcome("ycsb", metrics)


if __name__ == "__main__":
    main()
