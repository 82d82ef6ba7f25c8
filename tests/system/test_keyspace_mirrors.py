"""One keyspace followed at once into DuckDB, into a Parquet lake by Spark, and into files.

Each holds what the keyspace held where the feed was resolved, without what had ended by then.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tailrace.api.demo.lake import read_lake
from tailrace.kvlayer.clock import Timestamp, format_timestamp, parse_timestamp
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

PATIENCE_SECONDS = 120.0
SINKS = {
    "duckdb": "duckdb:///mirror.duckdb?apply=transaction",
    "lake": "spark+parquet:///lake?master=local[1]",
    "files": "file:///changes",
}
Change = tuple[int, bytes, bytes | None, int | None]
"""When a key was written, its value (None: it was deleted), and when that ends."""


def write(server: ServerProcess, random: Random, count: int) -> None:
    for number in range(count):
        url = f"{server.url}/v1/keyspaces/ks/keys/k{random.randrange(60):02}"
        if random.random() < 0.2:
            server.client.delete(url).raise_for_status()
            continue
        ttl = random.choice(({}, {"ttl": "1s"}, {"ttl": "1h"}))
        server.client.put(url, content=b"%d" % number, params=ttl).raise_for_status()


def resolved(server: ServerProcess, job: int) -> int:
    (row,) = server.rows(
        f"SELECT high_water_timestamp FROM [SHOW CHANGEFEED JOBS] WHERE job_id = {job}"
    )
    return 0 if row[0] is None else parse_timestamp(str(row[0]))


def wait_resolved(server: ServerProcess, jobs: Iterable[int], until: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(resolved(server, job) < until for job in jobs):
        assert time.monotonic() < deadline, server.rows("SHOW CHANGEFEED JOBS")
        time.sleep(0.1)


def stored(server: ServerProcess, at: int) -> dict[bytes, bytes]:
    """What the keyspace held."""
    asked = {"at": format_timestamp(Timestamp(at))}
    page = server.client.get(f"{server.url}/v1/keyspaces/ks/keys", params=asked).json()
    assert page.get("next") is None
    return {b64decode(pair["key"]): b64decode(pair["value"]) for pair in page["pairs"]}


def mirrored(server: ServerProcess) -> dict[bytes, bytes]:
    query = {"mirror": "mirror.duckdb", "sql": "SELECT hex(key) AS k, hex(value) AS v FROM ks"}
    rows = server.client.post(f"{server.url}/v1/mirrors/sql", json=query).json()["rows"]
    return {bytes.fromhex(key): bytes.fromhex(value) for key, value in rows}


def state(changes: Iterable[Change], at: int) -> dict[bytes, bytes]:
    """What a reader of the changes takes for the keyspace as of `at`."""
    newest: dict[bytes, Change] = {}
    for change in sorted(changes, key=lambda change: change[0]):
        newest[change[1]] = change
    return {
        key: value
        for _, key, value, ends in newest.values()
        if value is not None and (ends is None or ends > at)
    }


def in_lake(folder: Path) -> list[Change]:
    return [
        (row["_commit_timestamp"], row["key"], row["value"], row["expires_at"])
        for row in read_lake(folder).to_pylist()
    ]


def in_files(folder: Path) -> list[Change]:
    found: list[Change] = []
    for path in folder.rglob("*.ndjson"):
        for line in path.read_text().splitlines():
            message: dict[str, Any] = json.loads(line)
            if "key" not in message:
                continue
            (key,), after = message["key"], message["after"]
            value = None if after is None else bytes.fromhex(after["value"][2:])
            ends = None if after is None else after["expires_at"]
            at = parse_timestamp(message["mvcc_timestamp"])
            found.append((at, bytes.fromhex(key[2:]), value, ends))
    return found


def test_mirrors_of_every_kind_equal_their_keyspace(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        random, jobs = Random(5), {}
        server.sql("CREATE KEYSPACE ks")
        write(server, random, 100)
        for name, uri in SINKS.items():
            options = "key_in_value, mvcc_timestamp" if name == "files" else ""
            options = "WITH min_checkpoint_frequency = '100ms'" + (options and f", {options}")
            ((jobs[name],),) = server.rows(
                f"CREATE CHANGEFEED FOR KEYSPACE ks INTO '{uri}' {options}"
            )
        write(server, random, 200)
        time.sleep(1.1)  # what is brief ends
        last = server.client.put(f"{server.url}/v1/keyspaces/ks/keys/last", content=b"x").json()
        wait_resolved(server, jobs.values(), parse_timestamp(last["timestamp"]))
        mirrors, shown = tmp_path / "data" / "mirrors", mirrored(server)
        assert shown == stored(server, resolved(server, jobs["duckdb"]))
        for name, read, folder in (("lake", in_lake, "lake"), ("files", in_files, "changes")):
            at = resolved(server, jobs[name])
            changes = [change for change in read(mirrors / folder) if change[0] <= at]
            assert state(changes, at) == stored(server, at) == shown
