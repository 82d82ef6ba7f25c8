"""Backups: one state of the store with all that was acknowledged, found damaged where they are."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.api.backup import (
    BackupRefused,
    received_files,
    restore_backup,
    stopped_store,
    write_backup,
)
from tailrace.api.cli.app import app
from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.api.node import Node, NodeOptions
from tailrace.api.refusal import NodeRefused
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import FeedStopped
from tests.harness.http_door import HttpDoor, problem_of

FACTS = {"version": "1", "taken_at": "2026-11-23T00:00:00Z"}
ACCOUNTS = 10
TOTAL = ACCOUNTS * 100


@asynccontextmanager
async def shop(folder: Path, mirrors: Path) -> AsyncIterator[AsyncDatabase]:
    mirrors.mkdir(exist_ok=True)
    async with await aopen(folder, NodeOptions(mirror_roots=(mirrors,))) as database:
        yield database


async def archive_of(database: AsyncDatabase) -> bytes:
    backups = database.node.backups
    assert backups is not None
    backup = await backups.begin()
    try:
        sent = b"".join([chunk async for chunk in backup.chunks()])
    finally:
        await backup.close()
    assert len(sent) == backup.size
    return sent


def restored(folder: Path, archive: bytes, name: str = "data") -> Path:
    """Through a backup's folder, whose name it takes with `backup` behind."""
    backup = folder / f"{name}-backup"
    write_backup(backup, received_files(io.BytesIO(archive)), **FACTS)
    restore_backup(backup, folder / name)
    return folder / name


def test_backup_under_load_is_one_state_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    """Transfers keep a total and number themselves: a state between two, or one without the last
    that was acknowledged, shows."""
    acknowledged = 0

    async def transfer(database: AsyncDatabase, stop: asyncio.Event) -> None:
        nonlocal acknowledged
        while not stop.is_set():
            number = acknowledged + 1
            async with database.transaction() as open_one:
                await open_one.sql(
                    f"UPDATE accounts SET v = v - 1 WHERE id = {number % ACCOUNTS};"
                    f"UPDATE accounts SET v = v + 1 WHERE id = {(number + 1) % ACCOUNTS};"
                    f"INSERT INTO history VALUES ({number})"
                )
            acknowledged = number

    async def scenario() -> None:
        async with shop(tmp_path / "live", tmp_path / "mirrors") as database:
            await database.sql("CREATE TABLE accounts (id INT8 PRIMARY KEY, v INT8)")
            await database.sql("CREATE TABLE history (n INT8 PRIMARY KEY)")
            await database.sql(
                f"INSERT INTO accounts SELECT i, 100 FROM generate_series(0, {ACCOUNTS - 1}) g(i)"
            )
            stop = asyncio.Event()
            writing = asyncio.create_task(transfer(database, stop))
            while acknowledged < 10:
                await asyncio.sleep(0)
            before = acknowledged
            archive = await archive_of(database)
            after = acknowledged
            stop.set()
            await writing
        assert not (tmp_path / "live" / "checkpoint").exists()
        async with shop(restored(tmp_path, archive), tmp_path / "mirrors") as database:
            assert database.node.notice is None
            history = (await database.sql("SELECT n FROM history ORDER BY n")).arrow()
            numbers = history["n"].to_pylist()
            assert numbers == list(range(1, len(numbers) + 1))
            assert before <= len(numbers) <= after + 1
            assert (await database.sql("SELECT sum(v) FROM accounts")).fetchall() == [(TOTAL,)]
            await database.sql("INSERT INTO history VALUES (0)")  # and it is written to

    asyncio.run(scenario())


def test_feeds_of_a_restored_store_begin_anew_in_its_own_mirrors(tmp_path: Path) -> None:
    """And a mirror that lies elsewhere and has seen more is told apart."""

    async def settled(database: AsyncDatabase, mirror: str) -> list[object]:
        await asyncio.wait_for(database.mirror(mirror).wait(), 20)
        rows = await database.mirror(mirror).sql("SELECT n FROM t ORDER BY n")
        return [*rows["n"].to_pylist()]

    async def scenario() -> None:
        elsewhere = tmp_path / "mirrors"
        async with shop(tmp_path / "live", elsewhere) as database:
            await database.sql("CREATE TABLE t (n INT8 PRIMARY KEY); INSERT INTO t VALUES (1)")
            await database.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///elsewhere.duckdb'")
            assert await settled(database, "elsewhere.duckdb") == [1]
            archive = await archive_of(database)
            await database.sql("INSERT INTO t VALUES (2)")
            assert await settled(database, "elsewhere.duckdb") == [1, 2]
        folder = restored(tmp_path, archive)
        async with shop(folder, elsewhere) as database:
            with pytest.raises(FeedStopped, match="put back from an older copy"):
                await settled(database, "elsewhere.duckdb")
        fresh = tmp_path / "fresh"
        async with shop(restored(tmp_path, archive, "again"), fresh) as database:
            await database.sql("INSERT INTO t VALUES (3)")
            assert await settled(database, "elsewhere.duckdb") == [1, 3]

    asyncio.run(scenario())


def test_damage_is_found_before_there_is_a_folder(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with shop(tmp_path / "live", tmp_path / "mirrors") as database:
            archive = await archive_of(database)
            backups = database.node.backups
            assert backups is not None
            held = await backups.begin()
            with pytest.raises(SQLError, match="another backup"):
                await backups.begin()
            await held.close()
            return archive

    archive = asyncio.run(scenario())
    for end in (600, len(archive) // 2, len(archive) - 3 * 512):
        with pytest.raises(BackupRefused, match="broken off"):
            write_backup(tmp_path / "cut", received_files(io.BytesIO(archive[:end])), **FACTS)
    with (
        stopped_store(tmp_path / "live") as files,
        pytest.raises(BackupRefused, match="not empty"),
    ):
        write_backup(tmp_path / "live", files, **FACTS)
    with stopped_store(tmp_path / "live") as files:
        found = write_backup(tmp_path / "backup", files, **FACTS)
    name = max(found.files, key=lambda each: found.files[each].size)
    whole = (tmp_path / "backup" / name).read_bytes()
    (tmp_path / "backup" / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(BackupRefused, match=f"{name} is damaged"):
        restore_backup(tmp_path / "backup", tmp_path / "data")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup", "live", "mirrors"]
    with pytest.raises(NodeRefused, match="is not a data folder"):
        asyncio.run(Node.open(tmp_path / "backup"))


def test_folder_is_looked_at_before_the_server_is_asked(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    nobody = "http://127.0.0.1:1"
    told = CliRunner().invoke(app, ["backup", str(tmp_path), "--url", nobody])
    assert "not empty: name a new folder" in str(told.exception)
    told = CliRunner().invoke(app, ["backup", str(tmp_path / "new"), "--url", nobody])
    assert "cannot reach 127.0.0.1:1" in str(told.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def test_backups_are_for_admins_and_of_stores_with_files() -> None:
    with HttpDoor() as door:
        assert "in memory" in problem_of(door.client.post("/v1/backup"))["detail"]
    with HttpDoor(trust=False) as door:
        door.run(door.node.session().execute("CREATE USER ada PASSWORD 'secret-of-ada'"))
        answer = door.client.post("/v1/backup", auth=("ada", "secret-of-ada"))
        assert problem_of(answer)["sqlstate"] == "42501"
