"""The wait of a lone INSERT while another client's heavy query runs.

    python -m benchmarks.heavy_queries [--seconds 4] [--rounds 3]

One client inserts a row a millisecond, by itself and then beside a second client that repeats one
query over 300,000 rows: an aggregate of DuckDB's own functions; a document's test, which runs in
Python, in the query worker and (`_here`) in the server. `external` is the aggregate in a DuckDB of
its own process: what the load of two cores alone costs.
`…_ms` are medians of the rounds' medians, `…_p99_ms` of their 99th percentiles, `…_over_alone`
the former over an INSERT that has the machine to itself, `…_per_s` the queries of the second
client.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median

import duckdb
import psycopg

from benchmarks.loop_stalls import connect, copy
from benchmarks.outcome import print_outcome
from benchmarks.servers import tailrace_server

ROWS = 300_000
STEP_ROWS = 100_000
DOCUMENTS = 50_000
AGGREGATE = "SELECT n % 100, count(*), avg(n), max(note) FROM big GROUP BY 1 ORDER BY 1"
QUERIES = {
    "aggregate": AGGREGATE,
    "document": """SELECT count(*) FROM docs WHERE d @> '{"a": 5}'""",
}
LOADS = ("alone", "external", *QUERIES, "document_here")
STARTED_SECONDS = 1.0


def run_queries(load: str, port: int, stop: Event, done: Synchronized[int]) -> None:
    """The second client."""
    if load == "external":
        database = duckdb.connect()
        database.execute(
            "CREATE TABLE big AS SELECT range AS id, range % 1000 AS n, 'note ' || range AS note "
            f"FROM range({ROWS})"
        )
        while not stop.is_set():
            database.execute(AGGREGATE).fetchall()
            done.value += 1
        return
    with connect(port) as connection:
        while not stop.is_set():
            connection.execute(QUERIES[load.removesuffix("_here")].encode()).fetchall()
            done.value += 1


def insert_beside(
    load: str, port: int, connection: psycopg.Connection, first: int, seconds: float
) -> tuple[list[float], float]:
    """The milliseconds that each INSERT took, and the queries per second beside them."""
    stop, done = multiprocessing.Event(), multiprocessing.Value("q", 0)
    client = multiprocessing.Process(target=run_queries, args=(load, port, stop, done))
    if load != "alone":
        client.start()
        time.sleep(STARTED_SECONDS)
    before, waited = done.value, list[float]()
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        connection.execute("INSERT INTO small VALUES (%s, 0)", (first + len(waited),))
        waited.append((time.perf_counter() - began) * 1000)
        time.sleep(0.001)
    rate = (done.value - before) / seconds
    if load != "alone":
        stop.set()
        client.join()
    return sorted(waited), rate


def measure(folder: Path, seconds: float, rounds: int) -> dict[str, float]:
    p50: dict[str, list[float]] = {load: [] for load in LOADS}
    p99: dict[str, list[float]] = {load: [] for load in LOADS}
    rates: dict[str, list[float]] = {load: [] for load in LOADS}
    first = 0
    with tailrace_server(folder) as (_, port), connect(port) as connection:
        connection.execute(b"CREATE TABLE small (id INT8 PRIMARY KEY, n INT8)")
        connection.execute(b"CREATE TABLE big (id INT8 PRIMARY KEY, n INT8, note TEXT)")
        for row in range(0, ROWS, STEP_ROWS):
            copy(connection, "big", row, STEP_ROWS)
        connection.execute(b"CREATE TABLE docs (id INT8 PRIMARY KEY, d JSONB)")
        documents = [f'{row}\t{{"a": {row % 10}, "b": "x {row}"}}' for row in range(DOCUMENTS)]
        with connection.cursor().copy("COPY docs FROM STDIN") as into:
            into.write("\n".join(documents) + "\n")
        for query in QUERIES.values():
            connection.execute(query.encode()).fetchall()
        for _ in range(rounds):
            for load in LOADS:
                workers = "off" if load.endswith("_here") else "on"
                connection.execute(
                    f"SET CLUSTER SETTING sql.analytics.workers = '{workers}'".encode()
                )
                waited, rate = insert_beside(load, port, connection, first, seconds)
                first += len(waited)
                p50[load].append(waited[len(waited) // 2])
                p99[load].append(waited[int(len(waited) * 0.99)])
                rates[load].append(rate)
    alone = median(p50["alone"])
    metrics: dict[str, float] = {}
    for load in LOADS:
        metrics[f"{load}_ms"] = median(p50[load])
        metrics[f"{load}_p99_ms"] = median(p99[load])
        if load != "alone":
            metrics[f"{load}_over_alone"] = median(p50[load]) / alone
            metrics[f"{load}_per_s"] = median(rates[load])
    return metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load in a round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-heavy-queries-") as name:
        metrics = measure(Path(name), arguments.seconds, arguments.rounds)
    print_outcome("heavy_queries", metrics)


if __name__ == "__main__":
    main()
