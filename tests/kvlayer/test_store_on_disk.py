"""The store on real files: RocksDB, a real log, threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from tailrace.kvlayer.clock import BoundStore, Clock, MemoryBoundStore, SystemWallClock
from tailrace.kvlayer.engine.rocksdb import RocksEngine
from tailrace.kvlayer.files.disk import RealDisk
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.mvcc import SLICE_ROWS
from tailrace.kvlayer.process.offload import ThreadOffload
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tests.harness.stores import key, put

SPAN = table_span(7)
MANY = [key(f"{i:05}") for i in range(3000)]


@asynccontextmanager
async def store_in(folder: Path, bounds: BoundStore | None = None) -> AsyncIterator[Store]:
    (folder / "log").mkdir(exist_ok=True)
    offload = ThreadOffload()
    store = await Store.start(
        disk=RealDisk(folder / "log"),
        engine=RocksEngine.open(folder / "engine"),
        clock=Clock(SystemWallClock(), bounds or MemoryBoundStore()),
        offload=offload,
        settings=Settings(),
        metrics=Metrics(),
        random=Random(1),
    )
    yield store
    store.check_invariants()
    await store.close()
    offload.close()


def test_transactions_survive_a_restart(tmp_path: Path) -> None:
    async def first() -> str:
        async with store_in(tmp_path) as store:
            await put(store, {key("a"): b"1", key("b"): b"2"})
            writer = store.begin()
            await writer.put(MANY, [b"x"] * len(MANY))
            await writer.delete([key("b")])
            assert len(await writer.scan(SPAN)) == len(MANY) + 1
            await writer.commit()
            return store.id

    async def second(store_id: str) -> None:
        async with store_in(tmp_path) as store:
            assert store.id == store_id
            slices = store.snapshot(store.clock.last).scan_slices(SPAN)
            assert len(await anext(slices)) == SLICE_ROWS
            await slices.aclose()
            rows = await store.snapshot(store.clock.last).scan(SPAN)
            assert rows == [*((name, b"x") for name in MANY), (key("a"), b"1")]
            assert await store.collect_garbage(SPAN, store.clock.now()) == 2
            assert await store.begin().scan(SPAN, reverse=True, limit=1) == [(key("a"), b"1")]

    asyncio.run(second(asyncio.run(first())))


def test_writers_and_readers_share_the_loop(tmp_path: Path) -> None:
    async def main() -> None:
        async with store_in(tmp_path) as store:

            async def write(name: str) -> None:
                for i in range(20):
                    rows = {key(f"{name}{i:02}{j:03}"): b"x" for j in range(100)}
                    await put(store, rows)

            async def read() -> None:
                for _ in range(10):
                    rows = await store.snapshot(store.clock.now()).scan(SPAN)
                    assert len(rows) % 100 == 0, "a transaction is seen whole"

            await asyncio.gather(write("a"), write("b"), read())
            assert len(await store.snapshot(store.clock.last).scan(SPAN)) == 4000

    asyncio.run(main())


def test_store_that_is_closed_leaves_no_head_start_to_the_next(tmp_path: Path) -> None:
    bounds = MemoryBoundStore()

    async def once() -> None:
        async with store_in(tmp_path, bounds) as store:
            await put(store, {key("a"): b"1"})
            clock = store.clock
        assert bounds.load() == clock.last

    asyncio.run(once())
    asyncio.run(once())
