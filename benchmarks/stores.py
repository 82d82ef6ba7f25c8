"""Stores on disk for benchmarks of the KV layer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random

from tailrace.kvlayer.clock import Clock, SystemWallClock
from tailrace.kvlayer.engine import Engine
from tailrace.kvlayer.engine.rocksdb import RocksEngine
from tailrace.kvlayer.files.data_folder import DataFolder
from tailrace.kvlayer.keys import encode_int, index_prefix, index_span
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.process.offload import ThreadOffload
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store

TABLE = 200
PREFIX = index_prefix(TABLE, 1)
SPAN: Span = index_span(TABLE, 1)


def key(number: int) -> bytes:
    return PREFIX + encode_int(number)


@asynccontextmanager
async def disk_store(path: Path, *, engine: Engine | None = None) -> AsyncIterator[Store]:
    """A store as the server has it, at default settings, without a catalog on top.

    Its engine is RocksDB, unless another one is given.
    """
    folder, offload = DataFolder.open(path), ThreadOffload()
    with closing(folder), closing(offload):
        store = await Store.start(
            disk=folder.disk,
            engine=engine or RocksEngine.open(folder.engine_path),
            clock=Clock(SystemWallClock(), folder.clock_bounds),
            offload=offload.lane("log"),
            settings=Settings(),
            metrics=Metrics(),
            random=Random(0),
        )
        try:
            yield store
        finally:
            await store.close()


async def write_rows(store: Store, numbers: range, body: bytes, *, batch: int = 1000) -> None:
    """Commits a row for each number, `batch` to a transaction."""
    for start in range(0, len(numbers), batch):
        written = [key(number) for number in numbers[start : start + batch]]
        bodies = [body] * len(written)
        await store.one_phase(lambda e, w=written, b=bodies: e.put(w, b))  # type: ignore[misc]
