"""Logs in Iceberg tables, fed by a real server that is killed, and read by DuckDB."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tailrace.kvlayer.clock import parse_timestamp
from tests.harness.server_process import ServerProcess
from tests.system.lake_readers import by_duckdb

pytestmark = pytest.mark.system

LIVES = 2


def test_every_change_is_there_once_whenever_the_server_is_killed(tmp_path: Path) -> None:
    random = Random(5)
    written: list[list[object]] = []
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE items (k INT8 PRIMARY KEY, v STRING)")
        server.sql(
            "CREATE CHANGEFEED FOR TABLE items INTO 'iceberg:///lake' "
            "WITH min_checkpoint_frequency = '20ms'"
        )
        for life in range(LIVES):
            for number in range(random.randrange(20, 60)):
                key, value = random.randrange(9), f"{life}-{number}"
                said = server.sql("UPSERT INTO items VALUES ($1, $2)", key, value)
                written.append([parse_timestamp(said[0]["commit_timestamp"]), key, value])
            server.kill()
            server.start()
        server.wait_for_feeds(str(server.rows("SELECT cluster_logical_timestamp()")[0][0]))
    metadata = tmp_path / "data" / "mirrors" / "lake" / "default" / "items" / "metadata"
    newest = max(metadata.glob("*.metadata.json"))
    shown = ["_commit_timestamp", "k", "v"]
    assert by_duckdb(["avro", "iceberg"], f"iceberg_scan('{newest}')", shown) == sorted(written)
