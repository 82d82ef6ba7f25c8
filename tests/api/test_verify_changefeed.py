"""VERIFY CHANGEFEED finds what was changed by hand in a mirror and mends it while the feed runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.verify import verification
from tests.harness.by_hand import by_hand

ROWS = 3000

WHOLE = "INT8"
KEYS = (WHOLE, "STRING", "UUID", "DECIMAL(9,2)", "FLOAT8")


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "RANGE_ROWS_MIN", 500)
    monkeypatch.setattr(verification, "HASHED_ROWS", 300)
    monkeypatch.setattr(verification, "slice_rows", lambda table: 100)


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await work(database)

    asyncio.run(whole())


async def feed_of(database: AsyncDatabase, key: str, apply: str) -> int:
    await database.sql(f"CREATE TABLE t (k {key} PRIMARY KEY, v STRING)")
    value = "gen_random_uuid()" if key == "UUID" else f"i::{key}"
    await database.sql(
        f"INSERT INTO t SELECT {value}, 'row ' || i FROM generate_series(1, $1) AS g(i)", [ROWS]
    )
    created = await database.sql(
        f"CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb?apply={apply}'"
    )
    job_id = created.fetchall()[0][0]
    assert isinstance(job_id, int)
    await database.sql("SELECT wait_for_changefeed($1)", [job_id])
    return job_id


async def change_by_hand(database: AsyncDatabase, folder: Path, job_id: int) -> None:
    """Three rows: one changed, one removed, one that nobody wrote."""
    async with by_hand(database, folder / "data" / "mirrors" / "m.duckdb") as cursor:
        base = cursor.execute("SELECT base_table FROM _tailrace.mirrors").fetchone()
        assert base is not None
        name = f'_tailrace."{base[0]}"'
        cursor.execute(f"UPDATE {name} SET c2 = 'by hand' WHERE c2 = 'row 77'")
        cursor.execute(f"DELETE FROM {name} WHERE c2 = 'row 1500'")
        columns = cursor.execute(f"DESCRIBE {name}").fetchall()
        types = {str(column[0]): str(column[1]) for column in columns}
        made = "gen_random_uuid() AS c1" if types["c1"] == "UUID" else "'5000' AS c1"
        if "_key" in types:
            made += ", _key || '\\x01'::BLOB AS _key"
        cursor.execute(
            f"INSERT INTO {name} SELECT * REPLACE ({made}) FROM {name} WHERE c2 = 'row 2999'"
        )


@pytest.mark.parametrize("apply", ["row", "transaction"])
@pytest.mark.parametrize("key", KEYS)
def test_it_finds_and_mends_what_was_changed_by_hand(tmp_path: Path, key: str, apply: str) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database, key, apply)
        verify = f"VERIFY CHANGEFEED {job_id}"
        assert (await database.sql(verify)).fetchall() == []
        await change_by_hand(database, tmp_path, job_id)
        found = (await database.sql(verify)).fetchall()
        expected = ["differs in v", "missing in the sink", "not in the table"]
        assert sorted(str(what) for _, _, what in found) == expected
        if key == WHOLE:
            assert sorted(str(shown) for _, shown, _ in found) == ["k=1500", "k=5000", "k=77"]
        again = (await database.sql(f"{verify} AT RESOLVED")).fetchall()
        assert sorted(map(str, again)) == sorted(map(str, found))
        assert len((await database.sql(f"{verify} REPAIR")).fetchall()) == 3
        assert (await database.sql(verify)).fetchall() == []
        rows = await database.mirror("m.duckdb").sql("SELECT * FROM t")
        expected_rows = (await database.sql("SELECT * FROM t")).arrow().to_pylist()
        assert sorted(map(str, rows.to_pylist())) == sorted(map(str, expected_rows))

    on_database(tmp_path, scenario)


@pytest.mark.parametrize(
    "alteration", ["DROP TABLE {0}", "ALTER TABLE {0} DROP COLUMN c2"], ids=["table", "column"]
)
def test_tables_that_were_altered_by_hand_are_told(tmp_path: Path, alteration: str) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database, WHOLE, "row")
        async with by_hand(database, tmp_path / "data" / "mirrors" / "m.duckdb") as cursor:
            base = cursor.execute("SELECT base_table FROM _tailrace.mirrors").fetchone()
            assert base is not None
            cursor.execute("DROP VIEW t")
            cursor.execute(alteration.format(f'_tailrace."{base[0]}"'))
        with pytest.raises(SQLError, match="Others have altered the feed's tables: ") as told:
            await database.sql(f"VERIFY CHANGEFEED {job_id}")
        assert (told.value.sqlstate, "LINE 1" in str(told.value)) == ("58030", False)

    on_database(tmp_path, scenario)


@pytest.mark.parametrize("apply", ["row", "transaction"])
def test_rows_that_are_written_meanwhile_differ_in_nothing(tmp_path: Path, apply: str) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database, WHOLE, apply)
        ended = asyncio.Event()

        async def write() -> int:
            written = 0
            async with database.session() as session:
                while not ended.is_set():
                    await session.sql("UPSERT INTO t VALUES ($1, 'again')", [written % ROWS])
                    await session.sql("DELETE FROM t WHERE k = $1", [(written * 7) % ROWS])
                    written += 1
            return written

        writing = asyncio.create_task(write())
        await change_by_hand(database, tmp_path, job_id)
        for at in ("", " AT RESOLVED", " REPAIR", "", " AT RESOLVED", ""):
            found = (await database.sql(f"VERIFY CHANGEFEED {job_id}{at}")).fetchall()
            keys = {str(key) for _, key, _ in found}
            assert keys <= {"k=77", "k=1500", "k=5000"}, found
            assert "k=5000" in keys or at != " REPAIR"
        assert found == []
        ended.set()
        assert await writing > 0

    on_database(tmp_path, scenario)


def test_what_cannot_be_verified_says_why(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        async def refused(statement: str) -> SQLError:
            with pytest.raises(SQLError) as caught:
                await database.sql(statement)
            return caught.value

        assert (await refused("VERIFY CHANGEFEED 5")).sqlstate == "42704"
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        created = await database.sql("CREATE CHANGEFEED FOR t INTO 'null://'")
        job_id = str(created.fetchall()[0][0])
        error = await refused(f"VERIFY CHANGEFEED {job_id}")
        assert (error.sqlstate, error.message) == (
            "0A000",
            "only mirrors in DuckDB files can be verified",
        )
        assert (await refused(f"VERIFY CHANGEFEED {job_id} TWICE")).sqlstate == "42601"
        assert (await refused("BEGIN; VERIFY CHANGEFEED 5")).sqlstate == "25001"

    on_database(tmp_path, scenario)


@pytest.mark.parametrize("apply", ["row", "transaction"])
def test_the_mirror_of_a_query_is_verified_and_mended(tmp_path: Path, apply: str) -> None:
    """Against what the query shows of the table, whose other rows it has not to hold."""

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING, n INT8)")
        await database.sql(
            "INSERT INTO t SELECT i, 'row ' || i, i % 3 FROM generate_series(1, $1) AS g(i)", [ROWS]
        )
        created = await database.sql(
            f"CREATE CHANGEFEED INTO 'duckdb:///m.duckdb?apply={apply}' AS "
            "SELECT n + 1 AS more, v, k, upper(v) AS loud FROM t WHERE n > 0"
        )
        job_id = created.fetchall()[0][0]
        assert isinstance(job_id, int)
        verify = f"VERIFY CHANGEFEED {job_id}"
        await database.sql("UPDATE t SET n = 0 WHERE k = 100")
        await database.sql("UPDATE t SET n = 2 WHERE k = 300")
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        assert (await database.sql(verify)).fetchall() == []
        async with by_hand(database, tmp_path / "data" / "mirrors" / "m.duckdb") as cursor:
            [[base]] = cursor.execute("SELECT base_table FROM _tailrace.mirrors").fetchall()
            name = f"_tailrace.{base}"
            columns = [str(each[0]) for each in cursor.execute(f"DESCRIBE {name}").fetchall()]
            key, (computed, loud) = "c1", [each for each in columns if len(each) > 4][:2]
            cursor.execute(f"UPDATE {name} SET {loud} = 'x' WHERE {key} = 77")
            cursor.execute(f"DELETE FROM {name} WHERE {key} = 1501")
            cursor.execute(
                f"INSERT INTO {name} SELECT * REPLACE (99 AS {key}) FROM {name} WHERE {key} = 2999"
            )
            assert computed != loud
        found = (await database.sql(verify)).fetchall()
        assert sorted(str(shown) for _, shown, _ in found) == ["k=1501", "k=77", "k=99"]
        assert {str(what) for _, _, what in found} == {
            "differs in loud", "missing in the sink", "not in the table",
        }  # fmt: skip
        assert len((await database.sql(f"{verify} REPAIR")).fetchall()) == 3
        assert (await database.sql(verify)).fetchall() == []
        await database.sql("ALTER TABLE t ADD COLUMN w INT8 DEFAULT 3")
        await database.sql("INSERT INTO t VALUES (5000, 'new', 1, 2)")
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        assert (await database.sql(f"{verify} AT RESOLVED")).fetchall() == []

    on_database(tmp_path, scenario)
