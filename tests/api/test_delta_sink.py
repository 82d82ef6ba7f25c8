"""Changefeeds into Delta tables, through SQL: read back without delta-rs, over schema changes and
restarts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from deltalake import DeltaTable

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tests.harness import delta_reader


@asynccontextmanager
async def store(path: Path) -> AsyncIterator[AsyncDatabase]:
    database = await aopen(path / "data")
    try:
        yield database
    finally:
        await database.close()


async def create(database: AsyncDatabase, rest: str) -> int:
    ((job_id,),) = (await database.sql(f"CREATE CHANGEFEED FOR {rest}")).fetchall()
    assert isinstance(job_id, int)
    return job_id


async def caught_up(database: AsyncDatabase, job_id: int) -> None:
    async with asyncio.timeout(30):
        await database.feed(job_id).wait_until(await database.node.store.now())


def test_a_delta_table_has_every_change_over_schema_changes_and_restarts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING, tag STRING)")
            await database.sql("INSERT INTO orders VALUES (1, 'a', 'x')")
            job_id = await create(database, "orders INTO 'delta:///lake'")
            await caught_up(database, job_id)
            await database.sql("UPDATE orders SET name = 'b' WHERE k = 1")
            await database.sql("ALTER TABLE orders ADD COLUMN total INT")
            await database.sql("ALTER TABLE orders DROP COLUMN tag")
            await caught_up(database, job_id)
        async with store(tmp_path) as database:
            await database.sql("UPDATE orders SET total = 7 WHERE k = 1")
            await database.sql("DELETE FROM orders WHERE k = 1")
            await caught_up(database, job_id)
        rows = sorted(
            delta_reader.rows(tmp_path / "data" / "mirrors" / "lake"),
            key=lambda row: row["_commit_timestamp"],
        )
        shown = [(row["_op"], row["name"], row.get("tag"), row.get("total")) for row in rows]
        assert shown == [
            ("upsert", "a", "x", None),
            ("upsert", "b", "x", None),
            ("upsert", "b", None, None),  # the column that went: the row is shown again
            ("upsert", "b", None, 7),
            ("delete", None, None, None),
        ]

    asyncio.run(scenario())


def test_a_column_of_another_type_stops_the_feed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, v INT)")
            await database.sql("INSERT INTO orders VALUES (1, 1)")
            every = "WITH min_checkpoint_frequency = '50ms'"
            job_id = await create(database, f"orders INTO 'delta:///lake' {every}")
            await caught_up(database, job_id)
            await database.sql("ALTER TABLE orders ALTER COLUMN v TYPE STRING USING v::STRING")
            async with asyncio.timeout(30):
                while "failed" not in (
                    told := str((await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall())
                ):
                    await asyncio.sleep(0.05)
            assert "column v was" in told and "long" in told

    asyncio.run(scenario())


def test_a_scan_alone_is_one_commit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, v STRING)")
            await database.sql(
                "INSERT INTO orders SELECT i, 'v' FROM generate_series(1, 5000) g(i)"
            )
            job_id = await create(
                database, "orders INTO 'delta:///lake' WITH initial_scan = 'only'"
            )
            async with asyncio.timeout(30):
                while "succeeded" not in str(
                    (await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall()
                ):
                    await asyncio.sleep(0.02)
            (rows,) = delta_reader.commits(tmp_path / "data" / "mirrors" / "lake")
            assert sorted(row["k"] for row in rows) == list(range(1, 5001))

    asyncio.run(scenario())


OFTEN = "WITH min_checkpoint_frequency = '50ms'"

CHANGES = [
    "ALTER TABLE items ADD COLUMN stock INT8 DEFAULT 7",
    "ALTER TABLE items ADD COLUMN note STRING",
    "ALTER TABLE items RENAME COLUMN name TO title",
    "INSERT INTO items (id, title, price, mood) VALUES (901, 'new', 1, 'ok')",
    "ALTER TABLE items ALTER COLUMN price TYPE STRING",
    "ALTER TABLE items DROP COLUMN stock",
    "ALTER TABLE items ADD COLUMN twice INT8 AS (id * 2) STORED",
    "ALTER TABLE items ALTER COLUMN title SET NOT NULL",
    "ALTER TABLE items ALTER PRIMARY KEY USING COLUMNS (title, id)",
    "UPDATE items SET mood = 'sad' WHERE id < 5",
    "DELETE FROM items WHERE id = 7",
    "TRUNCATE items",
    "INSERT INTO items (id, title, mood) VALUES (1, 'again', 'sad')",
]


async def source(database: AsyncDatabase, table: str) -> list[dict[str, object]]:
    found = (await database.sql(f"SELECT * FROM {table}")).arrow().to_pylist()
    return sorted(found, key=str)


def mirrored(path: Path) -> list[dict[str, object]]:
    """A mirror's rows by delta-rs."""
    found = DeltaTable(str(path)).to_pyarrow_table().drop_columns("_commit_timestamp")
    return sorted(found.to_pylist(), key=str)


