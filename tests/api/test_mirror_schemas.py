"""Mirrors whose tables are in a schema of their own: several feeds share one file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import duckdb
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError
from tests.harness.by_hand import by_hand
from tests.harness.pg_door import WireError, pg_door

MIRROR = "duckdb:///m.duckdb"


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await database.sql("CREATE TABLE orders (k INT8 PRIMARY KEY, v STRING)")
            await database.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
            await work(database)

    asyncio.run(whole())


async def feed(database: AsyncDatabase, into: str, options: str = "", table: str = "orders") -> int:
    created = await database.sql(f"CREATE CHANGEFEED FOR {table} INTO '{into}' {options}")
    ((job_id,),) = created.fetchall()
    assert isinstance(job_id, int)
    return job_id


async def read(database: AsyncDatabase, job_id: int, query: str) -> list[tuple[object, ...]]:
    await database.sql("SELECT wait_for_changefeed($1)", [job_id])
    found = await database.mirror(MIRROR).sql(query)
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.parametrize("apply", ["row", "transaction"])
def test_feeds_share_a_file_under_schemas(tmp_path: Path, apply: str) -> None:
    """Renames, backfills, another primary key and a truncation stay in each one's schema."""

    async def work(database: AsyncDatabase) -> None:
        uri = f"{MIRROR}?apply={apply}"
        shop = await feed(database, uri, "WITH schema = 'shop'")
        odd = await feed(database, f"{uri}&table=o%22rders", """WITH schema = 'Der "Laden"'""")
        main = await feed(database, uri, "WITH schema = 'MAIN'")
        await database.sql("UPDATE orders SET v = 'c' WHERE k = 2")
        everywhere = {shop: "shop.orders", main: "main.orders", odd: '"Der ""Laden""."o""rders"'}
        everywhere[odd] = '"Der ""Laden"""."o""rders"'
        for job_id, name in everywhere.items():
            rows = await read(database, job_id, f"SELECT * FROM {name} ORDER BY k")
            assert rows == [(1, "a"), (2, "c")], name
        await database.sql("ALTER TABLE orders ADD COLUMN n INT8 DEFAULT 7")
        await database.sql("ALTER TABLE orders ADD COLUMN u UUID DEFAULT gen_random_uuid()")
        await database.sql("ALTER TABLE orders RENAME COLUMN v TO w")
        await database.sql("ALTER TABLE orders ALTER COLUMN w SET NOT NULL")
        await database.sql("ALTER TABLE orders ALTER PRIMARY KEY USING COLUMNS (w)")
        await database.sql("ALTER TABLE orders RENAME TO bills")
        for job_id, name in everywhere.items():
            rows = await read(database, job_id, f"SELECT k, w, n FROM {name} ORDER BY k")
            assert rows == [(1, "a", 7), (2, "c", 7)], name
        await database.sql("TRUNCATE bills")
        await database.sql("INSERT INTO bills (k, w) VALUES (5, 'e')")
        for job_id, name in everywhere.items():
            assert await read(database, job_id, f"SELECT k, w, n FROM {name}") == [(5, "e", 7)]
        found = await database.node.mirrors.tables(MIRROR)
        assert sorted(found) == ['Der "Laden".o"rders', "orders", "shop.orders"]
        schemas = "SELECT DISTINCT schema_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        assert await read(database, shop, schemas) == [('Der "Laden"',), ("main",), ("shop",)]

    on_database(tmp_path, work)


def test_a_schema_is_free_when_its_feed_is_canceled(tmp_path: Path) -> None:
    async def work(database: AsyncDatabase) -> None:
        options = "WITH schema = 'shop'"
        first = await feed(database, MIRROR, options)
        for uri, schema in ((MIRROR, "SHOP"), (f"{MIRROR}?schema=shop", "shop")):
            with pytest.raises(SQLError) as taken:
                await feed(database, uri, f"WITH schema = '{schema}'")
            assert taken.value.sqlstate == "55000"
            assert "shop.orders" in taken.value.message.lower()
        await read(database, first, "FROM shop.orders")
        with pytest.raises(SQLError, match="cannot be altered") as fixed:
            await database.sql(f"ALTER CHANGEFEED {first} SET schema = 'other'")
        assert fixed.value.sqlstate == "22023"
        await database.sql("CREATE TABLE more (k INT8 PRIMARY KEY)")
        await database.sql("INSERT INTO more VALUES (7)")
        await database.sql(f"ALTER CHANGEFEED {first} ADD more")
        shown = "SELECT 1 FROM duckdb_views() WHERE schema_name = 'shop' AND view_name = 'more'"
        async with asyncio.timeout(30):
            while not await read(database, first, shown):
                await asyncio.sleep(0.01)
        await database.sql(f"ALTER CHANGEFEED {first} DROP more")
        await database.sql(f"CANCEL JOB {first}")
        await database.node.jobs.wait(first, JobState.CANCELED, timeout=30)
        await database.sql("DELETE FROM orders WHERE k = 1")
        second = await feed(database, MIRROR, options, "orders, more")
        assert await read(database, second, "FROM shop.orders") == [(2, "b")]
        assert await read(database, second, "FROM shop.more") == [(7,)]

    on_database(tmp_path, work)


