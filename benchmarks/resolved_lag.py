"""How far the resolved timestamp of a range feed is behind the clock.

    python -m benchmarks.resolved_lag [--seconds 60] [--short-seconds 10]

Lag is looked at every two milliseconds from outside of the feed: now less the last checkpoint that
its consumer has. It is measured idle, beside 100 short explicit transactions a second, beside an
explicit transaction that has written nothing (`idle_session`), and with one that has written and
stays open for `--seconds`, which may be no longer behind than the target duration plus one
interval of the ticks: `long_txn_bound_ms`.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.outcome import print_outcome
from benchmarks.stores import SPAN, disk_store, key
from tailrace.kvlayer.clock import ZERO, Timestamp, seconds_between
from tailrace.kvlayer.closed_timestamp import TARGET_DURATION
from tailrace.kvlayer.events import Checkpoint
from tailrace.kvlayer.rangefeed import TICK_INTERVAL
from tailrace.kvlayer.store import Store

SAMPLE_SECONDS = 0.002
SHORT_PER_SECOND = 100
WARM_UP_SECONDS = 0.5


class Watcher:
    """Consumes a feed, and knows its last checkpoint."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feed = store.range_feed(SPAN, store.clock.now())
        self.resolved: Timestamp = ZERO
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for events in self._feed:
            for event in events:
                if isinstance(event, Checkpoint):
                    self.resolved = max(self.resolved, event.resolved)

    async def sample(self, seconds: float) -> list[float]:
        """The lag in milliseconds, over and over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        lags: list[float] = []
        while loop.time() < until:
            await asyncio.sleep(SAMPLE_SECONDS)
            lags.append(seconds_between(self.resolved, self._store.clock.now()) * 1000)
        return lags

    def close(self) -> None:
        self._task.cancel()
        self._feed.close()


async def short_transactions(store: Store) -> None:
    number, loop = 0, asyncio.get_running_loop()
    due = loop.time()
    while True:
        transaction = store.begin()
        await transaction.put([key(number % 1000)], [b"v"])
        await transaction.commit()
        number += 1
        due += 1 / SHORT_PER_SECOND
        await asyncio.sleep(max(0.0, due - loop.time()))


async def long_transaction(store: Store) -> None:
    """Writes once, and stays open until it is cancelled."""
    transaction = store.begin()
    await transaction.put([key(1_000_000)], [b"v"])
    try:
        await asyncio.Event().wait()
    finally:
        await transaction.rollback()


async def idle_session(store: Store) -> None:
    """As somebody at a prompt: BEGIN, one read, and nothing more."""
    transaction = store.begin()
    await transaction.get(key(1))
    try:
        await asyncio.Event().wait()
    finally:
        await transaction.rollback()


async def measure(
    path: Path, work: Callable[[Store], Awaitable[None]] | None, seconds: float
) -> list[float]:
    async with disk_store(path) as store:
        watcher = Watcher(store)
        await asyncio.sleep(WARM_UP_SECONDS)
        running = asyncio.ensure_future(work(store)) if work is not None else None
        lags = await watcher.sample(seconds)
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        watcher.close()
        return lags


def percentile(lags: list[float], part: float) -> float:
    return sorted(lags)[min(len(lags) - 1, int(len(lags) * part))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="the long transaction's life")
    parser.add_argument("--short-seconds", type=float, default=10.0, help="each other part's")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-lag-") as name:
        folder, brief = Path(name), arguments.short_seconds
        idle = asyncio.run(measure(folder / "idle", None, brief))
        short = asyncio.run(measure(folder / "short", short_transactions, brief))
        session = asyncio.run(measure(folder / "session", idle_session, brief))
        long = asyncio.run(measure(folder / "long", long_transaction, arguments.seconds))
    print_outcome(
        "resolved_lag",
        {
            "idle_ms_p50": percentile(idle, 0.5),
            "idle_ms_p99": percentile(idle, 0.99),
            "short_txn_ms_p50": percentile(short, 0.5),
            "short_txn_ms_p99": percentile(short, 0.99),
            "idle_session_ms_p99": percentile(session, 0.99),
            "long_txn_ms_max": max(long),
            "long_txn_bound_ms": (TARGET_DURATION.default + TICK_INTERVAL.default) * 1000,
        },
    )


if __name__ == "__main__":
    main()