def test_a_mirror_equals_its_table_behind_every_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            await database.sql(
                "CREATE TABLE items (id INT8 PRIMARY KEY, name STRING, price INT8, mood mood)"
            )
            await database.sql(
                "INSERT INTO items SELECT i, 'n' || i, i, 'ok' FROM generate_series(1, 300) g(i)"
            )
            job_id = await create(database, "items INTO 'delta:///lake?mode=mirror'")
            for change in CHANGES:
                await database.sql(change)
                await caught_up(database, job_id)
                path = tmp_path / "data" / "mirrors" / "lake"
                assert mirrored(path) == await source(database, "items"), change

    asyncio.run(scenario())


def test_several_tables_come_and_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "data" / "mirrors" / "lake"
        async with store(tmp_path) as database:
            for name in ("a", "b", "c"):
                await database.sql(f"CREATE TABLE {name} (k INT PRIMARY KEY, v STRING)")
                await database.sql(f"INSERT INTO {name} VALUES (1, '{name}')")
            job_id = await create(database, f"a, b INTO 'delta:///lake/?mode=mirror' {OFTEN}")
            await caught_up(database, job_id)
            assert mirrored(path / "a") == [{"k": 1, "v": "a"}]
            await database.sql(f"ALTER CHANGEFEED {job_id} ADD c DROP a")
            await database.sql("INSERT INTO a VALUES (2, 'unseen')")
            await database.sql("ALTER TABLE b RENAME TO renamed")
            await database.sql("INSERT INTO renamed VALUES (2, 'later')")
            await caught_up(database, job_id)
        async with store(tmp_path) as database:
            await database.sql(f"ALTER CHANGEFEED {job_id} ADD a")
            await database.sql("DELETE FROM renamed WHERE k = 1")
            async with asyncio.timeout(30):
                while mirrored(path / "a") != await source(database, "a"):
                    await asyncio.sleep(0.05)
            await caught_up(database, job_id)
            assert mirrored(path / "b") == [{"k": 2, "v": "later"}]
            assert mirrored(path / "c") == [{"k": 1, "v": "c"}]
        assert sorted(each.name for each in path.iterdir()) == ["a", "b", "c"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("rest", "sqlstate"),
    [
        ("orders INTO 'delta:////etc/lake'", "42501"),
        ("orders INTO 'delta:///lake?mode=log&mode=mirror'", "22023"),
        ("orders INTO 'delta://host/lake'", "22023"),
        ("orders INTO 'delta:///lake?mode=both'", "22023"),
        ("orders INTO 'delta:///lake' WITH updated", "22023"),
        ("orders, others INTO 'delta:///lake'", "0A000"),
        ("\"od/d\", orders INTO 'delta:///lake/'", "0A000"),
        ("others INTO 'delta:///lake'", "42701"),
        ("orders INTO 'delta:///taken/inside'", "58030"),
        ("orders INTO 'delta:///taken/inside/'", "58030"),
        ("orders INTO 'file:///taken/inside'", "58030"),
    ],
)
def test_what_cannot_be_a_delta_table_is_refused(tmp_path: Path, rest: str, sqlstate: str) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            await database.sql("CREATE TABLE odd (k INT PRIMARY KEY)")
            await database.sql('ALTER TABLE odd RENAME TO "od/d"')
            await database.sql('CREATE TABLE others ("_Op" INT PRIMARY KEY)')
            (tmp_path / "data" / "mirrors" / "taken" / "_delta_log").mkdir(parents=True)
            with pytest.raises(SQLError) as told:
                await create(database, rest)
            assert told.value.sqlstate == sqlstate

    asyncio.run(scenario())


