"""A server in a control group with less memory than its caches would take on a large machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import COMMAND, ServerProcess

pytestmark = pytest.mark.system

GROUPS = Path("/sys/fs/cgroup/memory")
"""Control groups of version 1: those of version 2 want the whole tree to be set up for it."""

MEMORY_BYTES = 384 << 20
ROWS = 300_000
ROWS_AT_ONCE = 1000


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of its own, with little memory."""
    path = GROUPS / f"tailrace-test-{os.getpid()}"
    try:
        path.mkdir()
        (path / "memory.limit_in_bytes").write_text(str(MEMORY_BYTES))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield path
    path.rmdir()


def test_a_bulk_load_with_a_mirror_in_little_memory(tmp_path: Path, group: Path) -> None:
    into = ("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *COMMAND)
    with ServerProcess(tmp_path / "data", command=into) as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY, n INT8, v STRING)")
        server.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
        with (
            psycopg.connect(
                host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb"
            ) as client,
            client.cursor() as cursor,
            cursor.copy("COPY t FROM STDIN") as copy,
        ):
            for first in range(0, ROWS, ROWS_AT_ONCE):
                rows = range(first, first + ROWS_AT_ONCE)
                copy.write("".join(f"{k}\t{k % 1000}\t{k:075}\n" for k in rows))
        at = server.sql("INSERT INTO t VALUES (-1, 0, 'last')")[0]["commit_timestamp"]
        server.wait_for_feeds(at)
        assert server.rows("SELECT count(*), max(v) FROM t") == [[ROWS + 1, "last"]]
        assert "oom_kill 0" in (group / "memory.oom_control").read_text()
