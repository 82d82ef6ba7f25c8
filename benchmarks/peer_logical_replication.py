"""A mirror beside PostgreSQL 15 with a hand-written pgoutput consumer into DuckDB, in one run.

    python -m benchmarks.peer_logical_replication [--runs 5] [--commits 600] [--rate 100]
                                                  [--rows 200000] [--catchup-rows 500000]

The same writer (psycopg, in this process) drives both sides with transactions as drivers make them:
BEGIN, statement, COMMIT. Runs alternate between the sides, and each metric is the median of its
runs; `…_over_peer` is ours over the peer's.

`commit_call_ms_p50` is what the call of commit takes, `sink_ms_p50` and `…_p99` from that call
until the row can be read in DuckDB, lone rows at `--rate` a second. `bulk_rows_per_s` is of
transactions of 1,000 rows by COPY, from the first until all are in DuckDB, `writer_rows_per_s` of
the writer alone in the same runs, `bulk_rows_per_s_4_writers` of four connections at once.
`catchup_rows_per_s` is a backlog's: rows that were committed while nobody read the feed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import duckdb
import numpy as np
import psycopg

from benchmarks.noted_times import NotedTimes
from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server

INSERT = "INSERT INTO orders VALUES (%s, %s, %s, %s, %s)"
COPY = "COPY orders FROM STDIN"
COLUMNS = "(id INT8 PRIMARY KEY, customer INT8, amount FLOAT8, note {text}, ts TIMESTAMPTZ)"
WRITTEN_AT = "2026-01-01 00:00:00+00"
COPY_ROWS = 1000
WARM_UP_COMMITS = 100
ARRIVAL_SECONDS_MAX = 300.0
"""What has not come by then does not come."""

NOTES_SECONDS = 0.5
"""How long notes are waited for before the mirror itself is asked."""


class Side(Protocol):
    """A database and its mirror."""

    noted: NotedTimes

    def connect(self) -> psycopg.Connection[tuple[object, ...]]: ...
    def stop_feed(self) -> None: ...
    def start_feed(self) -> None: ...
    def mirrored(self) -> int: ...


class Tailrace:
    """`tailrace serve` with a mirror."""

    def __init__(self, url: str, port: int, noted: NotedTimes, workers: str | None) -> None:
        self.noted, self._url, self._port = noted, url, port
        with self.connect() as client:
            client.autocommit = True
            if workers is not None:
                client.execute(f"SET CLUSTER SETTING changefeed.workers = '{workers}'".encode())
            made = COLUMNS.format(text="STRING")
            client.execute(f"CREATE TABLE orders {made} WITH (changefeed_optimized = true)")
            feed = "CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///mirror.duckdb'"
            found = client.execute(feed).fetchone()
            assert found is not None
            self._job = found[0]

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(f"host=127.0.0.1 port={self._port} user=root dbname=defaultdb")

    def stop_feed(self) -> None:
        self._control("PAUSE")
        with self.connect() as client:
            while "paused" not in str(client.execute("SHOW CHANGEFEED JOBS").fetchall()):
                time.sleep(0.05)
                client.rollback()

    def start_feed(self) -> None:
        self._control("RESUME")

    def _control(self, verb: str) -> None:
        with self.connect() as client:
            client.autocommit = True
            client.execute(f"{verb} JOB {self._job}")

    def mirrored(self) -> int:
        asked = {"mirror": "mirror.duckdb", "sql": "SELECT count(*) AS n FROM orders"}
        request = urllib.request.Request(
            f"{self._url}/v1/mirrors/sql", json.dumps(asked).encode(),
            {"content-type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request) as reply:
            (row,) = json.loads(reply.read())["rows"]
        return int(row[0])


class Peer:
    """PostgreSQL, and the consumer's process."""

    def __init__(self, port: int, folder: Path) -> None:
        self.noted = NotedTimes(folder / "peer-noted")
        self._port, self._mirror = port, folder / "peer.duckdb"
        self._process: subprocess.Popen[bytes] | None = None
        with self.connect() as client:
            client.autocommit = True
            client.execute(f"CREATE TABLE orders {COLUMNS.format(text='TEXT')}")
            client.execute("CREATE PUBLICATION p FOR TABLE orders")
            client.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        self.start_feed()

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(f"host=127.0.0.1 port={self._port} user=root dbname=postgres")

    def stop_feed(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def start_feed(self) -> None:
        module = "benchmarks.pgoutput_consumer"
        arguments = [str(self._port), str(self._mirror), str(self.noted.path)]
        self._process = subprocess.Popen([sys.executable, "-m", module, *arguments])

    def mirrored(self) -> int:
        with suppress(duckdb.Error), duckdb.connect(str(self._mirror), read_only=True) as mirror:
            found = mirror.execute("SELECT count(*) FROM orders").fetchone()
            return int(found[0]) if found else 0
        return -1  # the consumer has the file


@contextmanager
def both(folder: Path, workers: str | None) -> Iterator[tuple[Tailrace, Peer]]:
    noted = NotedTimes(folder / "noted")
    program = ("benchmarks.noted_times", str(noted.path))
    logical = ("-c", "wal_level=logical")
    with (
        tailrace_server(folder, program=program) as (url, ours),
        postgres_server(folder, *logical) as theirs,
    ):
        peer = Peer(theirs, folder)
        try:
            yield Tailrace(url, ours, noted, workers), peer
        finally:
            peer.stop_feed()


class Writer:
    """Writes rows with ever greater ids: the same rows on each side."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.next_id = 0

    def warm_up(self, commits: int, rate: float) -> None:
        """What an initial scan brings is not noted, so the mirror itself is asked."""
        self._insert(commits, rate)
        if isinstance(self.side, Peer):
            self.side.noted.wait_for(commits, seconds=ARRIVAL_SECONDS_MAX)
        else:
            self._wait_mirrored()

    def _wait_mirrored(self) -> None:
        deadline = time.monotonic() + ARRIVAL_SECONDS_MAX
        while self.side.mirrored() < self.next_id:
            assert time.monotonic() < deadline, "rows do not arrive"
            time.sleep(0.02)

    def latencies(self, commits: int, rate: float) -> dict[str, float]:
        """Lone rows, paced, in milliseconds. They are written anew if a range is split."""
        noted = self.side.noted
        while True:
            before = noted.count
            called, returned = self._insert(commits, rate)
            self._arrived(before + commits)
            if noted.count == before + commits:
                break
        sunk = noted.latest(commits) - np.array(called)
        return {
            "commit_call_ms_p50": float(np.median(np.array(returned) - called)) / 1e6,
            "sink_ms_p50": float(np.median(sunk)) / 1e6,
            "sink_ms_p99": float(np.percentile(sunk, 99)) / 1e6,
        }

    def _insert(self, commits: int, rate: float) -> tuple[list[int], list[int]]:
        """When each commit was called, and when it returned."""
        called: list[int] = []
        returned: list[int] = []
        with self.side.connect() as client:
            began = time.monotonic()
            for place in range(commits):
                time.sleep(max(0.0, began + place / rate - time.monotonic()))
                row = self._row()
                client.execute(INSERT, row)
                called.append(time.monotonic_ns())
                client.commit()
                returned.append(time.monotonic_ns())
        return called, returned

    def bulk(self, rows: int, writers: int) -> dict[str, float]:
        """Transactions of 1,000 rows by COPY. In rows a second."""
        noted, count = self.side.noted, rows // COPY_ROWS
        before = noted.count
        texts = [self._copy_text(COPY_ROWS) for _ in range(count)]
        clients = [self.side.connect() for _ in range(writers)]
        threads = [
            threading.Thread(target=self._copy, args=(client, texts[place::writers]))
            for place, client in enumerate(clients)
        ]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        written = time.monotonic()
        mirrored = self._arrived(before + count)
        for client in clients:
            client.close()
        if writers > 1:
            return {f"bulk_rows_per_s_{writers}_writers": rows / (mirrored - began)}
        return {
            "bulk_rows_per_s": rows / (mirrored - began),
            "writer_rows_per_s": rows / (written - began),
        }

    def _arrived(self, count: int) -> float:
        """Returns when all rows were in DuckDB, in monotonic seconds: the time of note `count`.

        A transaction that a catch-up scan brings, as when its range is split, is not noted. Then
        the time is that of the mirror's answer, which is later.
        """
        deadline = time.monotonic() + ARRIVAL_SECONDS_MAX
        while not self.side.noted.within(count, seconds=NOTES_SECONDS):
            if self.side.mirrored() >= self.next_id:
                return time.monotonic()
            assert time.monotonic() < deadline, "rows do not arrive"
        return float(self.side.noted.latest(1)[0]) / 1e9

    def catchup(self, rows: int) -> dict[str, float]:
        """From the feed's start until a backlog is in DuckDB. Returns when the feed is live again:
        commits that a catch-up scan brings are not noted."""
        self.side.stop_feed()
        noted = self.side.noted
        count = rows // COPY_ROWS
        with self.side.connect() as client:
            self._copy(client, [self._copy_text(COPY_ROWS) for _ in range(count)])
        before, began = noted.count, time.monotonic()
        self.side.start_feed()
        if isinstance(self.side, Peer):
            noted.wait_for(before + count, seconds=ARRIVAL_SECONDS_MAX)
            ended = noted.latest(1)[0] / 1e9
        else:
            self._wait_mirrored()
            ended = time.monotonic()
            while noted.count == before:
                self._insert(1, rate=1.0)
                self._wait_mirrored()
        return {"catchup_rows_per_s": rows / (ended - began)}

    def _copy(self, client: psycopg.Connection[tuple[object, ...]], texts: list[bytes]) -> None:
        for text in texts:
            with client.cursor() as cursor, cursor.copy(COPY) as copy:
                copy.write(text)
            client.commit()

    def _row(self) -> tuple[object, ...]:
        number, self.next_id = self.next_id, self.next_id + 1
        return number, number % 997, number * 0.5, f"note {number}", WRITTEN_AT

    def _copy_text(self, rows: int) -> bytes:
        lines = ("\t".join(map(str, self._row())) + "\n" for _ in range(rows))
        return "".join(lines).encode()


def measure(folder: Path, sizes: argparse.Namespace) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    with both(folder, sizes.workers) as (tailrace, peer):
        writers = [("", Writer(tailrace)), ("peer_", Writer(peer))]
        for _, writer in writers:
            writer.warm_up(WARM_UP_COMMITS, sizes.rate)
        for run in range(sizes.runs):
            for prefix, writer in writers if run % 2 == 0 else reversed(writers):
                metrics = writer.latencies(sizes.commits, sizes.rate)
                metrics |= writer.bulk(sizes.rows, 1)
                metrics |= writer.bulk(sizes.rows, 4)
                metrics |= writer.catchup(sizes.catchup_rows)
                print(prefix, {name: round(value, 2) for name, value in metrics.items()})
                for name, value in metrics.items():
                    found[prefix + name].append(value)
        peer.stop_feed()
        for _, writer in writers:
            assert writer.side.mirrored() == writer.next_id, "the mirror lacks rows"
        peer.start_feed()
    medians = {name: statistics.median(values) for name, values in found.items()}
    short = {"_ms": "", "_rows_per_s": ""}
    for name in [name for name in medians if not name.startswith("peer_")]:
        shown = name
        for unit, nothing in short.items():
            shown = shown.replace(unit, nothing)
        medians[f"{shown}_over_peer"] = medians[name] / medians[f"peer_{name}"]
    medians["commit_call_over_peer"] = medians.pop("commit_call_p50_over_peer")
    medians["bulk_over_peer_4_writers"] = medians.pop("bulk_4_writers_over_peer")
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--commits", type=int, default=600)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--catchup-rows", type=int, default=500_000)
    parser.add_argument("--workers", choices=["on", "off"], help="the setting changefeed.workers")
    sizes = parser.parse_args()
    if not postgres_installed():
        parser.exit(1, "the peer is PostgreSQL 15, which is not installed\n")
    with tempfile.TemporaryDirectory(prefix="tailrace-peer-") as name:
        print_outcome("peer_logical_replication", measure(Path(name), sizes))


if __name__ == "__main__":
    main()
