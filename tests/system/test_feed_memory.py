"""A changefeed of large rows holds what its limit allows, whatever it has to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.kvlayer.engine.rocksdb import BLOCK_CACHE_BYTES
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ROWS = 400
ROW_BYTES = 1_000_000
LIMIT_BYTES = 8 * 1024 * 1024
GROWTH_MAX = 56 * 1024 * 1024 + BLOCK_CACHE_BYTES
"""The limit, what one read brings, and what is decoded of both; and the engine's cache, which fills
with the rows that are read, of 400 MB."""


@pytest.mark.parametrize("catching_up", [False, True], ids=["scan", "catch-up"])
def test_rows_of_a_megabyte_pass_in_little_memory(tmp_path: Path, catching_up: bool) -> None:
    """Into a sink that keeps nothing: what DuckDB holds of a mirror is its own."""
    with ServerProcess(tmp_path / "data") as server:
        server.sql(f"SET CLUSTER SETTING changefeed.memory.per_changefeed_limit = {LIMIT_BYTES}")
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        at = server.sql("INSERT INTO t VALUES (-1, 'first')")[0]["commit_timestamp"]
        create = "CREATE CHANGEFEED FOR t INTO 'null://'"
        job = None
        if catching_up:
            job = server.rows(create)[0][0]
            server.wait_for_feeds(at)
            server.sql(f"PAUSE JOB {job}")
        for k in range(ROWS):
            inserted = server.sql("INSERT INTO t VALUES ($1, $2)", k, f"{k:06}" + "x" * ROW_BYTES)
            at = inserted[0]["commit_timestamp"]
        server.terminate()
        server.start()
        before = server.resident_bytes
        server.forget_peak()
        server.sql(create if job is None else f"RESUME JOB {job}")
        server.wait_for_feeds(at)
        assert server.resident_bytes_peak - before < GROWTH_MAX
