"""Copies of a mirror file that is written meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import duckdb
import pytest

from tailrace.changefeed.sinks.duckdb.files import DuckDBFiles
from tailrace.changefeed.sinks.duckdb.mirror_file import MirrorFile, run_whole
from tailrace.changefeed.sinks.duckdb.publication import Publication, publish, published_path
from tailrace.changefeed.sinks.locations import MirrorLocations
from tailrace.changefeed.sinks.protocol import SinkError
from tailrace.kvlayer.process.offload import ThreadOffload
from tests.harness.simulation import Simulation

BULK = 250_000
"""Rows of a commit that DuckDB writes into the file before it commits them: two row groups."""


@asynccontextmanager
async def mirror(folder: Path) -> AsyncIterator[MirrorFile]:
    offload = ThreadOffload()
    files = DuckDBFiles(MirrorLocations([folder]), offload)
    async with files.using(folder / "m.duckdb") as file:
        yield file
    offload.close()


def write(file: MirrorFile, *statements: str) -> None:
    """One commit, in the file's lane."""
    with file.using_cursor() as cursor:
        for statement in ("BEGIN", *statements, "COMMIT"):
            cursor.execute(statement)
    file.note_commit()


async def write_on(file: MirrorFile, commits: list[int], stop: asyncio.Event) -> None:
    """Each commit counts itself and adds a thousand rows, or many, or takes a part of them away."""
    while not stop.is_set():
        number = commits[0] + 1
        rows = BULK if number % 5 == 0 else 1000
        gone = f"DELETE FROM t WHERE n % 7 = {number % 7} AND part < {number}"
        insert = f"INSERT INTO t SELECT {number}, range FROM range({rows})"
        count = f"UPDATE state SET number = {number}, rows = (SELECT count(*) FROM t)"
        await run_whole(file.lane, partial(write, file, gone, insert, count))
        commits[0] = number
        file.after_flush()


def test_a_copy_is_one_state_though_the_mirror_is_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        commits = [0]
        async with mirror(tmp_path) as file:
            first = (
                "CREATE TABLE t (part BIGINT, n BIGINT)",
                "CREATE TABLE state AS SELECT 0 AS number, 0 AS rows",
            )
            await run_whole(file.lane, partial(write, file, *first))
            stop = asyncio.Event()
            writing = asyncio.create_task(write_on(file, commits, stop))
            for _ in range(6):
                begun = commits[0]
                while commits[0] < begun + 2:
                    await asyncio.sleep(0)
                before = commits[0]
                await publish(file)
                with duckdb.connect(str(published_path(file.path)), read_only=True) as copy:
                    [(number, rows)] = copy.sql("SELECT number, rows FROM state").fetchall()
                    assert before <= number <= commits[0] + 1
                    assert copy.sql("SELECT count(*) FROM t").fetchall() == [(rows,)]
            stop.set()
            await writing

    asyncio.run(scenario())


def test_a_copy_is_swapped_in_whole(tmp_path: Path) -> None:
    """Who has the one before open reads it to its end, and a copy that fails leaves it there."""

    async def scenario() -> None:
        async with mirror(tmp_path) as file:
            path = published_path(file.path)
            await run_whole(file.lane, partial(write, file, "CREATE TABLE t AS SELECT 1 AS n"))
            await publish(file)
            before = path.read_bytes()
            with path.open("rb") as opened:
                await run_whole(file.lane, partial(write, file, "UPDATE t SET n = 2"))
                await publish(file)
                assert opened.read() == before
            after = path.read_bytes()
            assert after != before
            path.with_name(f"{path.name}.tmp").mkdir()
            with pytest.raises(OSError):
                await publish(file)
            assert path.read_bytes() == after

    asyncio.run(scenario())


def test_a_copy_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with mirror(tmp_path) as file:
            published_path(file.path).mkdir()
            publication = Publication(file, 3600.0)
            publication.note_change()
            await publication.close()
            with pytest.raises(SinkError, match=r"cannot publish .*m\.published\.duckdb"):
                publication.check()
        assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["m.duckdb"]

    asyncio.run(scenario())


def test_copies_are_an_interval_apart_and_lag_no_longer(tmp_path: Path) -> None:
    simulation = Simulation(seed=3)

    def published() -> int:
        with duckdb.connect(str(published_path(tmp_path / "m.duckdb")), read_only=True) as copy:
            [(number,)] = copy.sql("FROM state").fetchall()
        return int(number)

    async def scenario() -> None:
        files = DuckDBFiles(MirrorLocations([tmp_path]), simulation.offload)
        async with files.using(tmp_path / "m.duckdb") as file:
            await run_whole(file.lane, partial(write, file, "CREATE TABLE state AS SELECT 0 AS n"))
            publication = Publication(file, 10.0)
            begun = asyncio.get_running_loop().time()
            seen = []
            for second in range(15):
                count = f"UPDATE state SET n = {second}"
                await run_whole(file.lane, partial(write, file, count))
                publication.note_change()
                await asyncio.sleep(begun + second + 0.9 - asyncio.get_running_loop().time())
                seen.append(published())
                await asyncio.sleep(0.1)
            assert seen == [0] * 10 + [10] * 5
            await publication.close()
            publication.check()
            assert published() == 14

    simulation.run(scenario())
