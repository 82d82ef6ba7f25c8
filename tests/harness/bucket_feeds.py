"""Changefeeds into buckets, whose objects a test reads by itself: what all kinds of buckets have to
hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from tailrace.api.embedded import AsyncDatabase, aopen
from tests.harness.faulty_server import FaultyServer

MARKS = "&partition_format=hourly&file_size=300"


@asynccontextmanager
async def store(path: Path) -> AsyncIterator[AsyncDatabase]:
    database = await aopen(path)
    try:
        await database.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.1s'")
        yield database
    finally:
        await database.close()


async def create(database: AsyncDatabase, uri: str, options: str) -> int:
    created = await database.sql(f"CREATE CHANGEFEED FOR orders INTO '{uri}' WITH {options}")
    ((job_id,),) = created.fetchall()
    assert isinstance(job_id, int)
    return job_id


async def caught_up(database: AsyncDatabase, job_id: int) -> None:
    async with asyncio.timeout(60):
        await database.feed(job_id).wait_until(await database.node.store.now())


async def ended(database: AsyncDatabase, job_id: int) -> None:
    async with asyncio.timeout(60):
        while "succeeded" not in str(
            (await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall()
        ):
            await asyncio.sleep(0.02)


async def documented(folder: Path, command: str) -> None:
    """A store with one row makes a documented changefeed, which shows it."""
    async with store(folder) as database:
        await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
        await database.sql("INSERT INTO orders VALUES (1)")
        ((job_id,),) = (await database.sql(command)).fetchall()
        assert isinstance(job_id, int)
        await caught_up(database, job_id)


def check_documented(objects: dict[str, bytes]) -> None:
    """The bucket has the row of `documented` and nothing else."""
    [(name, body)] = objects.items()
    assert name.startswith("orders/") and json.loads(body) == {"after": {"k": 1}, "key": [1]}


class Written:
    """What was written to `orders`, by key and version."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.versions: dict[tuple[int, int], str | None] = {}
        self.count = 0

    async def write(self, database: AsyncDatabase, count: int) -> None:
        """Each row tells its number, so that a version is known by it."""
        for _ in range(count):
            key = self.random.randrange(6)
            self.count += 1
            await database.sql(f"UPSERT INTO orders VALUES ({key}, {self.count}, 'v{self.count}')")
            self.versions[key, self.count] = f"v{self.count}"
            await asyncio.sleep(self.random.random() * 0.02)

    def check(self, objects: dict[str, bytes]) -> None:
        """No version is lost, no mark speaks for what stands behind it, and the last of each key
        in the order of names is the newest."""
        shown: dict[tuple[int, int], str] = {}
        updated: list[tuple[str, tuple[int, int]]] = []
        last: dict[int, int] = {}
        marks: list[tuple[str, set[tuple[int, int]]]] = []
        for body in objects.values():  # in the order of names
            for line in body.splitlines():
                message: dict[str, Any] = json.loads(line)
                if "resolved" in message:
                    marks.append((message["resolved"], set(shown)))
                    continue
                row = message["after"]
                shown[row["k"], row["n"]] = row["v"]
                updated.append((message["updated"], (row["k"], row["n"])))
                last[row["k"]] = row["n"]
        assert shown == self.versions
        assert last == {k: max(n for key, n in self.versions if key == k) for k in last}
        assert marks, "no mark was written"
        for resolved, before in marks:
            below = {version for at, version in updated if at <= resolved}
            assert below <= before, (resolved, below - before)


async def check_no_row_is_lost(
    path: Path,
    seed: int,
    uri: str,
    faults: FaultyServer,
    objects: Callable[[], dict[str, bytes]],
    *,
    share: float,
) -> None:
    """A store that is opened four times writes to `uri`, of whose answers a `share` fails in each
    of the three ways. `objects` reads the bucket past these faults."""
    written = Written(seed)
    async with store(path) as database:
        await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, n INT, v STRING)")
        options = "updated, resolved, min_checkpoint_frequency = '50ms'"
        job_id = await create(database, uri, options)
    faults.refuse = faults.lose = faults.vanish = share
    for _ in range(3):
        async with store(path) as database:
            await written.write(database, 25)
    faults.refuse = faults.lose = faults.vanish = 0.0
    async with store(path) as database:
        await written.write(database, 2)
        await caught_up(database, job_id)
        await marked(objects)
    assert faults.fault_count > 1, faults.fault_count
    written.check(objects())


async def marked(objects: Callable[[], dict[str, bytes]]) -> None:
    """Returns when a mark of what is resolved is in the bucket."""
    async with asyncio.timeout(30):
        while not any(name.endswith(".RESOLVED") for name in objects()):
            await asyncio.sleep(0.1)