def test_logs_and_verification_know_the_schema(tmp_path: Path) -> None:
    async def work(database: AsyncDatabase) -> None:
        job_id = await feed(database, f"{MIRROR}?mode=both", "WITH schema = 'shop'")
        await database.sql("UPDATE orders SET v = 'c' WHERE k = 2")
        operations = "SELECT operation, after->>'v' FROM shop.orders_log ORDER BY commit_timestamp"
        assert await read(database, job_id, operations) == [
            ("scan", "a"), ("scan", "b"), ("update", "c"),
        ]  # fmt: skip
        async with by_hand(database, tmp_path / "data" / "mirrors" / "m.duckdb") as cursor:
            [[base]] = cursor.execute("SELECT base_table FROM _tailrace.mirrors").fetchall()
            cursor.execute(f"UPDATE _tailrace.{base} SET c2 = 'by hand' WHERE c1 = 1")
        assert await read(database, job_id, "SELECT v FROM shop.orders WHERE k = 1") == [
            ("by hand",)
        ]
        found = (await database.sql(f"VERIFY CHANGEFEED {job_id} REPAIR")).fetchall()
        assert len(found) > 0
        assert await read(database, job_id, "SELECT v FROM shop.orders WHERE k = 1") == [("a",)]

    on_database(tmp_path, work)


def test_a_program_opens_the_schema_in_its_own_duckdb(tmp_path: Path) -> None:
    """Also the published copy, whose file has another name."""

    async def work(database: AsyncDatabase) -> None:
        job_id = await feed(database, MIRROR, "WITH schema = 'shop', publish = '1s'")
        await read(database, job_id, "FROM shop.orders")
        copy = tmp_path / "data" / "mirrors" / "m.published.duckdb"

        def published() -> list[tuple[int, str]]:
            if not copy.exists():
                return []
            with duckdb.connect(str(copy), read_only=True) as opened:
                return opened.execute("FROM shop.orders ORDER BY k").fetchall()

        async with asyncio.timeout(30):
            while published() != [
                (1, "a"),
                (2, "b"),
            ]:  # an earlier copy may be from before the scan
                await asyncio.sleep(0.05)

    on_database(tmp_path, work)


@pytest.mark.parametrize(
    "schema", ["_tailrace", "information_schema", "PG_CATALOG", "temp", "M", "a\tb", "x" * 256]
)
def test_a_name_that_duckdb_or_the_mirror_has_is_refused(tmp_path: Path, schema: str) -> None:
    async def work(database: AsyncDatabase) -> None:
        with pytest.raises(SQLError) as refused:
            await feed(database, MIRROR, f"WITH schema = e'{schema}'")
        assert refused.value.sqlstate == "22023"
        assert "schema" in str(refused.value.hint)
        with pytest.raises(SQLError, match="no effect"):
            await feed(database, "nodelocal://self/files", f"WITH schema = e'{schema}'")

    on_database(tmp_path, work)


def test_a_connection_that_moves_keeps_the_schema(tmp_path: Path) -> None:
    async def work(database: AsyncDatabase) -> None:
        await database.sql("CREATE EXTERNAL CONNECTION mirror AS 'duckdb:///old.duckdb'")
        job_id = await feed(database, "external://mirror", "WITH schema = 'shop'")
        await database.sql(f"ALTER EXTERNAL CONNECTION mirror AS '{MIRROR}'")
        async with asyncio.timeout(30):
            while not (tmp_path / "data" / "mirrors" / "m.duckdb").exists():
                await asyncio.sleep(0.01)
        assert await read(database, job_id, "FROM shop.orders ORDER BY k") == [(1, "a"), (2, "b")]

    on_database(tmp_path, work)


def test_the_postgres_door_reads_a_schema_by_the_readers_rights() -> None:
    async def whole() -> None:
        async with pg_door() as door:
            session = door.node.session()
            await session.execute(
                "CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING);"
                "INSERT INTO orders VALUES (1, 'first');"
                "CREATE CHANGEFEED FOR orders INTO 'duckdb:///m.duckdb' WITH schema = 'shop';"
                "CREATE USER ada; CREATE USER bob; GRANT SELECT ON orders TO ada"
            )
            await session.close()
            await asyncio.wait_for(door.node.wait_for_mirror("m.duckdb", None), 20)
            ada = await door.client(user="ada", database="mirror:m")
            assert await ada.query("SELECT note FROM shop.orders") == [("first",)]
            tables = "SELECT table_schema, table_name FROM information_schema.tables"
            listed = await ada.query(f"{tables} WHERE table_schema = 'shop'")
            assert listed == [("shop", "orders")]
            bob = await door.connect()
            bob.startup(user="bob", database="mirror:m")
            kind, body = await bob.frame()
            while kind != b"E":
                kind, body = await bob.frame()
            assert WireError(body).sqlstate == "42501"

    asyncio.run(whole())


def test_show_tells_where_the_tables_are(tmp_path: Path) -> None:
    async def work(database: AsyncDatabase) -> None:
        await feed(database, MIRROR, "WITH schema = 'shop'")
        jobs = "SELECT sink_uri, description FROM [SHOW CHANGEFEED JOBS]"
        ((sink, description),) = (await database.sql(jobs)).fetchall()
        assert sink == f"{MIRROR}?schema=shop"
        assert "schema" in json.dumps(description)
        explained = await database.sql(
            f"EXPLAIN CHANGEFEED FOR orders INTO '{MIRROR}' WITH schema = 'eu'"
        )
        assert "schema=eu" in str(explained.fetchall())

    on_database(tmp_path, work)
