"""A feed's catch-up over what 1 % of the keys changed, with the time index and without it.

    python -m benchmarks.catchup_scan [--rows 1000000] [--repeat 5]

The store has `rows` keys, was flushed, and then every hundredth was written again. `speedup_1pct`
is the time of a scan of all versions that looks at each one's timestamp (what a store without a
time index must do), over that of the catch-up scan; both make the same events. The bill for it is
`index_write_cost`: the CPU time of making a batch's time-index entries and applying it with them,
over that of applying it without, each the median of a hundred batches or more.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.outcome import print_outcome
from benchmarks.stores import SPAN, disk_store, key, write_rows
from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.command import Command, WriteValue, engine_batch
from tailrace.kvlayer.engine import Engine, Reader
from tailrace.kvlayer.engine.rocksdb import RocksEngine
from tailrace.kvlayer.events import ValueBatch
from tailrace.kvlayer.mvcc import index_entries, version_bounds
from tailrace.kvlayer.rangefeed.catch_up import CatchUpScan
from tailrace.kvlayer.rangefeed.feed_options import FeedOptions
from tailrace.kvlayer.store import Store

BODY = b"b" * 100
BATCH_ROWS = 1000


def with_index(store: Store, after: Timestamp) -> int:
    """Rows that the catch-up scan finds."""
    with closing(CatchUpScan(store.engine.snapshot(), SPAN, after, FeedOptions())) as scan:
        found = 0
        while (events := scan.next_slice()) is not None:
            found += sum(len(event) for event in events if isinstance(event, ValueBatch))
        return found


def without_index(store: Store, after: Timestamp) -> int:
    """The same by looking at every version: per key newest first, and then turned round."""
    with closing(store.engine.snapshot()) as snapshot:
        return sum(len(batch) for batch in _filtered(snapshot, after))


def _filtered(reader: Reader, after: Timestamp) -> list[ValueBatch]:
    newest = keys.inverted(after)
    batches: list[ValueBatch] = []
    written: list[tuple[bytes, Timestamp, bytes]] = []
    pending: list[tuple[bytes, Timestamp, bytes]] = []
    for engine_key, value in reader.scan(*version_bounds(SPAN)):
        if engine_key[-8:] >= newest:
            continue
        name, ts = keys.split_version_key(engine_key)
        if pending and pending[0][0] != name:
            written += reversed(pending)
            pending = []
        pending.append((name, ts, value[1:]))
        if len(written) >= BATCH_ROWS:
            batches.append(_batch(written))
            written = []
    written += reversed(pending)
    if written:
        batches.append(_batch(written))
    return batches


def _batch(written: list[tuple[bytes, Timestamp, bytes]]) -> ValueBatch:
    names, timestamps, bodies = zip(*written, strict=True)
    return ValueBatch(keys=names, values=bodies, timestamps=timestamps)


def seconds(run: Callable[[], int], *, repeat: int, expected: int) -> float:
    times: list[float] = []
    for _ in range(repeat):
        began = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - began)
        assert found == expected, (found, expected)
    return median(times)


def measure_write_cost(folder: Path, *, batches: int) -> float:
    """The CPU time of batches with their time-index entries, over that of batches without."""
    spent: dict[bool, list[float]] = {True: [], False: []}
    engine: Engine = RocksEngine.open(folder)
    with closing(engine):
        for index in range(1, 2 * batches + 1):
            indexed = index % 2 == 0
            base = index * BATCH_ROWS
            written = [key(number) for number in range(base, base + BATCH_ROWS)]
            op = WriteValue(Timestamp(index), written, [b"\x00" + BODY] * BATCH_ROWS)
            batch = engine_batch(Command(1, Timestamp(0), [op]))
            batch.puts = [put for put in batch.puts if put[0][:1] != keys.TIME_INDEX]
            began = time.thread_time()
            if indexed:
                batch.puts.extend(index_entries(op.timestamp, op.keys))
            engine.write(batch, applied_index=index)
            spent[indexed].append(time.thread_time() - began)
    return median(spent[True]) / median(spent[False])


async def measure(folder: Path, *, rows: int, repeat: int) -> dict[str, float]:
    async with disk_store(folder / "data") as store:
        await write_rows(store, range(rows), BODY)
        await asyncio.to_thread(store.engine.flush)
        after = store.clock.now()
        await write_rows(store, range(0, rows, 100), BODY)
        changed = len(range(0, rows, 100))
        fast = seconds(lambda: with_index(store, after), repeat=repeat, expected=changed)
        slow = seconds(
            lambda: without_index(store, after), repeat=max(1, repeat // 2), expected=changed
        )
    return {
        "catch_up_ms": fast * 1000,
        "full_scan_ms": slow * 1000,
        "catch_up_rows_per_s": changed / fast,
        "speedup_1pct": slow / fast,
        "index_write_cost": measure_write_cost(folder / "engine", batches=max(100, rows // 10_000)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5, help="scans; their median counts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-catchup-") as name:
        metrics = asyncio.run(measure(Path(name), rows=arguments.rows, repeat=arguments.repeat))
    print_outcome("catchup_scan", metrics)


if __name__ == "__main__":
    main()
