"""The crash store, mirrored at once into DuckDB, into Parquet by Spark and into files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tailrace.api.demo.crashes.following import LogFollower
from tailrace.api.demo.crashes.mirrored import LOG, MIRROR, SHAPES, mirror_image, schema_statements
from tailrace.api.demo.crashes.run import follow, writing_processes
from tailrace.api.demo.crashes.table import NOTHING, Shape, image_of
from tailrace.api.demo.crashes.writers import CrashStore, read_cuts
from tailrace.api.demo.lake import final_state, read_lake
from tailrace.api.demo.server import demo_server
from tailrace.api.embedded import AsyncDatabase

pytestmark = pytest.mark.system

SECONDS = 3.0
FILES = f"CREATE CHANGEFEED FOR RELAXED LOG {LOG} INTO 'file:///crash-files'"
Row = Mapping[str, int | None]


def _lake(shape: Shape) -> str:
    """A lake holds one table."""
    return (
        f"CREATE CHANGEFEED FOR {shape.name} INTO 'spark+parquet:///{shape.name}?master=local[1]' "
        "WITH min_checkpoint_frequency = '200ms'"
    )


def _image(rows: Mapping[str, Iterable[Row]]) -> bytes:
    """The crash store that has these rows, by table."""
    image = b""
    for shape in SHAPES:
        columns = {name: np.full(shape.rows, NOTHING) for name in shape.columns}
        for row in rows[shape.name]:
            for name in shape.columns:
                if row[name] is not None:
                    columns[name][row["id"]] = row[name]
        image += image_of(shape, columns)
    return image


def _lake_image(mirrors: Path) -> bytes:
    lakes = {shape.name: read_lake(mirrors / shape.name) for shape in SHAPES}
    return _image({name: final_state(lake, ("id",)).to_pylist() for name, lake in lakes.items()})


def _files_image(folder: Path) -> bytes:
    """Of each key the last line, in the order of names."""
    last: dict[str, dict[int, Row | None]] = {shape.name: {} for shape in SHAPES}
    for path in sorted(folder.rglob("*.ndjson"), key=lambda each: each.name):
        rows = last[path.name.rsplit("-", 2)[1]]
        for line in path.read_text().splitlines():
            message = json.loads(line)
            rows[message["key"][0]] = message["after"]
    return _image({name: [row for row in rows.values() if row] for name, rows in last.items()})


async def _mirrored(folder: Path) -> tuple[bytes, dict[str, bytes], set[bytes]]:
    """How the crash store ends, what each of its mirrors holds, and every state that it had."""
    crashes = folder / "crashes"
    crashes.mkdir()
    store, console = CrashStore(crashes), Console(quiet=True)
    async with demo_server(folder / "data", console) as database:
        jobs = []
        for statement in (*schema_statements(), FILES, *map(_lake, SHAPES)):
            made = await database.sql(statement)
            if statement.startswith("CREATE CHANGEFEED"):
                jobs.append(made.fetchall()[0][0])
        follower = LogFollower(database.node, crashes)
        async with writing_processes(crashes, console, SECONDS) as writing:
            while not writing.done():
                await follow(follower, store)
                await asyncio.sleep(0.1)
            await writing
            while await follow(follower, store):
                await asyncio.sleep(0.1)
        await _wait(database, jobs)
        held = {
            "duckdb": await mirror_image(database.mirror(MIRROR)),
            "spark": await asyncio.to_thread(_lake_image, folder / "data" / "mirrors"),
            "files": _files_image(folder / "data" / "mirrors" / "crash-files"),
        }
    return store.image(), held, set(read_cuts(crashes).values())


async def _wait(database: AsyncDatabase, jobs: Iterable[object]) -> None:
    now = await database.node.store.now()
    for job in jobs:
        assert isinstance(job, int)
        await database.feed(job).wait_until(now)


def test_mirrors_are_equal_at_the_last_cut(tmp_path: Path) -> None:
    last, held, existed = asyncio.run(_mirrored(tmp_path))
    assert last in existed
    assert {name: image == last for name, image in held.items()} == dict.fromkeys(held, True)
