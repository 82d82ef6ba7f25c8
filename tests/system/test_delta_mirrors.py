"""Mirrors in Delta tables, fed by a real server that is killed, and read by DuckDB and by Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx2
import pytest

from tests.harness import delta_reader
from tests.harness.server_process import ServerProcess
from tests.system.lake_readers import Rows, by_duckdb, by_spark

pytestmark = pytest.mark.system

KEYS = 40
LIVES = 3
SHOWN = ["id", "name", "CAST(price AS STRING)"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data") as process:
        yield process


def write(url: str, seed: int, stop: threading.Event) -> None:
    random = Random(seed)
    with httpx2.Client(base_url=url, timeout=30.0) as client:
        while not stop.is_set():
            table, id = random.choice(["items", "others"]), random.randrange(KEYS)
            texts = [
                f"UPSERT INTO {table} (id, name, price) VALUES ({id}, 'n{random.random()}', 1)",
                f"DELETE FROM {table} WHERE id = {id}",
                f"UPDATE {table} SET price = price + 1 WHERE id < {id}",
            ]
            try:
                client.post("/v1/sql", json={"sql": random.choice(texts)})
            except httpx2.TransportError:
                return


def commits(table: Path) -> int:
    return len([*(table / "_delta_log").glob("*.json")])


def source(server: ServerProcess, table: str) -> Rows:
    found = server.rows(f"SELECT id, name, price::STRING FROM {table} ORDER BY id")
    return [list(row) for row in found]


def test_mirrors_equal_their_tables_whenever_the_server_is_killed(
    server: ServerProcess, tmp_path: Path
) -> None:
    random = Random(20)
    lake = tmp_path / "data" / "mirrors" / "lake"
    for table in ("items", "others"):
        server.sql(f"CREATE TABLE {table} (id INT8 PRIMARY KEY, name STRING, price DECIMAL(10, 2))")
        server.sql(f"INSERT INTO {table} SELECT i, 'first', i FROM generate_series(1, 40) AS g (i)")
    server.sql(
        "CREATE CHANGEFEED FOR TABLE items, others INTO 'delta:///lake/?mode=mirror' "
        "WITH min_checkpoint_frequency = '50ms'"
    )
    for life in range(LIVES):
        stop = threading.Event()
        writer = threading.Thread(target=write, args=(server.url, life, stop))
        writer.start()
        wanted = commits(lake / "items") + random.randrange(3, 9)
        while commits(lake / "items") < wanted:
            time.sleep(0.01)
        time.sleep(random.random() * 0.05)
        server.kill()
        stop.set()
        writer.join()
        server.start()
    server.wait_for_feeds(str(server.rows("SELECT cluster_logical_timestamp()")[0][0]))
    expected = {table: source(server, table) for table in ("items", "others")}
    server.kill()
    for table, rows in expected.items():
        states = [*delta_reader.states(lake / table)]
        assert sorted(resolved for resolved, _ in states) == [resolved for resolved, _ in states]
        last = sorted(states[-1][1], key=lambda row: row["id"])
        assert [[row["id"], row["name"], str(row["price"])] for row in last] == rows
        assert by_duckdb(["delta"], f"delta_scan('{lake / table}')", SHOWN) == rows
    assert by_spark(lake / "items", SHOWN) == expected["items"]
