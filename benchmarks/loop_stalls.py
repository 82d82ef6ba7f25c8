"""The longest step of a server's loop, while clients ask for everything that is heavy.

    python -m benchmarks.loop_stalls [--rows 200000] [--seconds 30]

A server is asked at once, by a client each, for aggregates, joins and whole tables (SELECT), for
COPY of 100,000 rows at a time, for schema changes (tables, columns, indexes), for exports,
for UPDATE, INSERT … SELECT and DELETE of thousands of rows, and for the longest statement of each
shape that `benchmarks.statements` knows. `worst_step_cpu_ms` is the longest step by the CPU time of
the loop's thread, as the server's own metric has it, `long_steps` how many took more than 10 ms;
the statements of the longest are printed, as the server's log has them. `select_ms_p99` and
`select_ms_max` are what one more client waits on the wall for a row by its key.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchmarks.outcome import print_outcome
from benchmarks.servers import tailrace_server
from benchmarks.statement_shapes import SHAPES, TABLE, sizes

COPY_ROWS = 100_000
DML_ROWS = 8_000
SHOWN = 8
LONG = [name for name in SHAPES if name != "casts"]
"""Shapes of the long statements. Of casts of text to INT8 within one another, DuckDB's time to bind
them, which is not the loop's, grows threefold with each."""

_STEP = re.compile(r"a step of the event loop took (\d+) ms of CPU time, (.*)")


def connect(port: int) -> psycopg.Connection:
    return psycopg.connect(
        host="127.0.0.1", port=port, user="root", dbname="defaultdb", autocommit=True
    )


def copy(connection: psycopg.Connection, table: str, first: int, count: int) -> None:
    lines = [f"{k}\t{k % 1000}\tnote {k}" for k in range(first, first + count)]
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as into:
        into.write("\n".join(lines) + "\n")


