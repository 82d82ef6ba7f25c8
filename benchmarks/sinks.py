"""What sinks cost: a backlog drained into each, over the null sink's rate in the same run.

    python -m benchmarks.sinks [--rows 200000] [--rounds 3] [--commits 300] [--only NAME …]

Receivers are on loopback, in processes of their own: a webhook's that reads requests and answers,
librdkafka's mock cluster, and a PostgreSQL 15 that is started in a temporary folder.

KIND_over_null           rows a second of a backlog of `--rows` that gathered while the feed was
                         paused, over the null sink's: the median of the rounds' ratios. In each
                         round every feed drains the same rows, one at a time
KIND_rows_per_s          that rate itself, at the median
KIND_scan_rows_per_s     an initial scan of as many rows, from CREATE CHANGEFEED on
KIND_ack_ms_p50, _p99    single-row commits, 100 a second: from the call of commit until the sink
                         has acknowledged the row (a file: until the row is written to it)
postgres_over_bare_upsert  the drain over COPY and upsert of the same rows by psycopg
stalled_sink_rss_mb      how much more a process grows while a receiver takes connections and reads
                         nothing than with the null sink, while 10 MB of rows a second are loaded
                         for `--stall-seconds`. The feed may hold 64 MiB between its range feed
                         and its sink, and the range feed 64 MiB. `null_sink_rss_mb`: how much the
                         process grows with the null sink
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import psycopg
import pyarrow as pa

from benchmarks.bulk import PAUSE_SECONDS_MAX, orders
from benchmarks.feeds import SETTLING_SECONDS
from benchmarks.many_feeds import process_status
from benchmarks.outcome import print_outcome
from benchmarks.receivers import receiver
from benchmarks.servers import postgres_installed, postgres_server
from tailrace.api.bench.latency import CREATE_ORDERS, INSERT_ORDER
from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.pipeline.stage_times import Latency, Milestone
from tailrace.kvlayer.process.tuned_process import tuned_process

RATE = 100.0
UPSERTED_AT_ONCE = 10_000
"""Rows of a bare upsert: what a feed wants to gather for a flush."""

CHECKPOINTS = "min_checkpoint_frequency = '1s'"
SAVED_SECONDS = 1.5
"""After them a feed with such checkpoints, or more frequent ones, has saved its progress."""

STALLED_FEED_MB = 64
STALLED_ROW_BYTES = 1_000
STALLED_ROWS_A_SECOND = 10_000
INSECURE_WEBHOOKS = (
    "SET CLUSTER SETTING changefeed.webhook.private_addresses.enabled = true",
    "SET CLUSTER SETTING changefeed.webhook.insecure_http.enabled = true",
)
KINDS = ("file_json", "file_parquet", "kafka", "webhook", "postgres")


@dataclass(slots=True)
class Feed:
    """One sink's feed, paused, and its drains' rates in rows a second."""

    database: AsyncDatabase
    live: LiveFeed
    scan_rate: float
    rates: list[float]

    async def pause(self) -> None:
        """Once its progress is saved: or it would begin with what it has shown already."""
        await asyncio.sleep(SAVED_SECONDS)
        await self.database.sql(f"PAUSE JOB {self.live.job_id}")
        jobs = self.database.node.jobs
        await jobs.wait(self.live.job_id, JobState.PAUSED, timeout=PAUSE_SECONDS_MAX)

    async def resume(self) -> None:
        await self.database.sql(f"RESUME JOB {self.live.job_id}")
        await self.live.wait_until(await self.database.node.store.now())

    async def drain(self, rows: int) -> None:
        with tuned_process():
            began = time.perf_counter()
            await self.resume()
            self.rates.append(rows / (time.perf_counter() - began))
        await self.pause()


async def create_feed(database: AsyncDatabase, into: str, rows: int) -> Feed:
    """A feed that has scanned `rows` rows, and is paused."""
    began = time.perf_counter()
    made = await database.sql(f"CREATE CHANGEFEED FOR TABLE orders INTO {into}")
    job_id = made.fetchall()[0][0]
    assert isinstance(job_id, int)
    live = database.feed(job_id)
    await live.wait_until(await database.node.store.now())
    feed = Feed(database, live, rows / (time.perf_counter() - began), [])
    await feed.pause()
    return feed


async def acknowledged(feed: Feed, first: int, commits: int) -> Latency:
    """From commit to acknowledgement, of single rows while this feed alone runs."""
    await feed.resume()
    with tuned_process():
        for measured in (False, True):
            began = time.monotonic()
            for place in range(commits):
                await asyncio.sleep(max(0.0, began + place / RATE - time.monotonic()))
                id = first + place + commits * measured
                row = (id, id % 997, 0.5, "a note", "2026-01-01 00:00:00Z")
                await feed.database.sql(INSERT_ORDER, row)
            await feed.live.wait_until(await feed.database.node.store.now())
            found = feed.live.stages.latency(Milestone.SINK)
            feed.live.stages.clear()
    await feed.pause()
    assert found is not None
    return found


class BareUpsert:
    """COPY into a temporary table and one INSERT … ON CONFLICT, by psycopg, as many rows a time as
    a feed's flush has; the rows are Python values that are ready."""

    def __init__(self, port: int) -> None:
        self._client = psycopg.connect(
            host="127.0.0.1", port=port, user="root", dbname="postgres", autocommit=True
        )
        self._client.execute(
            "CREATE TABLE bare (id bigint PRIMARY KEY, customer bigint, amount float8, note text, "
            "ts timestamptz, at bigint NOT NULL)"
        )
        self._client.execute("CREATE TEMPORARY TABLE staged (LIKE bare)")
        self.rates: list[float] = []

    def measure(self, rows: pa.Table) -> None:
        ready = [(*row, 1) for row in zip(*rows.to_pydict().values(), strict=True)]
        began = time.perf_counter()
        for start in range(0, len(ready), UPSERTED_AT_ONCE):
            self._upsert(ready[start : start + UPSERTED_AT_ONCE])
        self.rates.append(len(ready) / (time.perf_counter() - began))

    def close(self) -> None:
        self._client.close()

    def _upsert(self, rows: Sequence[Sequence[object]]) -> None:
        with self._client.transaction():
            with self._client.cursor() as cursor, cursor.copy("COPY staged FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            self._client.execute(
                "INSERT INTO bare AS old SELECT * FROM staged ON CONFLICT (id) DO UPDATE SET "
                "customer = excluded.customer, amount = excluded.amount, note = excluded.note, "
                "ts = excluded.ts, at = excluded.at WHERE excluded.at > old.at"
            )
            self._client.execute("TRUNCATE staged")