def test_the_documents_commands_run(tmp_path: Path) -> None:
    """Those of docs/sinks.md, word for word."""
    text = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text()
    (block,) = re.findall(r"```sql\n(CREATE CHANGEFEED[^`]*'delta:[^`]*)```", text)
    command, mirror = block.strip().splitlines()

    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING)")
            await database.sql("CREATE TABLE refunds (k INT PRIMARY KEY)")
            await database.sql("INSERT INTO orders VALUES (1, 'a')")
            ((job_id,),) = (await database.sql(command)).fetchall()
            ((mirror_id,),) = (await database.sql(mirror)).fetchall()
            assert isinstance(job_id, int) and isinstance(mirror_id, int)
            await caught_up(database, job_id)
            await caught_up(database, mirror_id)
            lake = tmp_path / "data" / "mirrors" / "lake"
            assert (mirrored(lake / "orders"), mirrored(lake / "refunds")) == (
                [{"k": 1, "name": "a"}],
                [],
            )
            await database.sql("DELETE FROM orders WHERE k = 1")
            await caught_up(database, job_id)
        rows = delta_reader.rows(tmp_path / "data" / "mirrors" / "orders")
        rows.sort(key=lambda row: row["_commit_timestamp"])
        assert [(row["_op"], row["k"], row["name"]) for row in rows] == [
            ("upsert", 1, "a"),
            ("delete", 1, None),
        ]

    asyncio.run(scenario())


@pytest.mark.parametrize("mode", ["log", "mirror"])
@pytest.mark.parametrize("name", ["_op", '"K"', "_Commit_Timestamp"])
def test_a_column_that_a_lake_cannot_have_stops_the_feed(
    tmp_path: Path, mode: str, name: str
) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, v STRING)")
            job_id = await create(database, f"orders INTO 'delta:///lake?mode={mode}' {OFTEN}")
            await caught_up(database, job_id)
            await database.sql(f"ALTER TABLE orders ADD COLUMN {name} STRING")
            await database.sql("INSERT INTO orders VALUES (1, 'a', 'b')")
            failed = "SELECT error FROM [SHOW CHANGEFEED JOBS] WHERE status = 'failed'"
            async with asyncio.timeout(30):
                while (told := (await database.sql(failed)).fetchone()) is None:
                    await asyncio.sleep(0.05)
            assert "a table of a lake cannot have column" in str(told)
            assert str(told).count("Names ignore case") == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["back\\slash", "tab\tulator", "a%41", "sl/ash", ".."])
def test_names_that_delta_finds_no_way_to_are_refused(tmp_path: Path, name: str) -> None:
    """A feed into one would try for ever."""

    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql(f'CREATE TABLE "{name}" (k INT PRIMARY KEY)')
            folders = ["delta:///lake/"]
            if name.isprintable() and "/" not in name and name != "..":
                folders.append(f"delta:///{quote(name)}")
            for uri in folders:
                with pytest.raises(SQLError) as caught:
                    await create(database, f"\"{name}\" INTO '{uri}'")
                assert caught.value.sqlstate == ("0A000" if uri.endswith("/") else "22023")

    asyncio.run(scenario())


@pytest.mark.parametrize("mode", ["log", "mirror"])
def test_a_table_that_is_made_again_begins_its_delta_table_anew(tmp_path: Path, mode: str) -> None:
    """Also one that other columns have, and one of which several were dropped meanwhile. Versions
    of the Delta table from before stay readable."""

    async def scenario() -> None:
        path = tmp_path / "data" / "mirrors" / "lake" / "t"
        async with store(tmp_path) as database:
            job_id = await create(
                database, f"DATABASE defaultdb INTO 'delta:///lake/?mode={mode}' {OFTEN}"
            )
            await database.sql("CREATE TABLE t (k INT PRIMARY KEY, v STRING)")
            await database.sql("INSERT INTO t VALUES (1, 'a')")
            await caught_up(database, job_id)
            before = DeltaTable(str(path)).version()
            for number in range(3):
                await database.sql("DROP TABLE t")
                await database.sql("CREATE TABLE t (k STRING PRIMARY KEY, w INT)")
                await database.sql(f"INSERT INTO t VALUES ('b', {number})")
            await caught_up(database, job_id)
        async with store(tmp_path) as database:
            await database.sql("INSERT INTO t VALUES ('c', 7)")
            await caught_up(database, job_id)
            watched = await database.sql(f"SHOW CHANGEFEED JOB {job_id} WITH WATCHED_TABLES")
            assert "failed" not in str(watched.fetchall())  # none that was dropped is told again
        table = DeltaTable(str(path))
        shown = table.to_pyarrow_table(columns=["k", "w"]).to_pylist()
        assert sorted(shown, key=str) == [{"k": "b", "w": 2}, {"k": "c", "w": 7}]
        table.load_as_version(before)
        assert table.to_pyarrow_table(columns=["k", "v"]).to_pylist() == [{"k": 1, "v": "a"}]

    asyncio.run(scenario())
