"""The relaxed log: ids, writes with their events, reading, and loading into a server.

    python -m benchmarks.relaxed [--rounds 15] [--events 200000] [--rows 20000]

Every ratio compares two rates of one run, measured in turns; each rate is the best of its rounds,
and those of one thread are by processor time, so that other processes of the machine count less.

- `ids_over_bare_lock`: ids drawn under a lock, over a counter incremented under one.
- `ids_16_threads_over_one`: by sixteen threads together, over one.
- `write_with_log_over_without`: the time of a cell's exchange in a batch of ten of a domain that
  processes share, over that of the exchange alone. `event_overhead_us` is the difference.
- `reader_over_arrow_fold`: events read, checked and folded, over the fold of all of them.
- `load_over_copy`: rows that change sets bring into a server, over the same rows by COPY, each by
  its own door.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Lock, Thread
from typing import TypeVar

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.outcome import print_outcome
from benchmarks.servers import tailrace_server
from tailrace.api.cli.relaxed import pieces_of, send
from tailrace.api.demo.crashes.writers import CrashStore
from tailrace.kvlayer.relaxed.attachment import LocalAttachment
from tailrace.kvlayer.relaxed.domain import Domain
from tailrace.kvlayer.relaxed.events import EVENT, Snapshot
from tailrace.kvlayer.relaxed.fold import fold
from tailrace.kvlayer.relaxed.ids import following, machine_clock
from tailrace.kvlayer.relaxed.machine import pause
from tailrace.kvlayer.relaxed.reader import EVENTS_WANTED, Reader
from tailrace.kvlayer.relaxed.segment import SegmentWriter, read_segment

DOMAIN = 7
THREADS = 16
IDS = 100_000
WRITES = 20_000
BATCH = 10
Client = psycopg.Connection[tuple[object, ...]]
COLUMNS = ("signal", "frames", "pid", "issue")

LOADED_BATCH = 25 * len(COLUMNS)
"""Cells of a batch of the log that is loaded: 25 rows are filled at once."""

T = TypeVar("T")


class LockedCounter:
    """What any source of numbers costs that threads share."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0

    def draw(self) -> int:
        with self._lock:
            self._last += 1
            return self._last


class LockedIds:
    """Ids as a domain draws them, without its epochs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0
        self._now_ns = machine_clock()

    def draw(self) -> int:
        with self._lock:
            self._last = following(self._last, self._now_ns())
            return self._last


def measure_ids(rounds: int) -> dict[str, float]:
    bare, ids, shared, alone = [], [], [], []
    for _ in range(rounds):
        bare.append(_drawn_per_s(LockedCounter().draw))
        ids.append(_drawn_per_s(LockedIds().draw))
        alone.append(_drawn_by_threads_per_s(LockedIds().draw, 1))
        shared.append(_drawn_by_threads_per_s(LockedIds().draw, THREADS))
    return {
        "ids_per_s": max(ids),
        "ids_over_bare_lock": max(ids) / max(bare),
        "ids_16_threads_over_one": max(shared) / max(alone),
    }


def _drawn_per_s(draw: Callable[[], int]) -> float:
    began = time.thread_time()
    for _ in range(IDS):
        draw()
    return IDS / (time.thread_time() - began)


def _drawn_by_threads_per_s(draw: Callable[[], int], threads: int) -> float:
    """By the wall: waiting for one another is what is asked about."""

    def work() -> None:
        for _ in range(IDS // threads):
            draw()

    workers = [Thread(target=work) for _ in range(threads)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return IDS / (time.perf_counter() - began)


def measure_writes(rounds: int) -> dict[str, float]:
    """The crash store's exchange, which other processes may do as well."""
    with_log, without = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="tailrace-relaxed-") as folder:
            store = CrashStore(Path(folder), record=False)
            without.append(_seconds(_exchange, store) / WRITES)
            with_log.append(_seconds(_write, store) / WRITES)
    return {
        "write_with_log_over_without": min(with_log) / min(without),
        "event_overhead_us": (min(with_log) - min(without)) * 1e6,
    }


def _seconds(work: Callable[[T], None], argument: T) -> float:
    """Processor seconds of `work` in all threads: Arrow has some of its own."""
    began = time.process_time()
    work(argument)
    return time.process_time() - began


def _exchange(store: CrashStore) -> None:
    exchange = store.crashes.exchange
    for number in range(WRITES):
        exchange(b"%d" % (number % 64), "signal", b"%d" % number)


def _write(store: CrashStore) -> None:
    domain, exchange = store.domain, store.crashes.exchange
    for start in range(0, WRITES, BATCH):
        with domain.batch():
            for number in range(start, start + BATCH):
                domain.write(exchange, "crashes", b"%d" % (number % 64), "signal", b"%d" % number)


