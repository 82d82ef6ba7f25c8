"""Spark reading tables, beside Spark reading PostgreSQL 15 over JDBC.

    python -m benchmarks.spark [--rows 336776] [--repeats 3] [--batches 15] [--commits 1500]

The rows are the flights of the demo. `snapshot_rows_per_s`: a batch read of the whole table by
`local[2]` out of one server process; `snapshot_over_jdbc`: that over the same read, by the same
session in as many partitions, of a PostgreSQL that is started in a temporary folder (without one
there is no ratio). `microbatch_floor_s`: a streaming query's batch of one row, from trigger to
committed offset, at the median. `commit_ms_p99_under_export`: durable single-row UPDATEs over the
Postgres protocol, while another process reads exports of the whole table one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pyarrow as pa
import pyarrow.csv
from pyspark.sql import DataFrame, SparkSession

from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server
from tailrace import register_spark
from tailrace.api.demo.flights import FLIGHTS, read_table

DRIVER = Path("/usr/share/java/postgresql.jar")
ARROW = "application/vnd.apache.arrow.stream"
LOAD_ROWS = 10_000

_EXPORTING = """
import sys, urllib.request
while True:
    with urllib.request.urlopen(sys.argv[1]) as answer:
        while answer.read(1 << 20):
            pass
"""


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("benchmark").master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": str(DRIVER) if DRIVER.exists() else "",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register_spark(session)
    try:
        yield session
    finally:
        session.stop()


def load_tailrace(url: str, port: int, rows: pa.Table) -> None:
    body = io.BytesIO()
    with pa.ipc.new_stream(body, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=LOAD_ROWS)
    asyncio.run(_execute(port, "defaultdb", FLIGHTS.create))
    request = urllib.request.Request(
        f"{url}/v1/tables/flights/rows", body.getvalue(), {"content-type": ARROW}
    )
    urllib.request.urlopen(request).close()


def load_postgres(port: int, rows: pa.Table) -> None:
    create = FLIGHTS.create.replace("STRING", "TEXT")
    asyncio.run(_execute(port, "postgres", create, rows))


async def _execute(port: int, database: str, text: str, rows: pa.Table | None = None) -> None:
    client = await asyncpg.connect(host="127.0.0.1", port=port, user="root", database=database)
    try:
        await client.execute(text)
        if rows is not None:
            body = io.BytesIO()
            pa.csv.write_csv(rows, body, pa.csv.WriteOptions(include_header=False))
            body.seek(0)
            await client.copy_to_table("flights", source=body, format="csv")
            await client.execute("VACUUM ANALYZE flights")
    finally:
        await client.close()


def read_rate(read: DataFrame, rows: int, repeats: int) -> float:
    """Rows a second of the best of several reads; the first of all warms up and is not counted."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        read.write.format("noop").mode("overwrite").save()
        times.append(time.perf_counter() - began)
    return rows / min(times[1:])


def jdbc_read(session: SparkSession, port: int, partitions: int) -> DataFrame:
    """In as many partitions, cut by month; a large fetch size, which its users advise."""
    return (
        session.read.format("jdbc")
        .option("url", f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=root")
        .option("driver", "org.postgresql.Driver")
        .option("dbtable", "flights")
        .option("fetchsize", 10_000)
        .option("partitionColumn", "month")
        .option("lowerBound", 1)
        .option("upperBound", 13)
        .option("numPartitions", partitions)
        .load()
    )


def tailrace_read(session: SparkSession, url: str) -> DataFrame:
    return session.read.format("changefeed").option("url", url).option("table", "flights").load()


def batch_seconds(session: SparkSession, url: str, port: int, folder: Path, count: int) -> float:
    """The median of the times that batches of one row took, of a query that has warmed up."""
    query = (
        session.readStream.format("changefeed")
        .option("url", url)
        .option("table", "flights")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    taken: dict[int, float] = {}
    try:
        query.processAllAvailable()  # the stream begins when Spark first asks; not before an UPDATE
        while len(taken) < count + 3:
            asyncio.run(_execute(port, "defaultdb", _update(len(taken))))
            before = len(taken)
            while len(taken) == before:
                _note_batches(query.recentProgress, taken)
                assert query.isActive, query.exception()
                time.sleep(0.01)
    finally:
        query.stop()
    return statistics.median(sorted(taken.items())[3 + place][1] for place in range(count))


def _note_batches(progress: list[Any], taken: dict[int, float]) -> None:
    for batch in progress:
        if batch["numInputRows"]:
            taken[batch["batchId"]] = batch["durationMs"]["triggerExecution"] / 1000


def _update(number: int) -> str:
    return (
        f"UPDATE flights SET dep_delay = {number} WHERE time_hour = '2013-01-01 10:00:00+00'"
        " AND carrier = 'UA' AND flight = 1545"
    )


async def commit_milliseconds(port: int, count: int) -> list[float]:
    """How long each of `count` UPDATEs of one row took, sorted."""
    client = await asyncpg.connect(host="127.0.0.1", port=port, user="root", database="defaultdb")
    try:
        await client.execute("CREATE TABLE IF NOT EXISTS points (id INT8 PRIMARY KEY, n INT8)")
        await client.execute("UPSERT INTO points SELECT i, 0 FROM generate_series(0, 99) AS g(i)")
        update = await client.prepare("UPDATE points SET n = n + 1 WHERE id = $1")
        taken = []
        for number in range(count):
            began = time.perf_counter()
            await update.fetch(number % 100)
            taken.append((time.perf_counter() - began) * 1000)
    finally:
        await client.close()
    return sorted(taken)


def commit_p99_under_export(url: str, port: int, count: int) -> tuple[float, float]:
    """The same 99th percentile without and with exports going on."""
    quiet = asyncio.run(commit_milliseconds(port, count))
    reader = subprocess.Popen([sys.executable, "-c", _EXPORTING, f"{url}/v1/tables/flights/export"])
    try:
        time.sleep(0.5)
        busy = asyncio.run(commit_milliseconds(port, count))
        assert reader.poll() is None, "the reader has failed"
    finally:
        reader.kill()
        reader.wait()
    return quiet[count * 99 // 100], busy[count * 99 // 100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=336_776)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batches", type=int, default=15)
    parser.add_argument("--commits", type=int, default=1500)
    sizes = parser.parse_args()
    rows = read_table(FLIGHTS.name).slice(0, sizes.rows)
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="tailrace-spark-") as name:
        folder = Path(name)
        with tailrace_server(folder) as (url, port):
            load_tailrace(url, port, rows)
            quiet, busy = commit_p99_under_export(url, port, sizes.commits)
            metrics["commit_ms_p99_without_export"] = quiet
            metrics["commit_ms_p99_under_export"] = busy
            with spark_session() as session:
                read = tailrace_read(session, url)
                partitions = read.rdd.getNumPartitions()
                metrics["snapshot_rows_per_s"] = read_rate(read, rows.num_rows, sizes.repeats)
                metrics["microbatch_floor_s"] = batch_seconds(
                    session, url, port, folder, sizes.batches
                )
                if DRIVER.exists() and postgres_installed():
                    with postgres_server(folder) as beside:
                        load_postgres(beside, rows)
                        jdbc = jdbc_read(session, beside, partitions)
                        rate = read_rate(jdbc, rows.num_rows, sizes.repeats)
                    metrics["jdbc_rows_per_s"] = rate
                    metrics["snapshot_over_jdbc"] = metrics["snapshot_rows_per_s"] / rate
    print_outcome("spark", metrics)


if __name__ == "__main__":
    main()
