"""BACKUP and RESTORE KEYSPACE: the entries of a keyspace in a folder, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.api.keyspaces import AsyncKeyspace
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp, duration, format_timestamp, parse_timestamp
from tailrace.kvlayer.raw import keyspace_span, raw_key
from tailrace.kvlayer.store import Store


class Bench:
    """A store, a keyspace `ks` in it, and the folder of a backup."""

    def __init__(self, database: AsyncDatabase, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.keyspace = AsyncKeyspace(database.node, "ks")

    async def rows(self, text: str) -> Sequence[tuple[object, ...]]:
        return (await self.database.sql(text)).fetchall()

    async def back_up(self, clauses: str = "", folder: str = "b") -> Timestamp:
        ((checkpoint, *_),) = await self.rows(
            f"BACKUP KEYSPACE ks INTO 'file:///{folder}' {clauses}"
        )
        return parse_timestamp(str(checkpoint))

    async def content(self, name: str, at: Timestamp | None = None) -> dict[bytes, bytes]:
        scan = AsyncKeyspace(self.database.node, name).scan(at=at)
        return {key: value async for key, value in scan}

    async def refused(self, text: str) -> SQLError:
        with pytest.raises(SQLError) as caught:
            await self.database.sql(text)
        return caught.value


@asynccontextmanager
async def bench(path: Path) -> AsyncIterator[Bench]:
    database = await aopen(path / "data")
    try:
        await database.sql("CREATE KEYSPACE ks WITH (ttl = '1h')")
        yield Bench(database, path / "data" / "mirrors" / "b")
    finally:
        await database.close()


def test_a_restored_keyspace_is_the_one_that_was_backed_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as on:
            await on.keyspace.put_many([(b"%04d" % i, b"old") for i in range(3000)])
            await on.keyspace.delete_range(b"0100", b"0200")
            brief = await on.keyspace.put(b"brief", b"1", ttl_seconds=1)
            long = await on.keyspace.put(b"long", b"1", ttl_seconds=60)
            (found,) = await on.rows("SHOW KEYSPACES")
            store, keyspace_id = on.database.node.store, found[2]
            assert isinstance(store, Store)
            assert isinstance(keyspace_id, int)
            await store.split(raw_key(keyspace_id, b"1500"))
            at = await on.back_up()
            await on.keyspace.put_many([(b"0001", b"new"), (b"more", b"new")])
            manifest = json.loads((on.folder / "BACKUP.json").read_text())["manifest"]
            assert (manifest["upto"], manifest["after"]) == (at, 0)
            files = [on.folder / file["name"] for file in manifest["files"]]
            assert len(files) == 2
            table = pq.read_table(files[1]).to_pylist()
            (row,) = [row for row in table if row["key"] == b"long"]
            assert (row["timestamp"], row["expires_at"]) == (long, long + duration(seconds=60))

            restored = await on.rows("RESTORE KEYSPACE again FROM 'file:///b'")
            assert restored == [(format_timestamp(at), 2902, 2)]
            assert await on.content("again", at) == await on.content("ks", at)
            assert b"brief" in await on.content("again", Timestamp(brief + 1))
            again = AsyncKeyspace(on.database.node, "again")
            assert await again.put(b"0001", b"mine") > at
            assert await again.get(b"0001") == b"mine"
            (listed,) = [row for row in await on.rows("SHOW KEYSPACES") if row[1] == "again"]
            assert listed[3:5] == (3600, "main")

    asyncio.run(main())


def test_the_past_is_backed_up_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as on:
            at = await on.keyspace.put(b"a", b"1")
            await on.keyspace.delete(b"a")
            assert await on.back_up(f"AS OF SYSTEM TIME '{format_timestamp(at)}'") == at
            await on.database.sql("RESTORE KEYSPACE again FROM 'file:///b'")
            assert await on.content("again") == {b"a": b"1"}
            late = await on.refused("BACKUP KEYSPACE ks INTO 'file:///c' AS OF SYSTEM TIME '-9h'")
            assert late.sqlstate == "42P01"
            (found,) = [row for row in await on.rows("SHOW KEYSPACES") if row[1] == "ks"]
            assert on.database.node.served is not None
            assert isinstance(found[2], int)
            now = await on.database.node.store.now()
            await on.database.node.served.collect_garbage(keyspace_span(found[2]), now)
            gone = f"BACKUP KEYSPACE ks INTO 'file:///c' AS OF SYSTEM TIME '{format_timestamp(at)}'"
            assert (await on.refused(gone)).sqlstate == "22023"

    asyncio.run(main())


def test_a_replica_is_restored_as_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as on:
            await on.keyspace.put(b"a", b"1")
            at = await on.back_up()
            await on.database.sql("RESTORE KEYSPACE copy FROM 'file:///b' WITH (role = 'replica')")
            (listed,) = [row for row in await on.rows("SHOW KEYSPACES") if row[1] == "copy"]
            assert listed[4:] == ("replica", format_timestamp(at))
            copy = AsyncKeyspace(on.database.node, "copy")
            with pytest.raises(SQLError, match="no other writes"):
                await copy.put(b"a", b"2")
            assert await on.rows("BACKUP KEYSPACE copy INTO 'file:///c'") == [
                (format_timestamp(at), 1, 1)
            ]

    asyncio.run(main())


@pytest.mark.parametrize("name", ["BACKUP.json", "0001.parquet"])
def test_a_flipped_byte_is_refused_by_name(tmp_path: Path, name: str) -> None:
    async def main() -> None:
        async with bench(tmp_path) as on:
            await on.keyspace.put_many([(b"%d" % i, b"v") for i in range(50)])
            await on.back_up()
            path = on.folder / name
            content = bytearray(path.read_bytes())
            for place in (len(content) // 3, len(content) - 9):
                content[place] ^= 0x04
                path.write_bytes(bytes(content))
                error = await on.refused("RESTORE KEYSPACE again FROM 'file:///b'")
                assert (error.sqlstate, str(path) in error.message) == ("58030", True), error
                content[place] ^= 0x04
            assert len(await on.rows("SHOW KEYSPACES")) == 1
            path.unlink()
            assert str(on.folder) in (await on.refused(RESTORE)).message

    asyncio.run(main())


def test_a_backup_that_a_crash_cut_off_is_begun_anew(tmp_path: Path) -> None:
    """Whatever it had written: the manifest was not in its place yet."""

    async def main() -> None:
        async with bench(tmp_path) as on:
            await on.keyspace.put(b"a", b"1")
            on.folder.mkdir(parents=True)
            for name in ("0001.parquet", "0002.parquet", "BACKUP.json.new"):
                (on.folder / name).write_bytes(b"cut off")
            await on.back_up()
            assert {file.name for file in on.folder.iterdir()} == {"0001.parquet", "BACKUP.json"}

    asyncio.run(main())


RESTORE = "RESTORE KEYSPACE again FROM 'file:///b'"


def test_bad_backups_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as on:
            await on.keyspace.put(b"a", b"1")
            await on.back_up()
            refusals = {
                "BACKUP KEYSPACE ks INTO 'file:///b'": "is not empty",
                "BACKUP KEYSPACE nosuch INTO 'file:///c'": "does not exist",
                "BACKUP KEYSPACE ks INTO 'null://'": "a folder of this node",
                "RESTORE KEYSPACE ks FROM 'file:///b'": "already exists",
                "RESTORE KEYSPACE again FROM 'file:///c'": "is no backup",
                f"{RESTORE} WITH (role = 'x')": "not known",
            }
            for text, words in refusals.items():
                assert words in (await on.refused(text)).message, text
            assert (
                "BACKUP" in (await on.refused("BEGIN; BACKUP KEYSPACE ks INTO 'file:///c'")).message
            )

    asyncio.run(main())


def test_a_restored_keyspace_is_its_restorers_and_is_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as ks:
            for text in (
                "CREATE USER ada",
                "GRANT SELECT ON ks TO ada",
                "GRANT CREATE ON SCHEMA public TO ada",
                "SET CLUSTER SETTING sql.keyspaces.max_per_user = 1",
            ):
                await ks.database.sql(text)
            session = ks.database.node.session(user="ada")
            await session.execute("BACKUP KEYSPACE ks INTO 'file:///b'")
            await session.execute("RESTORE KEYSPACE mine FROM 'file:///b'")
            with pytest.raises(SQLError) as caught:
                await session.execute("RESTORE KEYSPACE more FROM 'file:///b'")
            assert caught.value.sqlstate == "53400"
            await session.execute("DROP KEYSPACE mine")
            await session.execute("RESTORE KEYSPACE more FROM 'file:///b'")
            await session.close()

    asyncio.run(main())
