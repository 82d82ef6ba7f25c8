"""What DuckDB alone takes for what the mirror does: the floor of every sink latency.

Each commit is a newer-wins upsert of one row and an update of one progress row, to a file, from a
thread beside an event loop, paced as the feed is paced.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import duckdb

from tailrace.changefeed.pipeline.stage_times import Latency, summarize
from tailrace.kvlayer.process.offload import ThreadOffload

_UPSERT = """INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    customer = excluded.customer, amount = excluded.amount, note = excluded.note,
    ts = excluded.ts, commit_timestamp = excluded.commit_timestamp
WHERE excluded.commit_timestamp > orders.commit_timestamp"""


async def measure_floor(folder: Path, *, rows: int, rate: float) -> Latency:
    """The latency of `rows` bare commits, `rate` a second, in milliseconds."""
    connection = duckdb.connect(str(folder / "floor.duckdb"))
    connection.execute("SET threads = 1")
    connection.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DOUBLE,"
        " note VARCHAR, ts TIMESTAMPTZ, commit_timestamp BIGINT)"
    )
    connection.execute("CREATE TABLE progress (job BIGINT PRIMARY KEY, resolved BIGINT)")
    connection.execute("INSERT INTO progress VALUES (1, 0)")
    offload = ThreadOffload("floor")
    samples: list[int] = []
    try:
        started = time.monotonic()
        for row in range(rows):
            await asyncio.sleep(max(0.0, started + row / rate - time.monotonic()))
            begun = time.monotonic_ns()
            await offload.run(lambda row=row: _commit(connection, row))  # type: ignore[misc]
            samples.append(time.monotonic_ns() - begun)
    finally:
        offload.close()
        connection.close()
    latency = summarize(samples)
    assert latency is not None
    return latency


def _commit(connection: duckdb.DuckDBPyConnection, row: int) -> None:
    connection.execute("BEGIN")
    connection.execute(_UPSERT, [row, row % 997, row * 0.5, "a note", "2026-01-01 00:00:00Z", row])
    connection.execute("UPDATE progress SET resolved = ? WHERE job = 1", [row])
    connection.execute("COMMIT")
