"""Bulk: rows committed in transactions of 1,000 with a mirror on, until all are in the mirror.

    python -m benchmarks.bulk [--rows 500000] [--workers on]

`rows_per_s` is from the first commit to the last row in DuckDB, `commit_rows_per_s` to the last
commit. `drain_rows_per_s` is a backlog's rate: as many rows are committed while the feed is paused,
and the time is from its resumption until they are all in DuckDB.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.outcome import print_outcome
from tailrace.api.bench.latency import CREATE_ORDERS, MIRROR_ORDERS
from tailrace.api.embedded import aopen
from tailrace.catalog.jobs import JobState

PAUSE_SECONDS_MAX = 30.0
"""A pause takes milliseconds; a feed that does not pause is a failure of the benchmark."""


def orders(rows: int) -> pa.Table:
    """Rows of the benchmarks' table, the same ones each time."""
    ids = np.arange(rows, dtype=np.int64)
    return pa.table(
        {
            "id": ids,
            "customer": ids % 997,
            "amount": ids * 0.5,
            "note": pa.array([f"note {number}" for number in range(rows)]),
            "ts": pa.array(1_767_225_600_000_000 + ids, pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )


async def measure_bulk(folder: Path, rows: int, workers: str | None = None) -> dict[str, float]:
    """Loads twice `rows` rows into a new store in `folder`. Rates are rows a second. `workers` is
    the setting `changefeed.workers`, None its default."""
    data = orders(2 * rows)
    async with await aopen(folder) as database:
        if workers is not None:
            await database.sql(f"SET CLUSTER SETTING changefeed.workers = '{workers}'")
        await database.sql(CREATE_ORDERS)
        made = await database.sql(MIRROR_ORDERS)
        job_id = made.fetchall()[0][0]
        assert isinstance(job_id, int)
        live = database.feed(job_id)
        await live.wait_until(await database.node.store.now())
        began = time.monotonic()
        report = await database.load("orders", data.slice(0, rows))
        committed = time.monotonic()
        await live.wait_until(report.commit_timestamp)
        mirrored = time.monotonic()

        await database.sql(f"PAUSE JOB {job_id}")
        await database.node.jobs.wait(job_id, JobState.PAUSED, timeout=PAUSE_SECONDS_MAX)
        report = await database.load("orders", data.slice(rows))
        resumed = time.monotonic()
        await database.sql(f"RESUME JOB {job_id}")
        await live.wait_until(report.commit_timestamp)
        drained = time.monotonic()
        counted = await database.mirror("mirror.duckdb").sql("SELECT count(*) AS n FROM orders")
        assert counted["n"][0].as_py() == 2 * rows, counted
    return {
        "rows_per_s": rows / (mirrored - began),
        "commit_rows_per_s": rows / (committed - began),
        "drain_rows_per_s": rows / (drained - resumed),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--workers", choices=["on", "off"], help="the setting changefeed.workers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-bulk-") as name:
        metrics = asyncio.run(measure_bulk(Path(name) / "data", arguments.rows, arguments.workers))
    print_outcome("bulk", metrics)


if __name__ == "__main__":
    main()
