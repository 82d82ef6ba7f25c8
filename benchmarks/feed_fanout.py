"""What feeds cost a writer: single-row commits with 0, 1, 10 and 100 registrations on their range.

    python -m benchmarks.feed_fanout [--commits 2000] [--writers 16]

Each registration has a consumer that takes what comes. `write_cost_N` is the time of the commits
with N registrations over that without; they are measured in turn, so that a noisy machine does not
favour one. `events_per_s_100` is what all consumers together took.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.outcome import print_outcome
from benchmarks.stores import SPAN, disk_store, key
from tailrace.kvlayer.events import ValueBatch
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.store import Store

COUNTS = (0, 1, 10, 100)
ROUNDS = 3


class Consumers:
    """Feeds with a task each that takes what comes."""

    def __init__(self, store: Store, count: int) -> None:
        now = store.clock.now()
        self._feeds = [store.range_feed(SPAN, now) for _ in range(count)]
        self.rows = 0
        self._tasks = [asyncio.create_task(self._take(feed)) for feed in self._feeds]

    async def _take(self, feed: RangeFeed) -> None:
        async for events in feed:
            self.rows += sum(len(event) for event in events if isinstance(event, ValueBatch))

    async def close(self, expected: int) -> None:
        while self.rows < expected:
            await asyncio.sleep(0.001)
        for task in self._tasks:
            task.cancel()
        for feed in self._feeds:
            feed.close()


async def write(store: Store, *, commits: int, writers: int) -> None:
    async def one(first: int) -> None:
        for number in range(first, commits, writers):
            await store.one_phase(lambda e, n=number: e.put([key(n)], [b"v" * 50]))  # type: ignore[misc]

    await asyncio.gather(*(one(first) for first in range(writers)))


async def measure(path: Path, *, commits: int, writers: int) -> dict[str, float]:
    spent: dict[int, list[float]] = {count: [] for count in COUNTS}
    rates: list[float] = []
    async with disk_store(path) as store:
        await write(store, commits=commits, writers=writers)
        for _ in range(ROUNDS):
            for count in COUNTS:
                consumers = Consumers(store, count)
                await asyncio.sleep(0.05)
                began = time.perf_counter()
                await write(store, commits=commits, writers=writers)
                spent[count].append(time.perf_counter() - began)
                await consumers.close(count * commits)
                if count == COUNTS[-1]:
                    rates.append(consumers.rows / (time.perf_counter() - began))
    bare = median(spent[0])
    costs = {f"write_cost_{count}": median(spent[count]) / bare for count in COUNTS[1:]}
    return {"commits_per_s": commits / bare, **costs, "events_per_s_100": median(rates)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=2000)
    parser.add_argument("--writers", type=int, default=16)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-fanout-") as name:
        metrics = asyncio.run(
            measure(Path(name) / "data", commits=arguments.commits, writers=arguments.writers)
        )
    print_outcome("feed_fanout", metrics)


if __name__ == "__main__":
    main()
