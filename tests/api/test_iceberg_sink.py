"""Changefeeds into Iceberg tables, through SQL: read back by pyiceberg's own scan, over schema
changes and restarts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the library's own dependencies

OFTEN = "WITH min_checkpoint_frequency = '50ms'"


@asynccontextmanager
async def store(path: Path) -> AsyncIterator[AsyncDatabase]:
    database = await aopen(path / "data")
    try:
        yield database
    finally:
        await database.close()


async def create(database: AsyncDatabase, statement: str) -> int:
    ((job_id,),) = (await database.sql(statement)).fetchall()
    assert isinstance(job_id, int)
    return job_id


async def caught_up(database: AsyncDatabase, job_id: int) -> None:
    async with asyncio.timeout(60):
        await database.feed(job_id).wait_until(await database.node.store.now())


def rows(path: Path, name: str) -> list[dict[str, Any]]:
    """In the order of their timestamps."""
    lake = path / "data" / "mirrors" / "lake"
    catalog = SqlCatalog("default", uri=f"sqlite:///{lake}/catalog.db", warehouse=lake.as_uri())
    try:
        found = catalog.load_table(name).scan().to_arrow().to_pylist()
    finally:
        catalog.close()
    return sorted(found, key=lambda row: row["_commit_timestamp"])


def test_iceberg_tables_have_every_change_over_schema_changes_and_restarts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING, tag INT2[])")
            await database.sql("CREATE TABLE refunds (k UUID PRIMARY KEY, at TIMESTAMPTZ)")
            await database.sql("INSERT INTO orders VALUES (1, 'a', ARRAY[1, NULL])")
            job_id = await create(
                database, f"CREATE CHANGEFEED FOR orders, refunds INTO 'iceberg:///lake' {OFTEN}"
            )
            await caught_up(database, job_id)
            await database.sql("UPDATE orders SET name = 'b' WHERE k = 1")
            await database.sql("ALTER TABLE orders ADD COLUMN total INT")
            await database.sql("ALTER TABLE orders DROP COLUMN tag")
            await caught_up(database, job_id)
        async with store(tmp_path) as database:
            await database.sql("UPDATE orders SET total = 7 WHERE k = 1")
            await database.sql("DELETE FROM orders WHERE k = 1")
            await database.sql(
                "INSERT INTO refunds VALUES ('00000000-0000-0000-0000-000000000001', '2026-01-01Z')"
            )
            await caught_up(database, job_id)
        shown = [
            (row["_op"], row["name"], row["tag"], row["total"])
            for row in rows(tmp_path, "default.orders")
        ]
        assert shown == [
            ("upsert", "a", [1, None], None),
            ("upsert", "b", [1, None], None),
            ("upsert", "b", None, None),  # the column that went: the row is shown again
            ("upsert", "b", None, 7),
            ("delete", None, None, None),
        ]
        (refund,) = rows(tmp_path, "default.refunds")
        assert refund["k"] == "00000000-0000-0000-0000-000000000001" and refund["at"].year == 2026

    asyncio.run(scenario())


def test_a_column_of_another_type_stops_the_feed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, v INT)")
            await database.sql("INSERT INTO orders VALUES (1, 1)")
            job_id = await create(
                database, f"CREATE CHANGEFEED FOR orders INTO 'iceberg:///lake' {OFTEN}"
            )
            await caught_up(database, job_id)
            await database.sql("ALTER TABLE orders ALTER COLUMN v TYPE STRING USING v::STRING")
            async with asyncio.timeout(60):
                while "failed" not in (
                    told := str((await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall())
                ):
                    await asyncio.sleep(0.05)
            assert "column v was int64 and is string now" in told

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("uri", "sqlstate"),
    [
        ("iceberg:////etc/lake", "42501"),
        ("iceberg://host/lake", "22023"),
        ("iceberg:///lake?mode=mirror", "0A000"),
        ("iceberg:///lake?namespace=a.b", "22023"),
        ("iceberg:///taken", "58030"),
        ("iceberg:///garbage", "58030"),
    ],
)
def test_what_cannot_be_an_iceberg_table_is_refused(
    tmp_path: Path, uri: str, sqlstate: str
) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            garbage = tmp_path / "data" / "mirrors" / "garbage"
            garbage.mkdir(parents=True)
            (garbage / "catalog.db").write_text("no catalog" * 1000)
            folder = tmp_path / "data" / "mirrors" / "taken"
            folder.mkdir(parents=True)
            catalog = SqlCatalog(
                "default", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri()
            )
            catalog.create_namespace("default")
            catalog.create_table("default.orders", schema=pa.schema([("k", pa.int64())]))
            catalog.close()
            with pytest.raises(SQLError) as told:
                await create(database, f"CREATE CHANGEFEED FOR orders INTO '{uri}'")
            assert told.value.sqlstate == sqlstate

    asyncio.run(scenario())


def test_the_documents_commands_run(tmp_path: Path) -> None:
    """Those of docs/sinks.md, word for word."""
    text = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text()
    (command,) = re.findall(r"```sql\n(CREATE CHANGEFEED[^`]*'iceberg:[^`]*)```", text)
    (reader,) = re.findall(r"```python\n([^`]*pyiceberg[^`]*)```", text)

    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            await database.sql("CREATE TABLE refunds (k INT PRIMARY KEY)")
            await database.sql("INSERT INTO orders VALUES (1)")
            await caught_up(database, await create(database, command))
        lake = tmp_path / "data" / "mirrors" / "lake"
        found: dict[str, Any] = {}
        exec(reader.replace("/data/mirrors/lake", str(lake)), found)
        assert found["orders"]["k"].to_pylist() == [1]

    asyncio.run(scenario())


def test_tables_lie_in_the_folder_that_was_named(tmp_path: Path) -> None:
    """Also where a URL would write its name otherwise."""

    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            await database.sql("INSERT INTO orders VALUES (1)")
            create_feed = f"CREATE CHANGEFEED FOR orders INTO 'iceberg:///l%C3%A4 %25' {OFTEN}"
            await caught_up(database, await create(database, create_feed))
        mirrors = tmp_path / "data" / "mirrors"
        assert [found.name for found in mirrors.iterdir()] == ["lä %"]
        assert list((mirrors / "lä %" / "default" / "orders" / "data").glob("*.parquet"))

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["what?", "#1", "line\nbreak", "dot.dot", "sl/ash"])
def test_names_that_a_location_cannot_have_are_refused(tmp_path: Path, name: str) -> None:
    """A feed into one would try for ever, or share its folder with another."""

    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql(f'CREATE TABLE "{name}" (k INT PRIMARY KEY)')
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            with pytest.raises(SQLError) as caught:
                await create(database, f"CREATE CHANGEFEED FOR \"{name}\" INTO 'iceberg:///lake'")
            assert caught.value.sqlstate == "0A000"
            if "." not in name and "/" not in name:
                place = f"iceberg:///{quote(name)}"
                with pytest.raises(SQLError) as caught:
                    await create(database, f"CREATE CHANGEFEED FOR orders INTO '{place}'")
                assert caught.value.sqlstate == "22023"

    asyncio.run(scenario())


def test_a_table_that_is_made_again_begins_its_iceberg_table_anew(tmp_path: Path) -> None:
    """Also with columns of other types, under the old names."""

    async def scenario() -> None:
        async with store(tmp_path) as database:
            job_id = await create(
                database, f"CREATE CHANGEFEED FOR DATABASE defaultdb INTO 'iceberg:///lake' {OFTEN}"
            )
            await database.sql("CREATE TABLE t (k INT PRIMARY KEY, v STRING, gone INT)")
            await database.sql("INSERT INTO t VALUES (1, 'a', 1)")
            await caught_up(database, job_id)
            await database.sql("DROP TABLE t")
            await database.sql("CREATE TABLE t (k STRING PRIMARY KEY, v INT)")
            await database.sql("INSERT INTO t VALUES ('b', 2)")
            await caught_up(database, job_id)
        async with store(tmp_path) as database:
            await database.sql("INSERT INTO t VALUES ('c', 3)")
            await caught_up(database, job_id)
        found = rows(tmp_path, "default.t")
        assert [(row["k"], row["v"]) for row in found] == [("b", 2), ("c", 3)]
        assert set(found[0]) == {"k", "v", "_op", "_commit_timestamp"}

    asyncio.run(scenario())
