"""Benthos, from which Redpanda Connect comes, reads a store's changefeed with its own input
`cockroachdb_changefeed`: killed and started again, it goes on at the cursor that it has stored.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.program_process import PATIENCE_SECONDS, ProgramProcess
from tests.harness.server_process import ServerProcess
from tests.system.programs import benthos, go_builds_benthos

pytestmark = pytest.mark.system


class Benthos(ProgramProcess):
    """A pipeline from the table `orders` into a file, a message a line."""

    def __init__(self, folder: Path, pg_port: int) -> None:
        super().__init__(folder / "log")
        self._written = folder / "written.ndjson"
        cursors = folder / "cursors"
        cursors.mkdir(parents=True)
        self._config = folder / "config.yaml"
        self._config.write_text(
            json.dumps(
                {
                    "http": {"enabled": False},
                    "input": {
                        "cockroachdb_changefeed": {
                            "dsn": f"postgres://root@127.0.0.1:{pg_port}/defaultdb?sslmode=disable",
                            "tables": ["orders"],
                            "cursor_cache": "cursors",
                        }
                    },
                    "cache_resources": [{"label": "cursors", "file": {"directory": str(cursors)}}],
                    "output": {"file": {"path": str(self._written), "codec": "lines"}},
                }
            )
        )
        self._cursor = cursors / "crdb_changefeed_cursor"

    def command(self) -> list[str]:
        return [str(benthos()), "-c", str(self._config)]

    def rows(self, count: int) -> list[tuple[list[int], Any]]:
        """Keys and rows of all messages, when there are so many."""
        found: list[dict[str, Any]] = []
        self._until(lambda: len(found) >= count, lambda: found.extend(self._read()[len(found) :]))
        assert {each["table"] for each in found} == {"orders"}
        return [(json.loads(each["primary_key"]), json.loads(each["row"])) for each in found]

    def wait_for_cursor(self, timestamp: str) -> None:
        """Returns when it is stored."""
        self._until(lambda: self._cursor.exists() and self._cursor.read_text() == timestamp)

    def _read(self) -> list[dict[str, Any]]:
        if not self._written.exists():
            return []
        return [json.loads(line) for line in self._written.read_text().split("\n")[:-1]]

    def _until(
        self, reached: Callable[[], bool], look: Callable[[], object] = lambda: None
    ) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not reached():
            assert time.monotonic() < deadline, self.log[-4000:]
            time.sleep(0.05)
            look()


def test_benthos_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    if not go_builds_benthos():
        pytest.skip("it is built by Go 1.22 or newer")
    with ServerProcess(tmp_path / "data") as server:
        server.sql("SET CLUSTER SETTING kv.rangefeed.enabled = true")
        server.sql("CREATE TABLE orders (id INT PRIMARY KEY, name STRING)")
        server.sql("INSERT INTO orders SELECT g, 'scanned' FROM generate_series(1, 200) g")
        with Benthos(tmp_path / "benthos", server.pg_port) as reader:
            rows = reader.rows(200)
            assert sorted(key for key, _ in rows) == [[id] for id in range(1, 201)]
            assert {row["after"]["name"] for _, row in rows} == {"scanned"}
            server.sql("UPDATE orders SET name = 'live' WHERE id = 1")
            key, row = reader.rows(201)[-1]
            assert (key, row["after"]) == ([1], {"id": 1, "name": "live"})
            reader.wait_for_cursor(row["updated"])
            reader.kill()
            server.sql("UPDATE orders SET name = 'missed' WHERE id = 2")
            server.sql("DELETE FROM orders WHERE id = 3")
            reader.start()
            server.sql("INSERT INTO orders VALUES (201, 'new')")
            later = [(key, row["after"]) for key, row in reader.rows(204)[201:]]
    missed, new = {"id": 2, "name": "missed"}, {"id": 201, "name": "new"}
    assert later == [([2], missed), ([3], None), ([201], new)]
