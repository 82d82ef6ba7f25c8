"""FOR DATABASE: tables join a feed at their creation, and leave it when they are dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError


class DatabaseFeed:
    """A feed of a database into a mirror, or into files where `sink` says so."""

    def __init__(self, database: AsyncDatabase, job_id: int) -> None:
        self.database = database
        self.job_id = job_id

    @classmethod
    async def create(
        cls, database: AsyncDatabase, tables: str = "", sink: str = "duckdb:///m.duckdb"
    ) -> DatabaseFeed:
        created = await database.sql(
            f"CREATE CHANGEFEED FOR DATABASE defaultdb {tables} INTO '{sink}'"
        )
        job_id = created.fetchall()[0][0]
        assert isinstance(job_id, int)
        return cls(database, job_id)

    async def sql(self, text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in (await self.database.sql(text)).fetchall()]

    async def caught_up(self) -> None:
        async with asyncio.timeout(30):
            await self.sql(f"SELECT wait_for_changefeed({self.job_id})")

    async def shown(self, table: str) -> list[int]:
        """The keys that the mirror has of a table, when all that was committed is there."""
        await self.caught_up()
        found = await self.database.mirror("m.duckdb").sql(f"SELECT k FROM {table} ORDER BY k")
        return [row["k"] for row in found.to_pylist()]

    async def watched(self) -> str:
        shown = await self.sql(f"SHOW CHANGEFEED JOB {self.job_id} WITH WATCHED_TABLES")
        return str(shown[0][-1])

    async def description(self) -> str:
        return str((await self.sql(f"SHOW CHANGEFEED JOB {self.job_id}"))[0][1])


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await work(database)

    asyncio.run(whole())


def test_tables_join_at_their_creation_and_leave_when_dropped(tmp_path: Path) -> None:
    """Also into a database that has none: what was waited for is there as soon as it is told."""

    async def scenario(database: AsyncDatabase) -> None:
        feed = await DatabaseFeed.create(database)
        await feed.caught_up()
        for number in range(3):
            await feed.sql(f"CREATE TABLE t{number} (k INT8 PRIMARY KEY)")
            await feed.sql(f"INSERT INTO t{number} VALUES (1), (2)")
            assert await feed.shown(f"t{number}") == [1, 2]
        await feed.sql("CREATE TABLE copied AS SELECT k FROM t1")
        assert await feed.shown("copied") == [1, 2]
        await feed.sql("DROP TABLE t0")
        await feed.sql("INSERT INTO t2 VALUES (3)")
        assert await feed.shown("t2") == [1, 2, 3]
        await feed.sql("ALTER TABLE t1 RENAME TO renamed")
        await feed.sql("DELETE FROM renamed WHERE k = 1")
        await feed.caught_up()
        watched = await feed.watched()
        assert "t1 running" in watched and "t2 running" in watched and "t0 dropped" in watched
        assert "FOR DATABASE defaultdb INTO" in await feed.description()
        for table in ("t3", "t4"):
            await feed.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY)")
            await feed.caught_up()
        assert "t0" not in await feed.watched()  # its end is long behind the feed

    on_database(tmp_path, scenario)


def test_included_and_excluded_tables_are_told_by_name(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        for table in ("a", "b"):
            await database.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY)")
            await database.sql(f"INSERT INTO {table} VALUES (1)")
        included = await DatabaseFeed.create(
            database, "INCLUDE TABLES a, later", "nodelocal://self/included"
        )
        excluded = await DatabaseFeed.create(database, "EXCLUDE TABLES a, later")
        await database.sql("CREATE TABLE later (k INT8 PRIMARY KEY)")
        await database.sql("CREATE TABLE other (k INT8 PRIMARY KEY)")
        await included.caught_up()
        await excluded.caught_up()
        names = [await each.watched() for each in (included, excluded)]
        assert [word in names[0] for word in (".a ", ".b ", ".later ", ".other ")] == [
            True, False, True, False
        ]  # fmt: skip
        assert [word in names[1] for word in (".a ", ".b ", ".later ", ".other ")] == [
            False, True, False, True
        ]  # fmt: skip
        assert "INCLUDE TABLES defaultdb.public.a" in await included.description()
        await database.sql("ALTER TABLE later RENAME TO taken")  # with the rows that it has
        await database.sql("INSERT INTO taken VALUES (7)")
        assert await excluded.shown("taken") == [7]

    on_database(tmp_path, scenario)


def test_a_feed_of_a_database_is_altered(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE a (k INT8 PRIMARY KEY)")
        feed = await DatabaseFeed.create(database)
        await feed.sql(f"ALTER CHANGEFEED {feed.job_id} DROP a")
        await feed.sql("INSERT INTO a VALUES (1)")
        await feed.sql("ALTER TABLE a ADD COLUMN v INT8")  # no reason to come back
        await feed.sql("CREATE TABLE b (k INT8 PRIMARY KEY)")
        await feed.caught_up()
        assert "EXCLUDE TABLES defaultdb.public.a" in await feed.description()
        assert ".a " not in await feed.watched()
        await feed.sql(f"ALTER CHANGEFEED {feed.job_id} ADD a")
        async with asyncio.timeout(30):
            while "a running" not in await feed.watched():
                await feed.caught_up()
        assert await feed.shown("a") == [1]
        await feed.sql(f"PAUSE JOB {feed.job_id}")
        async with asyncio.timeout(30):
            while "'paused'" not in str(await feed.sql(f"SHOW JOB {feed.job_id}")):
                await asyncio.sleep(0.02)
        await feed.sql("CREATE TABLE c (k INT8 PRIMARY KEY)")
        await feed.sql("INSERT INTO c VALUES (5)")
        await feed.sql(f"RESUME JOB {feed.job_id}")
        assert await feed.shown("c") == [5]
        await database.sql("CREATE DATABASE elsewhere")
        await database.sql("CREATE TABLE elsewhere.public.d (k INT8 PRIMARY KEY)")
        with pytest.raises(SQLError, match="not in database"):
            await feed.sql(f"ALTER CHANGEFEED {feed.job_id} ADD elsewhere.public.d")

    on_database(tmp_path, scenario)


def test_a_table_that_cannot_join_stops_no_other(tmp_path: Path) -> None:
    """The mirror has another of its name, until that one is gone."""

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE DATABASE other")
        await database.sql("CREATE TABLE other.public.t (k INT8 PRIMARY KEY)")
        feed = await DatabaseFeed.create(database)
        await feed.caught_up()
        created = await database.sql(
            "CREATE CHANGEFEED FOR other.public.t INTO 'duckdb:///m.duckdb'"
        )
        ((taken,),) = created.fetchall()
        await database.sql("SELECT wait_for_changefeed($1)", [taken])
        await feed.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        await feed.sql("INSERT INTO t VALUES (1)")
        await feed.sql("CREATE TABLE more (k INT8 PRIMARY KEY)")
        await feed.sql("INSERT INTO more VALUES (2)")
        assert await feed.shown("more") == [2]
        assert "defaultdb.public.t failed" in await feed.watched()
        for action in ("RESUME", "RESCAN"):
            with pytest.raises(SQLError) as caught:
                await feed.sql(f"ALTER CHANGEFEED {feed.job_id} {action} TABLE t")
            assert caught.value.sqlstate == "55000"
        await feed.sql(f"CANCEL JOB {taken!s}")
        await feed.sql(f"SHOW JOBS WHEN COMPLETE {taken!s}")
        await feed.sql(f"ALTER CHANGEFEED {feed.job_id} RESUME TABLE t")
        async with asyncio.timeout(30):
            while "public.t running" not in await feed.watched():
                await feed.caught_up()
        assert await feed.shown("t") == [1]

    on_database(tmp_path, scenario)


def test_it_ends_with_its_database_and_with_its_owners_right(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE DATABASE shop")
        await database.sql("CREATE TABLE shop.public.t (k INT8 PRIMARY KEY)")
        await database.sql("CREATE USER ada WITH PASSWORD 'analytical engine'")
        create = "CREATE CHANGEFEED FOR DATABASE shop INTO 'null://'"
        async with database.session() as ada:
            await ada.sql("SET ROLE ada")
            with pytest.raises(SQLError) as caught:
                await ada.sql(create)
            assert caught.value.sqlstate == "42501"
            await database.sql("GRANT CHANGEFEED ON DATABASE shop TO ada")
            [(lost,)] = (await ada.sql(create)).fetchall()
        [(dropped,)] = (await database.sql(create)).fetchall()

        async def ends(job_id: object, why: str) -> None:
            async with asyncio.timeout(30):
                while True:
                    shown = await database.sql(f"SHOW JOB {job_id}")
                    if why in str(shown.fetchall()):
                        return
                    await asyncio.sleep(0.02)

        await database.sql("SELECT wait_for_changefeed($1)", [dropped])
        await database.sql("REVOKE CHANGEFEED ON DATABASE shop FROM ada")
        await ends(lost, "does not have CHANGEFEED privilege on database shop")
        await database.sql("DROP DATABASE shop CASCADE")
        await ends(dropped, 'database "shop" was dropped')

    on_database(tmp_path, scenario)


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("FOR DATABASE nothing INTO 'null://'", "3D000"),
        ("FOR DATABASE system INTO 'null://'", "0A000"),
        ("FOR DATABASE defaultdb", "0A000"),
        ("FOR DATABASE defaultdb INTO 'null://' WITH initial_scan = 'only'", "22023"),
        ("FOR DATABASE defaultdb INTO 'null://' WITH cursor = '1.0'", "22023"),
        ("FOR DATABASE defaultdb INCLUDE TABLES other.public.t INTO 'null://'", "22023"),
        ("FOR DATABASE defaultdb INCLUDE TABLES a EXCLUDE TABLES b INTO 'null://'", "42601"),
    ],
)
def test_what_no_feed_of_a_database_can_be(tmp_path: Path, statement: str, sqlstate: str) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        with pytest.raises(SQLError) as caught:
            await database.sql(f"CREATE CHANGEFEED {statement}")
        assert caught.value.sqlstate == sqlstate

    on_database(tmp_path, scenario)


@pytest.mark.parametrize("parameters", ["", "?apply=transaction", "?mode=both"])
def test_a_table_is_dropped_and_made_again_and_again(tmp_path: Path, parameters: str) -> None:
    """Several of one name arrive at once, and the mirror has but one place: each joins when the
    feed has passed the end of the one before it."""

    async def scenario(database: AsyncDatabase) -> None:
        feed = await DatabaseFeed.create(database, sink=f"duckdb:///m.duckdb{parameters}")
        await feed.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        await feed.caught_up()
        await feed.sql(f"PAUSE JOB {feed.job_id}")
        async with asyncio.timeout(30):
            while "'paused'" not in str(await feed.sql(f"SHOW JOB {feed.job_id}")):
                await asyncio.sleep(0.02)
        for number in range(3):
            await feed.sql("DROP TABLE t")
            await feed.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            await feed.sql(f"INSERT INTO t VALUES ({number})")
        await feed.sql(f"RESUME JOB {feed.job_id}")
        assert await feed.shown("t") == [2]
        await feed.sql("INSERT INTO t VALUES (7)")
        assert await feed.shown("t") == [2, 7]
        assert "failed" not in await feed.watched()

    on_database(tmp_path, scenario)


def test_a_table_whose_name_a_renamed_one_has_cannot_join(tmp_path: Path) -> None:
    """Both arrive under that name at once, and the second is not the end of the feed."""

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE other (k INT8 PRIMARY KEY)")
        feed = await DatabaseFeed.create(database)
        await feed.caught_up()
        await feed.sql(f"PAUSE JOB {feed.job_id}")
        async with asyncio.timeout(30):
            while "'paused'" not in str(await feed.sql(f"SHOW JOB {feed.job_id}")):
                await asyncio.sleep(0.02)
        await feed.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        await feed.sql("INSERT INTO t VALUES (1)")
        await feed.sql("ALTER TABLE t RENAME TO renamed")
        await feed.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        await feed.sql(f"RESUME JOB {feed.job_id}")
        assert await feed.shown("t") == [1]
        await feed.sql("INSERT INTO other VALUES (5)")
        assert await feed.shown("other") == [5]
        watched = await feed.watched()
        assert "defaultdb.public.t of the same feed has its place at the sink" in watched

    on_database(tmp_path, scenario)
