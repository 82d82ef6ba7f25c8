"""A hand-written consumer of PostgreSQL's logical replication, into DuckDB: the peer of a mirror.

    python -m benchmarks.pgoutput_consumer PORT MIRROR.duckdb NOTED

Reads pgoutput of publication `p` from slot `s` over the replication protocol, gathers whole
transactions while DuckDB commits, and upserts them by primary key: what is delivered again after a
crash changes nothing. A few rows go as values, many as one Arrow table. It knows the benchmark's
table and no other, follows no schema change, and so is as lean as such a program gets.
"""

from __future__ import annotations

import select
import struct
import sys
import time
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
from psycopg import pq

from benchmarks.noted_times import NS

Row = list[str | None]

COLUMNS = ("id", "customer", "amount", "note", "ts")
CREATE = (
    "CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DOUBLE, "
    "note VARCHAR, ts TIMESTAMPTZ)"
)
UPSERT = "INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?)"
UPSERT_MANY = "INSERT OR REPLACE INTO orders SELECT * FROM batch"
FEW_ROWS = 32
FLUSH_ROWS_MAX = 50_000
"""A backlog's transactions are applied so many rows at a time."""

START = b"START_REPLICATION SLOT s LOGICAL 0/0 (proto_version '1', publication_names 'p')"
_LENGTH = struct.Struct("!i")
_STATUS = struct.Struct("!cqqqqc")
_COMMIT_END = struct.Struct("!cBqqq")
_LSN = struct.Struct("!q")


def row_of(message: memoryview) -> Row:
    """The values of an Insert or an Update without an old row, as text."""
    place = 8
    row: Row = []
    for _ in range(message[6] << 8 | message[7]):
        if message[place] == ord("n"):
            row.append(None)
            place += 1
            continue
        (length,) = _LENGTH.unpack_from(message, place + 1)
        row.append(str(message[place + 5 : place + 5 + length], "utf-8"))
        place += 5 + length
    return row


class Consumer:
    """One slot into one file."""

    def __init__(self, port: int, mirror: Path, noted: Path) -> None:
        self._duckdb = duckdb.connect(str(mirror))
        self._duckdb.execute(CREATE)
        self._noted = noted.open("ab", buffering=0)
        connection = psycopg.connect(
            f"host=127.0.0.1 port={port} user=root dbname=postgres replication=database",
            autocommit=True,
        )
        self._connection = connection  # which closes what it is dropped with
        self._replication = connection.pgconn
        self._replication.send_query(START)
        while self._replication.is_busy():
            self._replication.consume_input()
        result = self._replication.get_result()
        assert result is not None
        assert result.status == pq.ExecStatus.COPY_BOTH, result.error_message
        self._rows: list[Row] = []
        self._whole = 0  # rows of whole transactions
        self._transactions = 0
        self._end = 0  # in PostgreSQL's log, of what is in DuckDB or has no rows

    def run(self) -> None:
        replication = self._replication
        while True:
            length, data = replication.get_copy_data(1)
            assert length >= 0, replication.error_message
            if length:
                self._take(data)
            if self._transactions and (not length or len(self._rows) >= FLUSH_ROWS_MAX):
                self._flush()
            elif not length:
                select.select([replication.socket], [], [], 10)
                replication.consume_input()

    def _take(self, data: memoryview) -> None:
        if data[0] == ord("k"):
            if not self._rows:
                # PostgreSQL asks again at once while what it has sent is not confirmed.
                (sent,) = _LSN.unpack_from(data, 1)
                self._end = max(self._end, sent)
            self._confirm()
            return
        message = data[25:]
        match chr(message[0]):
            case "I" | "U":
                self._rows.append(row_of(message))
            case "C":
                self._end = _COMMIT_END.unpack_from(message)[3]
                self._whole = len(self._rows)
                self._transactions += 1

    def _flush(self) -> None:
        rows, self._rows = self._rows[: self._whole], self._rows[self._whole :]
        self._duckdb.execute("BEGIN")
        if len(rows) <= FEW_ROWS:
            self._duckdb.executemany(UPSERT, rows)
        else:
            # Of a key that was written twice the last counts.
            last = {row[0]: row for row in rows}
            columns = zip(*last.values(), strict=True)
            batch = pa.table(dict(zip(COLUMNS, map(list, columns), strict=True)))
            self._duckdb.register("batch", batch)
            self._duckdb.execute(UPSERT_MANY)
        self._duckdb.execute("COMMIT")
        self._noted.write(NS.pack(time.monotonic_ns()) * self._transactions)
        self._whole = self._transactions = 0
        self._confirm()

    def _confirm(self) -> None:
        end = self._end
        self._replication.put_copy_data(_STATUS.pack(b"r", end, end, end, 0, b"\0"))
        self._replication.flush()


if __name__ == "__main__":
    Consumer(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])).run()
