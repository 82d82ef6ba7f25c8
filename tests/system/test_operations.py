"""The commands of docs/operations.md, in order, in one shell."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import tailrace
from benchmarks.servers import free_port

pytestmark = pytest.mark.system

DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"
BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_document_do_what_it_says(tmp_path: Path) -> None:
    http, postgres = free_port(), free_port()
    program = f"{sys.executable} -m tailrace.api.cli"
    serve = f"tailrace serve ./data --port {http} --pg-port {postgres}"
    where = f"host=127.0.0.1 port={postgres} user=root dbname=defaultdb"

    def run(block: str) -> str:
        for written, here in (
            ("tailrace serve ./data", serve), ("tailrace ", f"{program} "),
            ("8080", f"{http}"), ("26257", f"{postgres}"),
        ):  # fmt: skip
            block = block.replace(written, here)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (ran.returncode, ran.stderr) == (0, ""), block
        return ran.stdout

    start, monitor, backup, restore, dump, stop, back = BLOCKS.findall(DOCUMENT.read_text())
    try:
        run(start)
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute("CREATE TABLE orders (id INT8 PRIMARY KEY)")
            connection.execute("INSERT INTO orders SELECT generate_series(1, 10)")
            connection.execute("CREATE CHANGEFEED FOR orders INTO 'duckdb:///m.duckdb'")
        told = run(monitor)
        assert '"status":"ok"' in told and "changefeed_max_behind_nanos{" in told
        assert "secret.key, apart" in run(backup)
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute("DELETE FROM orders WHERE id < 8")
        os.kill(int((tmp_path / "server.pid").read_text()), signal.SIGKILL)
        gone = "while kill -0 $(cat server.pid) 2> /dev/null; do sleep 0.1; done\n"
        assert "killed:" in run(f"{gone}tailrace backup --folder data killed; rm -r data")
        assert "\n    10\n" in run(restore)
        run(dump)
        assert "CREATE TABLE public.orders" in (tmp_path / "shop.sql").read_text()
        run(stop)
        run("tailrace restore killed data-killed")
        with tailrace.open(tmp_path / "data-killed") as killed:
            assert [row[0] for row in killed.sql("SELECT id FROM orders ORDER BY id")] == [8, 9, 10]
        assert (tmp_path / "backup" / "mirrors" / "m.duckdb").exists()
        assert "GET /healthz" in (tmp_path / "server.log").read_text()
        assert "\n    10\n" in run(back)
    finally:
        subprocess.run(["sh", "-c", "kill -TERM $(cat server.pid)"], cwd=tmp_path, check=False)
