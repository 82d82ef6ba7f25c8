"""A server that is killed at random moments of a load, over and over, and what must be true then.

    python -m tests.system.crash --moments 10 --seed 1

Writers insert, update, upsert and delete over HTTP, each in its own keys of two tables, one of them
locked; a changefeed mirrors both. After each kill -9 and restart:

    a write that was acknowledged is there; one that was under way is there whole, or not at all
    the mirror holds what the tables hold: nothing is missing, and no deleted row came back

The model is a dict per writer, and knows nothing of the server but its answers.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from tests.harness.server_process import ServerProcess

TABLES = ("plain", "locked")
MIRROR = "crash.duckdb"
WRITERS = 4
KEYS_PER_WRITER = 60
LOAD_SECONDS = (0.2, 1.2)

Key = tuple[str, int]
Rows = dict[Key, str]
Changes = dict[Key, str | None]


@dataclass
class Writer:
    """One client. `rows` is what it knows to be committed; `unknown` is under way."""

    number: int
    random: Random
    rows: Rows = field(default_factory=dict)
    unknown: Changes = field(default_factory=dict)
    acknowledged: int = 0

    async def run(self, client: httpx2.AsyncClient) -> None:
        """Writes until the server is gone."""
        while True:
            text, params, changes = self.choose()
            self.unknown = changes
            try:
                answer = await client.post("/v1/sql", json={"sql": text, "params": params})
            except httpx2.TransportError:
                return
            if answer.status_code == 200:
                self.apply(changes)
                self.acknowledged += 1
            else:
                assert answer.json()["sqlstate"] == "40001", answer.text
            self.unknown = {}

    def apply(self, changes: Changes) -> None:
        for key, value in changes.items():
            if value is None:
                del self.rows[key]
            else:
                self.rows[key] = value

    def choose(self) -> tuple[str, list[Any], Changes]:
        """A statement or a transaction, its parameters, and what it changes."""
        texts: list[str] = []
        params: list[Any] = []
        changes: Changes = {}
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            key = (self.random.choice(TABLES), self._key())
            if key not in changes:
                texts.append(self._write(key, params, changes))
        if len(texts) > 1:
            texts = ["BEGIN", *texts, "COMMIT"]
        return "; ".join(texts), params, changes

    def _key(self) -> int:
        return self.number * KEYS_PER_WRITER + self.random.randrange(KEYS_PER_WRITER)

    def _write(self, key: Key, params: list[Any], changes: Changes) -> str:
        table, number = key
        value = f"{self.random.getrandbits(64):x}" * self.random.choice((1, 1, 1, 40))
        params += [number, value]
        k, v = f"${len(params) - 1}", f"${len(params)}"
        changes[key] = value
        if key not in self.rows:
            return f"{self.random.choice(('INSERT', 'UPSERT'))} INTO {table} VALUES ({k}, {v})"
        match self.random.randrange(3):
            case 0:
                changes[key] = None
                params.pop()
                return f"DELETE FROM {table} WHERE k = {k}"
            case 1:
                return f"UPSERT INTO {table} VALUES ({k}, {v})"
            case _:
                return f"UPDATE {table} SET v = {v} WHERE k = {k}"

    def reconcile(self, found: Rows) -> None:
        """Compares with what is there after the crash, and takes over what was under way."""
        mine = {
            key: value for key, value in found.items() if key[1] // KEYS_PER_WRITER == self.number
        }
        before = dict(self.rows)
        self.apply(self.unknown)
        assert mine in (before, self.rows), _difference(mine, before, self.unknown)
        self.rows, self.unknown = mine, {}


def _difference(found: Rows, expected: Rows, unknown: Changes) -> str:
    lost = {key: value for key, value in expected.items() if found.get(key) != value}
    extra = {key: value for key, value in found.items() if key not in expected}
    return f"lost or old: {lost}\nnever written or deleted: {extra}\nunder way: {unknown}"


def create_tables(server: ServerProcess) -> None:
    for table in TABLES:
        server.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY, v STRING NOT NULL)")
    server.sql("ALTER TABLE locked SET (changefeed_optimized = true)")
    server.sql(f"CREATE CHANGEFEED FOR TABLE plain, locked INTO 'duckdb:///{MIRROR}'")
    server.sql("CREATE TABLE marks (k INT8 PRIMARY KEY)")


async def load_until_killed(server: ServerProcess, writers: list[Writer], seconds: float) -> None:
    async with httpx2.AsyncClient(base_url=server.url, timeout=30.0) as client:
        running = [asyncio.create_task(writer.run(client)) for writer in writers]
        await asyncio.sleep(seconds)
        ended = [task for task in running if task.done()]
        assert not ended, [task.exception() for task in ended]
        server.kill()
        await asyncio.gather(*running)


def check(server: ServerProcess, writers: list[Writer]) -> int:
    """After a restart: source against model, then mirror against source. The rows there are."""
    found = read_rows(server.rows)
    for writer in writers:
        writer.reconcile(found)
    mark = server.sql("UPSERT INTO marks VALUES (1)")[0]["commit_timestamp"]
    server.wait_for_feeds(mark)
    mirrored = read_rows(lambda text: server.mirror_rows(MIRROR, text))
    assert mirrored == found, _difference(mirrored, found, {})
    return len(found)


def read_rows(read: Any) -> Rows:
    return {
        (table, key): value for table in TABLES for key, value in read(f"SELECT k, v FROM {table}")
    }


def crash_at_moments(folder: Path, *, moments: int, seed: int, say: Any = print) -> None:
    """The whole story. Raises AssertionError with what was lost."""
    random = Random(seed)
    writers = [Writer(number, Random(random.random())) for number in range(WRITERS)]
    with ServerProcess(folder) as server:
        create_tables(server)
        for moment in range(1, moments + 1):
            seconds = random.uniform(*LOAD_SECONDS)
            asyncio.run(load_until_killed(server, writers, seconds))
            server.start()
            rows = check(server, writers)
            acknowledged = sum(writer.acknowledged for writer in writers)
            say(f"moment {moment}: after {seconds:.3f} s; {acknowledged} writes, {rows} rows")
        assert server.terminate() == 0, server.errors()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        crash_at_moments(Path(scratch) / "data", moments=arguments.moments, seed=arguments.seed)


if __name__ == "__main__":
    main()
