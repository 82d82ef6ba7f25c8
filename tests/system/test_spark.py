"""The Spark source on a standalone cluster whose Python workers have no Tailrace.

The commands are those of docs/spark.md.
"""

from __future__ import annotations

import importlib.util
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tailrace import register_spark
from tailrace.api.demo.compare import compare_tables
from tailrace.api.demo.flights import FLIGHTS, read_table
from tailrace.api.demo.lake import read_lake
from tailrace.kvlayer.clock import parse_timestamp
from tests.harness.http_door import ARROW
from tests.harness.server_process import ServerProcess
from tests.harness.spark_cluster import SparkCluster
from tests.harness.spark_driver import StreamDriver

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("default")]

PATIENCE_SECONDS = 300.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    with ServerProcess(folder / "data") as running:
        yield running


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[SparkCluster]:
    with SparkCluster(folder / "cluster") as running:
        yield running


@pytest.fixture(scope="module")
def session(cluster: SparkCluster) -> Iterator[SparkSession]:
    with cluster.session("tests") as opened:
        register_spark(opened)
        yield opened


def commit(server: ServerProcess, text: str, *params: object) -> int:
    return parse_timestamp(server.sql(text, *params)[-1]["commit_timestamp"])


def table_of(session: SparkSession, server: ServerProcess, table: str, **options: Any) -> DataFrame:
    reader = session.read.format("changefeed").option("url", server.url).option("table", table)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def stream_of(
    session: SparkSession, server: ServerProcess, table: str, folder: Path, **options: Any
) -> StreamingQuery:
    reader = session.readStream.format("changefeed")
    reader = reader.option("url", server.url).option("table", table)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return (
        reader.load()
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )


