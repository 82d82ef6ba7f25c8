"""What drivers do, through the Postgres door, beside PostgreSQL 15.

    python -m benchmarks.door [--seconds 2] [--rows 100000] [--clients 1 8 32] [--runs 3]

Psycopg's prepared statements on a table of five columns, in transactions (BEGIN, statement, COMMIT:
`…_txn`) and in autocommit: `insert`, `update` and `select` a second, one row each; `copy_100_txn`,
`copy_1000_txn` and one COPY of `--rows` (`copy_all_txn`) in rows a second; `executemany` of 100
rows a transaction and `pipeline` of 100 INSERTs, in rows a second. A number of clients above 1 is
in the name: `select_8`. Clients are threads of one process, so beyond some rate it is their
interpreter that is measured, on both sides. The sides take turns at each metric, so that what else
the machine does is in both; metrics are medians, and `…_over_postgres` is the median of each turn's
ratio of ours to PostgreSQL's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import psycopg

from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server

Client = psycopg.Connection[tuple[object, ...]]

TABLE = (
    "CREATE TABLE orders (id INT8 PRIMARY KEY, customer INT8, amount FLOAT8, note VARCHAR(40), "
    "ts TIMESTAMPTZ)"
)
INSERT = "INSERT INTO orders VALUES (%s, %s, %s, %s, %s)"
UPDATE = "UPDATE orders SET amount = amount + 1 WHERE id = %s"
SELECT = "SELECT id, customer, amount, note, ts FROM orders WHERE id = %s"
COPY = "COPY orders FROM STDIN"
WRITTEN_AT = "2026-01-01 00:00:00+00"
POINTS = 10_000
"""Rows that are there to be read and updated."""

BATCH = 100


class Server:
    """One side: connections, and rows that nobody wrote yet."""

    def __init__(self, port: int, database: str) -> None:
        self._where = f"host=127.0.0.1 port={port} user=root dbname={database}"
        self._ids = count()
        with self.connect(autocommit=True) as client:
            client.execute(TABLE)
            self.copy(client, POINTS)

    def connect(self, *, autocommit: bool) -> Client:
        return psycopg.connect(self._where, autocommit=autocommit, prepare_threshold=0)

    def row(self) -> tuple[object, ...]:
        number = next(self._ids)
        return number, number % 997, number * 0.5, f"note {number}", WRITTEN_AT

    def point(self) -> tuple[int]:
        return ((next(self._ids) * 7919) % POINTS,)

    def copy(self, client: Client, rows: int) -> None:
        text = "".join("\t".join(map(str, self.row())) + "\n" for _ in range(rows)).encode()
        with client.cursor() as cursor, cursor.copy(COPY) as copy:
            copy.write(text)

    def insert(self, client: Client) -> None:
        client.execute(INSERT, self.row())

    def update(self, client: Client) -> None:
        client.execute(UPDATE, self.point())

    def select(self, client: Client) -> None:
        client.execute(SELECT, self.point()).fetchall()

    def executemany(self, client: Client) -> None:
        with client.cursor() as cursor:
            cursor.executemany(INSERT, [self.row() for _ in range(BATCH)])

    def pipeline(self, client: Client) -> None:
        with client.pipeline():
            for _ in range(BATCH):
                client.execute(INSERT, self.row())


def rate(
    server: Server,
    work: Callable[[Client], None],
    *,
    clients: int,
    seconds: float,
    transactions: bool,
) -> float:
    """How often a second `work` is done, by so many clients together."""
    done = [0] * clients
    opened = [server.connect(autocommit=not transactions) for _ in range(clients)]
    until = 0.0
    start = threading.Barrier(clients + 1)

    def run(place: int, client: Client) -> None:
        work(client)  # prepares
        client.commit()
        start.wait()
        while time.perf_counter() < until:
            try:
                work(client)
                client.commit()
            except psycopg.errors.SerializationFailure:
                client.rollback()
            else:
                done[place] += 1

    threads = [threading.Thread(target=run, args=each) for each in enumerate(opened)]
    for thread in threads:
        thread.start()
    until = time.perf_counter() + seconds
    began = time.perf_counter()
    start.wait()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    for client in opened:
        client.close()
    return sum(done) / took


Case = Callable[[Server], float]


def cases_of(sizes: argparse.Namespace) -> dict[str, Case]:
    """The measurements of a server, by their metrics' names."""
    seconds: float = sizes.seconds
    cases: dict[str, Case] = {}
    for clients in sizes.clients:
        suffix = "" if clients == 1 else f"_{clients}"
        for name in ("insert", "update", "select"):
            for transactions in (True, False):
                shown = f"{name}_txn{suffix}" if transactions else f"{name}{suffix}"
                cases[shown] = partial(
                    rate_of, name, clients=clients, seconds=seconds, transactions=transactions
                )
    for name in ("executemany", "pipeline"):
        cases[f"{name}_txn"] = partial(rate_of, name, rows=BATCH, seconds=seconds)
    for rows in (100, 1000, sizes.rows):
        shown = "copy_all_txn" if rows == sizes.rows else f"copy_{rows}_txn"
        cases[shown] = partial(copied_per_s, rows=rows, seconds=seconds)
    return cases


def rate_of(
    name: str,
    server: Server,
    *,
    seconds: float,
    rows: int = 1,
    clients: int = 1,
    transactions: bool = True,
) -> float:
    """Rows a second by the method `name`, each call of which is about so many."""
    work: Callable[[Client], None] = getattr(server, name)
    return rows * rate(server, work, clients=clients, seconds=seconds, transactions=transactions)


def copied_per_s(server: Server, *, rows: int, seconds: float) -> float:
    """Rows a second by COPYs of so many."""

    def copy(client: Client) -> None:
        server.copy(client, rows)

    return rows * rate(server, copy, clients=1, seconds=seconds, transactions=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--runs", type=int, default=3)
    sizes = parser.parse_args()
    if not postgres_installed():
        parser.exit(1, "the other side is PostgreSQL 15, which is not installed\n")
    ours: dict[str, list[float]] = defaultdict(list)
    theirs: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="tailrace-door-") as name:
        folder = Path(name)
        with tailrace_server(folder) as (_, port), postgres_server(folder) as postgres_port:
            sides = [
                (ours, Server(port, "defaultdb")),
                (theirs, Server(postgres_port, "postgres")),
            ]
            for run in range(sizes.runs):
                for metric, case in cases_of(sizes).items():
                    for found, server in sides if run % 2 == 0 else reversed(sides):
                        found[metric].append(case(server))
    metrics = {metric: statistics.median(values) for metric, values in ours.items()}
    metrics |= {f"postgres_{metric}": statistics.median(theirs[metric]) for metric in ours}
    for metric, values in ours.items():
        ratios = [one / other for one, other in zip(values, theirs[metric], strict=True)]
        metrics[f"{metric}_over_postgres"] = statistics.median(ratios)
    print_outcome("door", metrics)


if __name__ == "__main__":
    main()
