"""A program reads its own writes in a mirror a thousand times, wherever the feed runs."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import ServerProcess
from tests.system.test_joined_nodes import two_nodes, wait_for_claim

pytestmark = pytest.mark.system

TIMES = 1000


def read_own_writes(writer: ServerProcess, holder: ServerProcess, apply: str) -> None:
    """Writes on one node, waits there, and reads the mirror on the node that holds it."""
    sink = f"duckdb:///m.duckdb?apply={apply}"
    job = int(holder.rows(f"CREATE CHANGEFEED FOR TABLE t INTO '{sink}'")[0][0])
    wait_for_claim(holder, job, None)
    with psycopg.connect(
        host="127.0.0.1",
        port=writer.pg_port,
        user="root",
        dbname="defaultdb",
        sslmode="disable",
        autocommit=True,
    ) as client:
        for number in range(TIMES):
            client.execute("UPSERT INTO t VALUES (1, %s)", [str(number)])
            client.execute("SELECT wait_for_changefeed(%s, '30s')", [job])
            assert holder.mirror_rows("m.duckdb", "SELECT v FROM t") == [[str(number)]]


@pytest.mark.parametrize("apply", ["row", "transaction"])
def test_on_the_node_that_runs_the_feed(tmp_path: Path, apply: str) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        read_own_writes(server, server, apply)


def test_with_the_feed_on_a_joined_node(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (first, second):
        read_own_writes(first, second, "transaction")
        assert first.rows("SELECT count(*) FROM system.feed_waits") == [[0]]


def test_from_a_joined_node(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (first, second):
        read_own_writes(second, first, "row")