def wait_for_rows(query: StreamingQuery, folder: Path, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        failure = query.exception()
        if failure is not None:
            raise failure
        rows = read_lake(folder / "out").to_pylist() if (folder / "out").exists() else []
        if len(rows) >= count:
            return rows
        assert time.monotonic() < deadline, (len(rows), count, query.status)
        time.sleep(0.1)


def failure_of(query: StreamingQuery) -> str:
    """What a query that cannot go on ends with."""
    with pytest.raises(PySparkException) as caught:
        assert not query.awaitTermination(int(PATIENCE_SECONDS)), "the query goes on"
    return str(caught.value)


def test_batch_read_of_the_flights_equals_the_table(
    session: SparkSession, server: ServerProcess
) -> None:
    flights = read_table(FLIGHTS.name)
    server.sql(FLIGHTS.create)
    body = io.BytesIO()
    with pa.ipc.new_stream(body, flights.schema) as writer:
        writer.write_table(flights, max_chunksize=10_000)
    answer = server.client.post(
        f"{server.url}/v1/tables/flights/rows",
        content=body.getvalue(),
        headers={"content-type": ARROW},
    )
    loaded_at = parse_timestamp(answer.json()["commit_timestamp"])
    server.sql("DELETE FROM flights WHERE carrier = 'UA'")
    found = table_of(session, server, "flights", as_of=loaded_at)
    assert found.rdd.getNumPartitions() > 1
    rows = found.toArrow()
    assert set(rows["_op"].to_pylist()) == {"upsert"}
    read = rows.drop_columns(["_op", "_commit_timestamp"])
    compared = compare_tables(flights, read, FLIGHTS.key)
    assert (compared.rows, compared.differences) == (336_776, 0), compared.examples
    assert table_of(session, server, "flights").where("carrier = 'UA'").count() == 0


def test_workers_have_no_tailrace(session: SparkSession) -> None:
    def has_it(_: int) -> bool:
        return importlib.util.find_spec("tailrace") is not None

    assert session.sparkContext.parallelize([1, 2], 2).map(has_it).collect() == [False, False]


def test_filters_and_columns_are_the_servers(session: SparkSession, server: ServerProcess) -> None:
    server.sql("CREATE TABLE pairs (k INT8 PRIMARY KEY, v STRING, f FLOAT8)")
    server.sql("INSERT INTO pairs SELECT i, 'v' || i % 3, i / 2 FROM generate_series(1, 100) g(i)")
    found = table_of(session, server, "pairs", columns="v,k").where("k > 90 AND v = 'v1'")
    assert found.columns == ["v", "k", "_op", "_commit_timestamp"]
    assert sorted(row["k"] for row in found.collect()) == [91, 94, 97, 100]
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "Filter " not in plan, plan
    assert table_of(session, server, "pairs").where("f > 49.5").count() == 1
    with pytest.raises(PySparkException, match="unknown option 'tabel'"):
        table_of(session, server, "pairs", tabel="x")
    with pytest.raises(PySparkException, match='missing" does not exist'):
        table_of(session, server, "missing")


def test_stream_whose_driver_and_server_die_has_every_version_once(
    cluster: SparkCluster, server: ServerProcess, folder: Path
) -> None:
    server.sql("CREATE TABLE events (k INT8 PRIMARY KEY, v INT8)")
    start = commit(server, "INSERT INTO events VALUES (0, 0)")
    expected: list[tuple[int, int, int | None, str]] = []

    def write(first: int, count: int) -> int:
        at = 0
        for number in range(first, first + count):
            key = number % 50
            at = commit(server, "UPSERT INTO events VALUES ($1, $2)", key, number)
            expected.append((at, key, number, "upsert"))
            if number % 10 == 9:
                at = commit(server, "DELETE FROM events WHERE k = $1", key)
                expected.append((at, key, None, "delete"))
        return at

    with StreamDriver(cluster, server.url, "events", start, folder / "stream") as driver:
        driver.wait_until(write(0, 100))
        written = write(100, 200)
        driver.kill()  # in the midst of a batch, or before it
        port = server.port
        server.kill()
        server.start(port=port)
        write(300, 100)
        driver.start()
        driver.wait_until(written)
        server.kill()  # under a running stream
        server.start(port=port)
        end = driver.wait_until(write(400, 100))
    found = read_lake(folder / "stream" / "out").to_pylist()
    rows = [(row["_commit_timestamp"], row["k"], row["v"], row["_op"]) for row in found]
    assert sorted(rows) == expected
    assert start < rows[0][0] <= end


def test_checkpoint_of_another_table_is_refused(
    session: SparkSession, server: ServerProcess, folder: Path
) -> None:
    server.sql("CREATE TABLE one (k INT8 PRIMARY KEY); CREATE TABLE two (k INT8 PRIMARY KEY)")
    place = folder / "checkpoints"
    query = stream_of(session, server, "one", place, initial_scan="yes")
    server.sql("INSERT INTO one VALUES (1)")
    wait_for_rows(query, place, 1)
    query.stop()
    told = failure_of(stream_of(session, server, "two", place))
    assert "the checkpoint is of table" in told


def test_altered_table_ends_the_query_and_the_next_goes_on(
    session: SparkSession, server: ServerProcess, folder: Path
) -> None:
    server.sql("CREATE TABLE alt (k INT8 PRIMARY KEY, v STRING)")
    server.sql("INSERT INTO alt VALUES (1, 'a')")
    place = folder / "altered"
    query = stream_of(session, server, "alt", place, initial_scan="yes")
    wait_for_rows(query, place, 1)
    server.sql("INSERT INTO alt VALUES (2, 'b')")
    server.sql("ALTER TABLE alt ADD COLUMN w INT8 NOT NULL DEFAULT 7")
    server.sql("INSERT INTO alt VALUES (3, 'c', 8)")
    assert "was altered at timestamp" in failure_of(query)
    query = stream_of(session, server, "alt", place)
    rows = wait_for_rows(query, place, 3)
    query.stop()
    assert sorted((row["k"], row["v"], row.get("w")) for row in rows) == [
        (1, "a", None),
        (2, "b", None),
        (3, "c", 8),
    ]


def test_dropped_table_ends_the_query_behind_its_last_row(
    session: SparkSession, server: ServerProcess, folder: Path
) -> None:
    server.sql("CREATE TABLE gone (k INT8 PRIMARY KEY)")
    place = folder / "dropped"
    query = stream_of(session, server, "gone", place, initial_scan="yes")
    server.sql("INSERT INTO gone VALUES (1)")
    wait_for_rows(query, place, 1)
    server.sql("INSERT INTO gone VALUES (2)")
    server.sql("DROP TABLE gone")
    assert "'gone' was dropped" in failure_of(query)
    assert sorted(row["k"] for row in read_lake(place / "out").to_pylist()) == [1, 2]
