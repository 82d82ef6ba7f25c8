"""The KV layer: single keys, transactions, scans, group commit, and what feeds cost writers.

    python -m benchmarks.kv [--writes 4000] [--writers 64]

On RocksDB, and with the prefix `memory_` on the engine in memory, both behind the same log on disk:
`put_per_s` one-phase commits of one key, from `--writers` tasks at once; `txn1_per_s`,
`txn10_per_s` and `txn1000_per_s` explicit transactions of that many keys; `get_per_s` point reads
one after another; `scan_rows_per_s`; `commits_per_sync` of the puts.

`large_get_over_small`: a get of a random key of RocksDB with 6,000,000 of them over one of 200,000.

`write_cost_N_feeds` is the time of the same puts with N range feeds that are read, over the time
without, and `write_cost_pipeline` that of INSERTs with a DuckDB mirror over those without one: the
medians of rounds that alternate, since the machine's own speed wanders.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.outcome import print_outcome
from benchmarks.stores import SPAN, disk_store, key, write_rows
from tailrace.api.bench.latency import CREATE_ORDERS, MIRROR_ORDERS
from tailrace.api.embedded import aopen
from tailrace.kvlayer.access import Feed
from tailrace.kvlayer.engine import EngineBatch, MemoryEngine
from tailrace.kvlayer.engine.rocksdb import RocksEngine
from tailrace.kvlayer.store import Store
from tailrace.sql import Session

BODY = b"a body of about sixty bytes, as a row of a few columns would be"
ROUNDS = 5
SCANNED_ROWS = 20_000
GETS = 20_000
KEYS_A_BATCH = 20_000
KEYS_SMALL_AND_LARGE = (200_000, 6_000_000)


async def put(store: Store, number: int) -> None:
    name = key(number)
    await store.one_phase(lambda evaluation: evaluation.put([name], [BODY]))


async def transact(store: Store, first: int, count: int) -> None:
    transaction = store.begin()
    for number in range(first, first + count):
        await transaction.put([key(number)], [BODY])
    await transaction.commit()


async def spread(work: Callable[[int], Awaitable[object]], count: int, tasks: int) -> float:
    """Seconds that `work(0) … work(count - 1)` take, in `tasks` tasks at once."""
    numbers = iter(range(count))

    async def run() -> None:
        for number in numbers:
            await work(number)

    began = time.perf_counter()
    await asyncio.gather(*(run() for _ in range(tasks)))
    return time.perf_counter() - began


async def rates(store: Store, writes: int, writers: int) -> dict[str, float]:
    """Operations a second on one store."""
    syncs = 0

    def synced(_: int) -> None:
        nonlocal syncs
        syncs += 1

    await spread(lambda number: put(store, number), writers * 10, writers)
    store.log.on_durable(synced)
    took = await spread(lambda number: put(store, number), writes, writers)
    metrics = {"put_per_s": writes / took, "commits_per_sync": writes / max(syncs, 1)}
    for count in (1, 10, 1000):
        transactions = max(writes // (4 * count), 8)

        async def work(number: int, count: int = count) -> None:
            await transact(store, number * count, count)

        took = await spread(work, transactions, min(writers, transactions))
        metrics[f"txn{count}_per_s"] = transactions / took
    await write_rows(store, range(SCANNED_ROWS), BODY)
    reader = store.begin(read_only=True)
    took = await spread(lambda number: reader.get(key(number)), writes, 1)
    metrics["get_per_s"] = writes / took
    began, rows = time.perf_counter(), 0
    async for slice_ in reader.scan_slices(SPAN):
        rows += len(slice_)
    metrics["scan_rows_per_s"] = rows / (time.perf_counter() - began)
    await reader.rollback()
    return metrics


def get_seconds(folder: Path, keys: int) -> float:
    """Seconds of `GETS` gets of random keys of an engine that has flushed and compacted `keys`."""
    engine = RocksEngine.open(folder)
    for first in range(0, keys, KEYS_A_BATCH):
        batch = EngineBatch()
        batch.puts += [(key(number), BODY) for number in range(first, first + KEYS_A_BATCH)]
        engine.write(batch, applied_index=1 + first)
        if first % (KEYS_A_BATCH * 10) == 0:
            engine.flush()
    engine.flush()
    chosen = random.Random(keys).choices(range(keys), k=2 * GETS)
    for number in chosen[:GETS]:
        engine.get(key(number))
    began = time.perf_counter()
    for number in chosen[GETS:]:
        assert engine.get(key(number)) == BODY
    took = time.perf_counter() - began
    engine.close()
    return took


async def drain(feed: Feed) -> None:
    while True:
        await feed.next()


async def write_cost(store: Store, feeds: int, writes: int, writers: int) -> float:
    """How much longer writes take with that many feeds."""
    costs: list[float] = []
    for _ in range(ROUNDS):
        without = await spread(lambda number: put(store, number), writes, writers)
        opened = [store.span_feed([SPAN], store.clock.last) for _ in range(feeds)]
        readers = [asyncio.create_task(drain(feed)) for feed in opened]
        await asyncio.sleep(0.05)
        costs.append(await spread(lambda number: put(store, number), writes, writers) / without)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        for feed in opened:
            feed.close()
    return statistics.median(costs)


async def pipeline_cost(folder: Path, writes: int, writers: int) -> float:
    """How much longer INSERTs take with a mirror of their table."""
    insert = "INSERT INTO orders (id, customer, amount, note) VALUES ($1, 1, 0.5, 'a note')"
    async with await aopen(folder) as database:
        await database.sql(CREATE_ORDERS)
        sessions = [Session(database.node.services) for _ in range(writers)]
        ids = iter(range(1 << 40))

        async def work(number: int) -> None:
            await sessions[number % writers].execute(insert, [next(ids)])

        made = await database.sql(MIRROR_ORDERS)
        job_id = made.fetchall()[0][0]
        assert isinstance(job_id, int)
        live = database.feed(job_id)
        await spread(work, writers, writers)
        costs: list[float] = []
        for _ in range(ROUNDS):
            await live.wait_until(await database.node.store.now())
            with_mirror = await spread(work, writes, writers)
            await live.wait_until(await database.node.store.now())
            await database.sql(f"PAUSE JOB {job_id}")
            costs.append(with_mirror / await spread(work, writes, writers))
            await database.sql(f"RESUME JOB {job_id}")
        for session in sessions:
            await session.close()
    return statistics.median(costs)


async def measure(folder: Path, writes: int, writers: int) -> dict[str, float]:
    small, large = (get_seconds(folder / f"gets{n}", n) for n in KEYS_SMALL_AND_LARGE)
    metrics = {"large_get_over_small": large / small, "large_get_us": large / GETS * 1e6}
    async with disk_store(folder / "memory", engine=MemoryEngine()) as store:
        found = await rates(store, writes, writers)
        metrics |= {f"memory_{name}": value for name, value in found.items()}
    async with disk_store(folder / "rocksdb") as store:
        metrics |= await rates(store, writes, writers)
        metrics["write_cost_1_feed"] = await write_cost(store, 1, writes, writers)
        metrics["write_cost_10_feeds"] = await write_cost(store, 10, writes, writers)
    metrics["write_cost_pipeline"] = await pipeline_cost(folder / "pipeline", writes // 2, writers)
    return metrics


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--writes", type=int, default=4000)
    parser.add_argument("--writers", type=int, default=64)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-kv-") as name:
        metrics = asyncio.run(measure(Path(name), arguments.writes, arguments.writers))
    print_outcome("kv", metrics)


if __name__ == "__main__":
    main()