class Load:
    """What the clients do until `stopped`. Whatever raises ends the benchmark."""

    def __init__(self, url: str, port: int, rows: int) -> None:
        self.stopped = threading.Event()
        self.failed: BaseException | None = None
        self.waited_ms: list[float] = []
        self._url, self._port, self._rows = url, port, rows

    def run(self, seconds: float) -> dict[str, int]:
        """How often each kind of work was done."""
        kinds: list[Callable[[psycopg.Connection, int], None]] = [
            self.selects, self.copies, self.schema_changes, self.exports, self.changes,
            self.long_statements, self.one_row,
        ]  # fmt: skip
        done = {kind.__name__: 0 for kind in kinds}
        threads = [threading.Thread(target=self._repeat, args=(kind, done)) for kind in kinds]
        for thread in threads:
            thread.start()
        self.stopped.wait(seconds)
        self.stopped.set()
        for thread in threads:
            thread.join()
        if self.failed is not None:
            raise self.failed
        return done

    def _repeat(
        self, work: Callable[[psycopg.Connection, int], None], done: dict[str, int]
    ) -> None:
        try:
            with connect(self._port) as connection:
                while not self.stopped.is_set():
                    work(connection, done[work.__name__])
                    done[work.__name__] += 1
        except BaseException as error:
            self.failed = error
            self.stopped.set()

    def selects(self, connection: psycopg.Connection, number: int) -> None:
        text = [
            "SELECT n % 100, count(*), sum(n), max(note) FROM big GROUP BY 1 ORDER BY 1",
            "SELECT x.n, count(*) FROM big x JOIN big y ON x.n = y.id GROUP BY 1 ORDER BY 2, 1",
            "SELECT * FROM big",
            "SELECT id, rank() OVER (PARTITION BY n ORDER BY note) FROM big",
        ][number % 4]
        connection.execute(text.encode()).fetchall()

    def copies(self, connection: psycopg.Connection, number: int) -> None:
        connection.execute(b"DROP TABLE IF EXISTS copied")
        connection.execute(b"CREATE TABLE copied (id INT8 PRIMARY KEY, n INT8, note TEXT)")
        copy(connection, "copied", 0, COPY_ROWS)

    def schema_changes(self, connection: psycopg.Connection, number: int) -> None:
        name = f"changed_{number}"
        connection.execute(f"CREATE TABLE {name} (id INT8 PRIMARY KEY, n INT8, note TEXT)".encode())
        copy(connection, name, 0, 20_000)
        for change in (
            f"ALTER TABLE {name} ADD COLUMN u UUID DEFAULT gen_random_uuid()",
            f"CREATE INDEX ON {name} (n, note)",
            f"ALTER TABLE {name} DROP COLUMN note",
            f"TRUNCATE {name}",
            f"DROP TABLE {name}",
        ):
            connection.execute(change.encode())

    def exports(self, connection: psycopg.Connection, number: int) -> None:
        with urllib.request.urlopen(f"{self._url}/v1/tables/big/export") as answer:
            while answer.read(1 << 20):
                pass

    def changes(self, connection: psycopg.Connection, number: int) -> None:
        last = self._rows + DML_ROWS
        for text in (
            f"INSERT INTO big SELECT g, g, 'new' FROM generate_series({self._rows}, {last}) s (g)",
            f"UPDATE big SET note = note || 'x' WHERE id >= {self._rows}",
            f"UPDATE big SET n = n + 1 WHERE id < {DML_ROWS}",
            f"DELETE FROM big WHERE id >= {self._rows}",
        ):
            connection.execute(text.encode())

    def long_statements(self, connection: psycopg.Connection, number: int) -> None:
        name = LONG[number % len(LONG)]
        text = f"/* {number} */ {SHAPES[name](sizes(name)[-1])}"
        connection.execute(f"PREPARE long_{number} AS {text}".encode())
        connection.execute(f"DEALLOCATE long_{number}".encode())

    def one_row(self, connection: psycopg.Connection, number: int) -> None:
        began = time.perf_counter()
        connection.execute("SELECT note FROM big WHERE id = %s", (number % 1000,)).fetchall()
        self.waited_ms.append((time.perf_counter() - began) * 1000)
        self.stopped.wait(0.005)


def gauge(url: str, name: str) -> float:
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    raise AssertionError(name)


def measure(folder: Path, rows: int, seconds: float) -> dict[str, float]:
    log = folder / "log"
    options = ("--log-level", "info", "--log-file", str(log))
    with tailrace_server(folder, options=options) as (url, port):
        with connect(port) as connection:
            connection.execute(TABLE.encode())
            connection.execute(b"CREATE TABLE big (id INT8 PRIMARY KEY, n INT8, note TEXT)")
            for first in range(0, rows, COPY_ROWS):
                copy(connection, "big", first, min(COPY_ROWS, rows - first))
        load = Load(url, port, rows)
        done = load.run(seconds)
        worst_ns = gauge(url, "tailrace_event_loop_longest_step_nanos")
        count = gauge(url, "tailrace_event_loop_long_steps_total")
    steps = sorted(
        ((int(found[1]), found[2]) for found in _STEP.finditer(log.read_text())), reverse=True
    )
    for took, what in steps[:SHOWN]:
        print(f"{took:6} ms of CPU time: {what[:300]}")
    print(", ".join(f"{name} {times}" for name, times in done.items()), flush=True)
    waited = sorted(load.waited_ms)
    return {
        "worst_step_cpu_ms": worst_ns / 1e6,
        "long_steps": count,
        "select_ms_p99": waited[int(len(waited) * 0.99)],
        "select_ms_max": waited[-1],
    } | {f"{name}_done": float(times) for name, times in done.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="of the table that is read")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the mixed load")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-loop-stalls-") as name:
        metrics = measure(Path(name), arguments.rows, arguments.seconds)
    print_outcome("loop_stalls", metrics)


if __name__ == "__main__":
    main()
