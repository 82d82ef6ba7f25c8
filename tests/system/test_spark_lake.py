"""Feeds into a lake: the server's Spark application, killed, cancelled, and met by DDL.

The commands are those of docs/spark.md.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.api.demo.lake import read_lake
from tailrace.kvlayer.clock import parse_timestamp
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

PATIENCE_SECONDS = 300.0
Change = tuple[int, int, str | None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lakes")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    with ServerProcess(folder / "data") as running:
        yield running


class Lake:
    """A table `NAME (k, v)`, its feed into a lake, and every change that the lake must hold."""

    def __init__(self, server: ServerProcess, folder: Path, name: str) -> None:
        self.server = server
        self.name = name
        self.path = folder / "data" / "mirrors" / name
        self.changes: list[Change] = []
        server.sql(f"CREATE TABLE {name} (k INT8 PRIMARY KEY, v STRING)")
        self.put(1, "first")
        self.job = server.rows(
            f"CREATE CHANGEFEED FOR {name} INTO 'spark+parquet:///{name}?master=local[1]'"
            " WITH min_checkpoint_frequency = '100ms'"
        )[0][0]

    def put(self, key: int, value: str | None) -> None:
        text = f"UPSERT INTO {self.name} VALUES ($1, $2)"
        parameters: tuple[object, ...] = (key, value)
        if value is None:
            text, parameters = f"DELETE FROM {self.name} WHERE k = $1", (key,)
        at = parse_timestamp(self.server.sql(text, *parameters)[0]["commit_timestamp"])
        self.changes.append((at, key, value))

    def put_many(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.put(number % 20 + 2, f"v{number}")
            if number % 7 == 0:
                self.put(number % 20 + 2, None)

    def held(self) -> list[Change]:
        """The lake's changes but for the initial scan's, whose timestamp is the scan's own."""
        rows = read_lake(self.path).to_pylist()
        assert all((row["_op"] == "delete") is (row["v"] is None) for row in rows)
        return sorted((row["_commit_timestamp"], row["k"], row["v"]) for row in rows)

    def status(self) -> dict[str, Any]:
        result = self.server.sql("SHOW CHANGEFEED JOBS")[0]
        names = [column["name"] for column in result["columns"]]
        jobs = [dict(zip(names, row, strict=True)) for row in result["rows"]]
        [found] = [job for job in jobs if job["job_id"] == self.job]
        return found

    def wait(self) -> None:
        """Until everything that was written is in the lake, as the job's status has it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            status = self.status()
            resolved = status["high_water_timestamp"]
            if resolved is not None and parse_timestamp(resolved) >= self.changes[-1][0]:
                return
            assert time.monotonic() < deadline, status
            time.sleep(0.1)

    def wait_for_status(self, what: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (status := self.status())["status"] != what:
            assert time.monotonic() < deadline, status
            time.sleep(0.1)
        return status

    def processes(self) -> list[int]:
        """The application's, its Python and its JVM."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended, or is no process
            if f"--path={self.path}\0".encode() in command + b"\0":
                found.append(int(entry.name))
        return found

    def check(self) -> None:
        """Every change once: the scan's rows stand for what was there when it began."""
        held, expected = self.held(), sorted(self.changes)
        scanned = held[0][0]
        assert [change for change in held if change[0] > scanned] == [
            change for change in expected if change[0] > scanned
        ]
        state = {key: value for at, key, value in expected if at <= scanned}
        assert {key: value for at, key, value in held if at == scanned} == {
            key: value for key, value in state.items() if value is not None
        }
        assert len(held) == len(set(held))


def test_lake_holds_every_change_once_whatever_is_killed(
    server: ServerProcess, folder: Path
) -> None:
    lake = Lake(server, folder, "survivor")
    lake.wait()
    lake.put_many(0, 30)
    first = lake.processes()
    assert first
    for process in first:
        os.kill(process, signal.SIGKILL)
    lake.put_many(30, 30)
    lake.wait()
    assert not set(lake.processes()) & set(first)
    port = server.port
    lake.put_many(60, 20)
    server.kill()
    server.start(port=port)
    lake.put_many(80, 20)
    lake.wait()
    lake.check()

    server.sql(f"CANCEL JOB {lake.job}")
    assert lake.wait_for_status("canceled")["status"] == "canceled"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while lake.processes():
        assert time.monotonic() < deadline, lake.processes()
        time.sleep(0.1)
    held = lake.held()
    server.sql("UPSERT INTO survivor VALUES (99, 'later')")
    assert lake.held() == held


def test_lake_goes_on_behind_an_altered_table_and_ends_with_it(
    server: ServerProcess, folder: Path
) -> None:
    lake = Lake(server, folder, "altered")
    lake.wait()
    server.sql("ALTER TABLE altered ADD COLUMN w INT8 NOT NULL DEFAULT 7")
    at = parse_timestamp(
        server.sql("INSERT INTO altered VALUES (50, 'new', 8)")[0]["commit_timestamp"]
    )
    lake.changes.append((at, 50, "new"))
    lake.wait()
    lake.check()
    [row] = [row for row in read_lake(lake.path).to_pylist() if row["k"] == 50]
    assert row["w"] == 8
    server.sql(f"PAUSE JOB {lake.job}")
    lake.wait_for_status("paused")
    lake.put_many(60, 3)  # while no application runs, and the next one finds no table
    server.sql("DROP TABLE altered")
    server.sql(f"RESUME JOB {lake.job}")
    status = lake.wait_for_status("failed")
    assert "was dropped" in str(status), status
    lake.check()
