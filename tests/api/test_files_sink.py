"""Changefeeds into files, through SQL: read back by programs that know nothing of the sink."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError


class Orders:
    """A store with a table of two rows, and a folder for its changes."""

    def __init__(self, database: AsyncDatabase, folder: Path) -> None:
        self.database = database
        self.folder = folder

    async def feed(self, options: str = "", parameters: str = "") -> int:
        into = f"CREATE CHANGEFEED FOR orders INTO 'nodelocal://self/changes{parameters}'"
        created = await self.database.sql(into + (f" WITH {options}" if options else ""))
        ((job_id,),) = created.fetchall()
        assert isinstance(job_id, int)
        return job_id

    async def caught_up(self, job_id: int) -> None:
        async with asyncio.timeout(30):
            now = await self.database.node.store.now()
            await self.database.feed(job_id).wait_until(now)

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.folder.rglob(pattern), key=lambda path: path.name)


@asynccontextmanager
async def orders(path: Path) -> AsyncIterator[Orders]:
    database = await aopen(path / "data")
    try:
        await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING, at TIMESTAMPTZ)")
        await database.sql(
            "INSERT INTO orders VALUES (1, 'a', '2024-01-31 10:00:00Z'), (2, 'b', NULL)"
        )
        yield Orders(database, path / "data" / "mirrors" / "changes")
    finally:
        await database.close()


async def changes(bench: Orders, job_id: int) -> None:
    await bench.caught_up(job_id)
    await bench.database.sql("UPDATE orders SET name = 'c' WHERE k = 2")
    await bench.database.sql("DELETE FROM orders WHERE k = 1")
    await bench.caught_up(job_id)


EXPECTED: list[dict[str, Any]] = [
    {"after": {"at": "2024-01-31T10:00:00Z", "k": 1, "name": "a"}, "key": [1]},
    {"after": {"at": None, "k": 2, "name": "b"}, "key": [2]},
    {"after": {"at": None, "k": 2, "name": "c"}, "key": [2]},
    {"after": None, "key": [1]},
]


def test_lines_of_json_are_read_by_anybody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            await changes(bench, await bench.feed())
            lines = [
                json.loads(line)
                for path in bench.files("*.ndjson")
                for line in path.read_text().splitlines()
            ]
            assert lines == EXPECTED
            found = duckdb.execute(
                f"SELECT key[1], after.name FROM read_json('{bench.folder}/**/*.ndjson') "
                "WHERE after IS NOT NULL ORDER BY ALL"
            ).fetchall()
            assert found == [(1, "a"), (2, "b"), (2, "c")]

    asyncio.run(scenario())


def test_enriched_lines_say_whence_they_come(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            options = "envelope = 'enriched', enriched_properties = 'source', resolved"
            job_id = await bench.feed(options)
            await changes(bench, job_id)
            lines = [
                json.loads(line)
                for path in bench.files("*.ndjson")
                for line in path.read_text().splitlines()
            ]
            assert [(line["op"], line["key"], line["after"]) for line in lines] == [
                (op, {"k": row["key"][0]}, row["after"])
                for op, row in zip("ccud", EXPECTED, strict=True)
            ]
            for line in lines:
                source = line["source"]
                assert (source["changefeed_sink"], source["job_id"]) == (
                    "cloudstorage",
                    str(job_id),
                )

    asyncio.run(scenario())


def test_compressed_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            await changes(bench, await bench.feed("compression = 'gzip', envelope = 'bare'"))
            texts = [gzip.decompress(path.read_bytes()) for path in bench.files("*.ndjson.gz")]
            rows = [json.loads(line) for text in texts for line in text.splitlines()]
            assert [row["__crdb__"]["key"] for row in rows] == [[1], [2], [2], [1]]
            assert rows[-1] == {"__crdb__": {"key": [1]}, "at": None, "k": 1, "name": None}

    asyncio.run(scenario())


@pytest.mark.parametrize("compression", ["", ", compression = 'zstd'"])
def test_parquet_is_read_by_duckdb(tmp_path: Path, compression: str) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            await changes(bench, await bench.feed(f"format = 'parquet', updated{compression}"))
            found = duckdb.execute(
                "SELECT k, name, epoch(orders.at), __crdb__event_type "
                f"FROM read_parquet('{bench.folder}/**/*.parquet') orders "
                "ORDER BY __crdb__updated, k"
            ).fetchall()
            assert found == [
                (1, "a", 1706695200.0, "c"),
                (2, "b", None, "c"),
                (2, "c", None, "c"),
                (1, None, None, "d"),
            ]

    asyncio.run(scenario())


def test_a_mark_follows_what_it_speaks_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            options = "resolved, updated, min_checkpoint_frequency = '10ms'"
            await changes(bench, await bench.feed(options, "?partition_format=flat"))
            async with asyncio.timeout(30):
                while not (spoken := spoken_for(bench)) or spoken[-1]["after"] is not None:
                    await asyncio.sleep(0.01)
            assert [line["key"] for line in spoken] == [[1], [2], [2], [1]]

    asyncio.run(scenario())


def test_paused_feed_sends_nothing_again(tmp_path: Path) -> None:
    """Its file was there before its progress was due to be saved."""

    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            job_id = await bench.feed()
            await bench.caught_up(job_id)
            for name in ("c", "d"):
                await bench.database.sql(f"UPDATE orders SET name = '{name}' WHERE k = 2")
                for _ in range(2):
                    await bench.caught_up(job_id)
                    await bench.database.sql(f"PAUSE JOB {job_id}")
                    await bench.database.node.jobs.wait(job_id, JobState.PAUSED, timeout=30)
                    await bench.database.sql(f"RESUME JOB {job_id}")
            await bench.caught_up(job_id)
            shown = [
                json.loads(line)["after"]["name"]
                for path in bench.files("*.ndjson")
                for line in path.read_text().splitlines()
            ]
            assert shown == ["a", "b", "c", "d"]

    asyncio.run(scenario())


def spoken_for(bench: Orders) -> list[dict[str, Any]]:
    """The lines up to the newest mark's timestamp, in files that stand before it."""
    marks = bench.files("*.RESOLVED")
    if not marks:
        return []
    resolved = json.loads(marks[-1].read_text())["resolved"]
    before = [path for path in bench.files("*.ndjson") if path.name < marks[-1].name]
    lines = [json.loads(line) for path in before for line in path.read_text().splitlines()]
    return [line for line in lines if line["updated"] <= resolved]