def sinks(names: Sequence[str], folder: Path, stack: ExitStack) -> tuple[dict[str, str], int]:
    """What follows INTO for each sink, with its receiver started; and PostgreSQL's port, or 0."""
    into = {
        "null": "'null://'",
        "file_json": f"'nodelocal://self/json' WITH {CHECKPOINTS}",
        "file_parquet": f"'nodelocal://self/parquet' WITH format = 'parquet', {CHECKPOINTS}",
    }
    port = 0
    if "kafka" in names:
        into["kafka"] = f"'kafka://{stack.enter_context(receiver('kafka'))}'"
    if "webhook" in names:
        into["webhook"] = f"'webhook-http://{stack.enter_context(receiver('webhook'))}'"
    if "postgres" in names and postgres_installed():
        port = stack.enter_context(postgres_server(folder))
        into["postgres"] = f"'postgres://root@127.0.0.1:{port}/postgres'"
    return {name: text for name, text in into.items() if name in ("null", *names)}, port


async def drains(names: Sequence[str], rows: int, rounds: int, commits: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailrace-sinks-")))
        into, port = sinks(names, folder, stack)
        bare = BareUpsert(port) if port else None
        if bare is not None:
            stack.callback(bare.close)  # PostgreSQL ends when nobody is connected
        data = orders((rounds + 1) * rows)
        async with await aopen(folder / "data") as database:
            await database.sql(CREATE_ORDERS)
            for setting in INSECURE_WEBHOOKS:
                await database.sql(setting)
            await database.load("orders", data.slice(0, rows))
            feeds = {name: await create_feed(database, text, rows) for name, text in into.items()}
            for turn in range(1, rounds + 1):
                part = data.slice(turn * rows, rows)
                await database.load("orders", part)
                await asyncio.sleep(SETTLING_SECONDS)
                order = list(feeds.values())
                for feed in order[turn % len(order) :] + order[: turn % len(order)]:
                    await feed.drain(rows)
                if bare is not None:
                    await asyncio.to_thread(bare.measure, part)
            for place, (name, feed) in enumerate(feeds.items()):
                figures |= _figures(name, feed, feeds["null"])
                if commits:
                    first = data.num_rows + 2 * place * commits
                    latency = await acknowledged(feed, first, commits)
                    figures[f"{name}_ack_ms_p50"] = latency.p50
                    figures[f"{name}_ack_ms_p99"] = latency.p99
            if bare is not None:
                pairs = zip(feeds["postgres"].rates, bare.rates, strict=True)
                figures["postgres_over_bare_upsert"] = median(ours / plain for ours, plain in pairs)
                figures["bare_upsert_rows_per_s"] = median(bare.rates)
    return figures


def _figures(name: str, feed: Feed, null: Feed) -> dict[str, float]:
    found = {
        f"{name}_rows_per_s": median(feed.rates),
        f"{name}_scan_rows_per_s": feed.scan_rate,
    }
    if feed is not null:
        pairs = zip(feed.rates, null.rates, strict=True)
        found[f"{name}_over_null"] = median(rate / over for rate, over in pairs)
    return found


async def stalled(into: str, seconds: float) -> float:
    """By how many MB the process grows."""
    with tempfile.TemporaryDirectory(prefix="tailrace-stalled-") as name:
        async with await aopen(Path(name)) as database:
            for statement in (
                *INSECURE_WEBHOOKS,
                "SET CLUSTER SETTING changefeed.memory.per_changefeed_limit = "
                f"{STALLED_FEED_MB << 20}",
                "CREATE TABLE t (id INT8 PRIMARY KEY, note STRING)",
                f"CREATE CHANGEFEED FOR TABLE t INTO {into}",
            ):
                await database.sql(statement)
            note = pa.array(["x" * STALLED_ROW_BYTES] * STALLED_ROWS_A_SECOND)
            before, grown, began = process_status()[0], 0.0, time.monotonic()
            for turn in range(round(seconds)):
                first = turn * STALLED_ROWS_A_SECOND
                ids = pa.array(range(first, first + STALLED_ROWS_A_SECOND), pa.int64())
                await database.load("t", pa.table({"id": ids, "note": note}))
                await asyncio.sleep(max(0.0, began + turn + 1 - time.monotonic()))
                grown = max(grown, process_status()[0] - before)
            return grown


def run_stalled(into: str, seconds: float) -> float:
    return asyncio.run(stalled(into, seconds))


def stalls(seconds: float) -> dict[str, float]:
    with (
        receiver("stalled") as address,
        ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        into = f"'webhook-http://{address}' WITH webhook_client_timeout = '1h'"
        null = pool.submit(run_stalled, "'null://'", seconds).result()
        stalled = pool.submit(run_stalled, into, seconds).result()
    return {"stalled_sink_rss_mb": stalled - null, "null_sink_rss_mb": null}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commits", type=int, default=300, help="for latencies; 0 for none")
    parser.add_argument("--stall-seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=[], choices=[*KINDS, "stalled"])
    given = parser.parse_args()
    chosen = given.only or [*KINDS, "stalled"]
    figures: dict[str, float] = {}
    kinds = [name for name in chosen if name in KINDS]
    if kinds:
        figures |= asyncio.run(drains(kinds, given.rows, given.rounds, given.commits))
    if "stalled" in chosen:
        figures |= stalls(given.stall_seconds)
    for name, value in figures.items():
        print(f"{name:28} {value:12,.3f}")
    print_outcome("sinks", figures)


if __name__ == "__main__":
    main()
