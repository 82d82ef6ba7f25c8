"""A bank of two tables on a real server: what readers of its mirror see through kill -9."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx2
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ACCOUNTS = 20
BALANCE = 1000
TOTAL = 2 * ACCOUNTS * BALANCE
LOOK = (
    "SELECT (SELECT coalesce(sum(balance), 0) FROM checking) + "
    "(SELECT coalesce(sum(balance), 0) FROM savings)"
)


def open_bank(server: ServerProcess, apply: str) -> None:
    for name in ("checking", "savings"):
        server.sql(f"CREATE TABLE {name} (id INT8 PRIMARY KEY, balance INT8 NOT NULL)")
    server.sql("ALTER TABLE checking SET (changefeed_optimized = true)")
    accounts = ", ".join(f"({id}, {BALANCE})" for id in range(ACCOUNTS))
    server.sql(
        f"BEGIN; INSERT INTO checking VALUES {accounts}; INSERT INTO savings VALUES {accounts}; "
        "COMMIT"
    )
    server.sql(
        f"CREATE CHANGEFEED FOR TABLE checking, savings INTO 'duckdb:///bank.duckdb?apply={apply}'"
    )


def transfers(url: str, seed: int, stop: threading.Event) -> None:
    random = Random(seed)
    with httpx2.Client(base_url=url, timeout=30.0) as client:
        while not stop.is_set():
            giver, taker = random.sample(("checking", "savings"), 2)
            text = (
                f"BEGIN; UPDATE {giver} SET balance = balance - $1 WHERE id = $2; "
                f"UPDATE {taker} SET balance = balance + $1 WHERE id = $3; COMMIT"
            )
            params = [random.randrange(1, 90), *random.choices(range(ACCOUNTS), k=2)]
            try:
                client.post("/v1/sql", json={"sql": text, "params": params})
            except httpx2.TransportError:
                return


@contextmanager
def transferring(server: ServerProcess, seed: int) -> Iterator[None]:
    stop = threading.Event()
    clients = [
        threading.Thread(target=transfers, args=(server.url, seed + each, stop))
        for each in range(3)
    ]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join()


def look(server: ServerProcess, times: int) -> set[int]:
    return {int(server.mirror_rows("bank.duckdb", LOOK)[0][0]) for _ in range(times)}


def totals(folder: Path, apply: str) -> set[int]:
    """What a reader saw through three deaths of the server and two changes of a table."""
    with ServerProcess(folder) as server:
        open_bank(server, apply)
        server.wait_for_feeds(
            server.sql("UPSERT INTO checking VALUES (0, 1000)")[0]["commit_timestamp"]
        )
        seen: set[int] = set()
        for life in range(3):
            with transferring(server, seed=life * 10):
                seen |= look(server, 40)
                if life == 1:
                    server.sql("ALTER TABLE savings ADD COLUMN note STRING DEFAULT 'none'")
                if life == 2:
                    server.sql("ALTER TABLE savings DROP COLUMN note")
                seen |= look(server, 40)
                server.kill()
            server.start()
            seen |= look(server, 20)
        return seen


def test_no_reader_sees_half_of_a_transaction(tmp_path: Path) -> None:
    assert totals(tmp_path / "data", "transaction") == {TOTAL}


def test_by_rows_readers_do(tmp_path: Path) -> None:
    assert len(totals(tmp_path / "data", "row")) > 1