def test_csv_is_read_by_duckdb(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            await bench.database.sql(
                "INSERT INTO orders VALUES (3, '', NULL), (4, E'a\"\n,', NULL)"
            )
            await ended(bench, await bench.feed("format = 'csv', initial_scan = 'only'"))
            found = duckdb.execute(
                f"SELECT k, name, moment IS NULL FROM read_csv('{bench.folder}/**/*.csv', "
                "header = false, names = ['k', 'name', 'moment'], allow_quoted_nulls = false) "
                "ORDER BY k"
            ).fetchall()
            assert [row[:2] for row in found] == [(1, "a"), (2, "b"), (3, ""), (4, 'a"\n,')]
            assert [row[2] for row in found] == [False, True, True, True]
            (streamed,) = await bench.database.node.session().execute(
                "CREATE CHANGEFEED FOR orders WITH format = 'csv', initial_scan = 'only'"
            )
            assert streamed.stream is not None
            values = [row[2] async for row in streamed.stream]
            assert values[:2] == [b'1,"a",2024-01-31T10:00:00Z', b'2,"b",']

    asyncio.run(scenario())


async def ended(bench: Orders, job_id: int) -> None:
    async with asyncio.timeout(30):
        while "succeeded" not in str(
            (await bench.database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall()
        ):
            await asyncio.sleep(0.02)


def test_a_scan_alone_ends_with_whole_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            await bench.database.sql(
                "INSERT INTO orders SELECT n, 'x', NULL FROM generate_series(10, 3000) n"
            )
            job_id = await bench.feed("initial_scan = 'only'", "?file_size=20KB")
            await ended(bench, job_id)
            files = bench.files("*.ndjson")
            assert len(files) > 1
            keys = [
                json.loads(line)["key"] for path in files for line in path.read_text().splitlines()
            ]
            assert keys == [[1], [2], *[[n] for n in range(10, 3001)]]
            assert not list(bench.folder.glob(".tailrace-*"))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("uri", "options", "sqlstate"),
    [
        ("file:///../changes", "", "42501"),
        ("file:////etc/changes", "", "42501"),
        ("file:///", "", "22023"),
        ("file://host/changes", "", "22023"),
        ("nodelocal://9/changes", "", "22023"),
        ("nodelocal://self/changes?file_size=big", "", "22023"),
        ("nodelocal://self/changes?partition_format=weekly", "", "22023"),
        ("nodelocal://self/changes?apply=row", "", "22023"),
        ("file:///changes", "WITH envelope = 'key_only'", "22023"),
        ("file:///changes", "WITH format = 'parquet', topic_in_value", "22023"),
        ("file:///changes", "WITH format = 'parquet', envelope = 'bare'", "22023"),
        ("file:///changes", "WITH format = 'csv'", "22023"),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, uri: str, options: str, sqlstate: str
) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            with pytest.raises(SQLError) as caught:
                await bench.database.sql(f"CREATE CHANGEFEED FOR orders INTO '{uri}' {options}")
            assert caught.value.sqlstate == sqlstate

    asyncio.run(scenario())


def test_a_folder_takes_one_feed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            await bench.feed()
            with pytest.raises(SQLError, match="folder"):
                await bench.feed()

    asyncio.run(scenario())


def test_a_table_that_left_and_joins_again_is_scanned_again(tmp_path: Path) -> None:
    """Its scan was asked for, whatever the feed has shown of it before."""

    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            await bench.database.sql("CREATE TABLE others (k INT PRIMARY KEY)")
            job_id = await bench.feed()
            await bench.database.sql(f"ALTER CHANGEFEED {job_id} ADD others")
            await bench.caught_up(job_id)
            for clauses in ("DROP orders ADD orders", "DROP orders", "ADD orders"):
                again = " WITH initial_scan" if clauses.endswith("ADD orders") else ""
                await bench.database.sql(f"ALTER CHANGEFEED {job_id} {clauses}{again}")
                await bench.caught_up(job_id)
            async with asyncio.timeout(30):
                while True:
                    texts = [path.read_text() for path in bench.files("*.ndjson")]
                    shown = [json.loads(line) for text in texts for line in text.splitlines()]
                    if [row["after"]["k"] for row in shown].count(1) == 3:
                        return
                    await asyncio.sleep(0.05)

    asyncio.run(scenario())
