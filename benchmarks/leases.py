"""Leases: taking one that the node holds, and what the leasing schema feed costs per event.

A peek is the question "which version decodes this row?", asked for one table while the feed
watches 1, 100 or many tables, all locked. It must cost the same: a lease is held, and only a notice
of a new version makes the feed look again.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from random import Random

from benchmarks.outcome import print_outcome
from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.descriptors.system_tables import DEFAULT_DATABASE_ID, DEFAULT_PUBLIC_ID
from tailrace.catalog.leases import LeaseManager, LivenessSession
from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, SystemWallClock
from tailrace.kvlayer.engine import MemoryEngine
from tailrace.kvlayer.files.disk import MemoryDisk
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.process.offload import ThreadOffload
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.schemafeed.leasing import LeasingSchemaFeed
from tailrace.schemafeed.polling import PollingSchemaFeed

COLUMNS = (
    Column(id=1, name="k", type=ColumnType(TypeKind.INT8), nullable=False),
    Column(id=2, name="v", type=ColumnType(TypeKind.STRING)),
)
TABLES_PER_TRANSACTION = 100
ROUNDS = 5
"""Each figure is the best of so many rounds: the others measure the machine's other work."""


async def create_tables(store: Store, descriptors: DescriptorStore, count: int) -> list[int]:
    """`count` locked tables, and their ids."""
    made: list[int] = []
    while len(made) < count:
        transaction = store.begin()
        for _ in range(min(TABLES_PER_TRANSACTION, count - len(made))):
            table = TableDescriptor(
                id=await descriptors.allocate_id(),
                name=f"t{len(made)}",
                database_id=DEFAULT_DATABASE_ID,
                schema_id=DEFAULT_PUBLIC_ID,
                columns=COLUMNS,
                primary_key=(1,),
                next_column_id=3,
                locked=True,
            )
            await descriptors.publish(transaction, table)
            made.append(table.id)
        await transaction.commit()
    return made


def best_us(work: Callable[[], object], times: int) -> float:
    """Microseconds of one call, in the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        for _ in range(times):
            work()
        best = min(best, (time.perf_counter_ns() - began) / times / 1000)
    return best


async def measure(times: int, counts: list[int]) -> dict[str, float]:
    offload = ThreadOffload("leases")
    store = await Store.start(
        disk=MemoryDisk(),
        engine=MemoryEngine(),
        clock=Clock(SystemWallClock(), MemoryBoundStore()),
        offload=offload,
        settings=Settings(),
        metrics=Metrics(),
        random=Random(1),
    )
    await bootstrap(store)
    descriptors = DescriptorStore(store)
    session = LivenessSession(store, 1)
    await session.start()
    leases = LeaseManager(store, descriptors, session)
    await leases.start()
    tables = await create_tables(store, descriptors, max(counts))
    (await leases.acquire(tables[0], await store.now())).release()
    at = await store.now()

    def acquire() -> None:
        lease = leases.try_acquire(tables[0], at)
        assert lease is not None
        lease.release()

    metrics = {"cached_acquire_us": best_us(acquire, times)}
    for count in counts:
        polling = PollingSchemaFeed(store, descriptors, leases)
        feed = LeasingSchemaFeed(leases, polling)
        watched = tables[:count]
        await feed.start(watched, await store.now())
        for table_id in watched:
            await feed.peek(table_id, await store.now())
        assert all(feed.fast(table_id) for table_id in watched), "a lease was not taken"
        at = await store.now()
        asked = Random(2).choices(watched, k=64)
        places = iter(range(1 << 62))

        def peek(feed: LeasingSchemaFeed = feed, asked: list[int] = asked) -> None:
            assert feed.try_peek(asked[next(places) % 64], at) is not None  # noqa: B023

        metrics[f"peek_us_{count}_table{'s' * (count > 1)}"] = best_us(peek, times)
        await feed.close()
        print(f"{count} tables: {metrics[f'peek_us_{count}_table' + 's' * (count > 1)]:.3f} µs")
    await leases.close()
    await session.close()
    await store.close()
    offload.close()
    return metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100_000, help="calls in a round")
    parser.add_argument(
        "--tables", type=int, nargs="+", default=[1, 100, 10_000], help="how many are watched"
    )
    options = parser.parse_args()
    print_outcome("leases", asyncio.run(measure(options.times, options.tables)))


if __name__ == "__main__":
    main()