def written_log(events: int, rows: int, batch: int = BATCH) -> pa.Table:
    """The segment of a log in batches of so many cells, each at rest behind it, over so many rows.
    Every row has been written at its end."""
    with tempfile.TemporaryDirectory(prefix="tailrace-relaxed-") as folder:
        path = Path(folder) / "segment"
        log = SegmentWriter(path, DOMAIN)
        log.snapshot(Snapshot(domain=DOMAIN, cut=0, cells={}))
        _write_cells(log, events, rows, batch)
        log.close()
        return read_segment(path).lines


def _write_cells(log: SegmentWriter, events: int, rows: int, batch: int) -> None:
    random, now_ns = Random(7), machine_clock()

    def renew() -> LocalAttachment:
        return LocalAttachment(DOMAIN, log, now_ns, renew=renew)

    domain = Domain(renew(), now_ns, pause)
    cells: dict[tuple[bytes, str], bytes] = {}

    def exchange(row: bytes, column: str, new: bytes | None) -> bytes | None:
        old = cells.get((row, column))
        assert new is not None
        cells[row, column] = new
        return old

    places = [(row, column) for row in range(rows) for column in COLUMNS]
    for start in range(0, events, batch):
        with domain.batch():
            for number in range(start, start + batch):
                row, column = places[number % len(places)]
                new = b"%d" % random.randrange(1 << 20)
                domain.write(exchange, "crashes", b"%d" % row, column, new)


def measure_reader(rounds: int, lines: pa.Table) -> dict[str, float]:
    read, folded = [], []
    events = lines.filter(pc.field("kind") == EVENT)
    for _ in range(rounds):
        folded.append(_seconds(_fold, events))
        read.append(_seconds(_read, lines))
    return {
        "events_read_per_s": events.num_rows / min(read),
        "reader_over_arrow_fold": min(folded) / min(read),
    }


def _fold(events: pa.Table) -> None:
    assert fold(events).num_rows


def _read(lines: pa.Table) -> None:
    reader, seen = Reader(DOMAIN, 0), 0
    for piece in pieces_of(lines):
        reader.feed(piece)
        for change_set in reader.advance(events_min=EVENTS_WANTED):
            seen += change_set.event_count
    assert reader.pending_count == 0 and not reader.gaps(), seen


def measure_load(rounds: int, rows: int) -> dict[str, float]:
    """Each row's cells are written once. Tables are new for each round."""
    lines = written_log(rows * len(COLUMNS), rows, LOADED_BATCH)
    text = "".join(f"{number}" + f"\t{number}" * len(COLUMNS) + "\n" for number in range(rows))
    loaded, copied = [], []
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-relaxed-") as name,
        tailrace_server(Path(name)) as (url, port),
    ):
        where = f"host=127.0.0.1 port={port} user=root dbname=defaultdb"
        with psycopg.connect(where, autocommit=True) as client:
            for number in range(rounds):
                copied.append(rows / _copy(client, number, text.encode()))
                loaded.append(rows / _load(client, url, number, lines))
    return {
        "load_rows_per_s": max(loaded),
        "copy_rows_per_s": max(copied),
        "load_over_copy": max(loaded) / max(copied),
    }


def _copy(client: Client, number: int, text: bytes) -> float:
    """Seconds of one COPY into a new table."""
    client.execute(_create(f"copied_{number}"))
    began = time.perf_counter()
    with client.cursor() as cursor, cursor.copy(f"COPY copied_{number} FROM STDIN") as copy:
        copy.write(text)
    return time.perf_counter() - began


def _load(client: Client, url: str, number: int, lines: pa.Table) -> float:
    """Seconds of what `tailrace relaxed load` does with a segment, into a new table."""
    client.execute(_create("crashes"))
    client.execute(f"CREATE RELAXED LOG log_{number} FOR TABLES (crashes)".encode())
    began = time.perf_counter()
    for piece in pieces_of(lines):
        send(url, f"log_{number}", piece)
    seconds = time.perf_counter() - began
    (found,) = client.execute("SELECT count(*), count(issue) FROM crashes").fetchall()
    copied = client.execute(f"SELECT count(*), count(issue) FROM copied_{number}".encode())
    assert [found] == copied.fetchall(), found
    client.execute(f"DROP RELAXED LOG log_{number}".encode())
    client.execute("DROP TABLE crashes")
    return seconds


def _create(table: str) -> bytes:
    columns = ", ".join(f"{column} INT8" for column in COLUMNS)
    return f"CREATE TABLE {table} (id INT8 PRIMARY KEY, {columns})".encode()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = parser.parse_args()
    metrics = measure_ids(arguments.rounds) | measure_writes(arguments.rounds)
    metrics |= measure_reader(arguments.rounds, written_log(arguments.events, 1000))
    metrics |= measure_load(arguments.rounds, arguments.rows)
    print_outcome("relaxed", metrics)


if __name__ == "__main__":
    main()
