"""Reading a mirror beside its feed, and what a reader may not do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.sinks.duckdb import mirror_file
from tailrace.changefeed.sinks.duckdb.ownership import MirrorSources
from tailrace.changefeed.sinks.duckdb.reading.interruption import end_query
from tests.harness.descriptors import table
from tests.harness.mirrors import Mirrors, progress_of, rows_batch, run

ORDERS = table()


async def refused(mirrors: Mirrors, sql: str) -> SQLError:
    with pytest.raises(SQLError) as caught:
        await mirrors.read(sql)
    return caught.value


def test_reads_see_whole_flushes(tmp_path: Path) -> None:
    """Each flush gives all ten rows one value; no read may see two."""

    async def scenario(mirrors: Mirrors) -> None:
        seen: set[int] = set()

        async def reads() -> None:
            while len(seen) < 5:
                found = await mirrors.read("SELECT count(*), count(DISTINCT v) FROM orders")
                assert found in ([(0, 0)], [(10, 1)])
                seen.add(len(seen))

        async with mirrors.open(ORDERS) as sink:
            reader = asyncio.ensure_future(reads())
            ts = 10
            while not reader.done():
                ts += 1
                sink.emit(rows_batch(ORDERS, [((k,), ts, (k, f"@{ts}")) for k in range(10)]))
                await sink.flush(progress_of(ORDERS, ts))
            await reader

    run(tmp_path, scenario)


def test_deleted_key_returns_under_an_open_read(tmp_path: Path) -> None:
    """DuckDB keeps the old row for the read: its index must not take the key for taken."""

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(None)
            file = await mirrors.files.acquire(tmp_path / "mirror.duckdb")
            cursor = file.cursor()
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            assert cursor.execute("FROM orders").fetchall() == [(1, "a")]
            for ts in range(20, 30, 2):
                sink.emit(rows_batch(ORDERS, [((1,), ts, None)]))
                await sink.flush(None)
                sink.emit(rows_batch(ORDERS, [((1,), ts + 1, (1, f"@{ts}"))]))
                await sink.flush(None)
            assert cursor.execute("FROM orders").fetchall() == [(1, "a")]
            file.close_cursor(cursor)
            await file.release()
            assert await mirrors.read("FROM orders") == [(1, "@28")]

    run(tmp_path, scenario)


def test_mirror_is_readable_without_its_feed(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(None)
        uri = "duckdb:///mirror.duckdb"
        found = await mirrors.reader.read(uri, "SELECT v FROM orders WHERE k = $1", [1])
        assert found.to_pylist() == [{"v": "a"}]
        assert mirrors.files.open_files == []

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO orders VALUES (1, 'a')",
        "DELETE FROM _tailrace.progress",
        "UPDATE _tailrace.rows_7_104 SET c2 = 'x'",
        "WITH gone AS (DELETE FROM _tailrace.progress RETURNING *) FROM gone",
        "EXPLAIN ANALYZE DELETE FROM _tailrace.progress",
        "CREATE TABLE t (a INT)",
        "CREATE TEMP TABLE t (a INT)",
        "DROP VIEW orders",
        "BEGIN",
        "COMMIT",
        "SET threads = 8",
        "SET enable_external_access = true",
        "PRAGMA threads = 8",
        "RESET threads",
        "CHECKPOINT",
        "FORCE CHECKPOINT",
        "CALL checkpoint()",
        "ATTACH ':memory:' AS other",
        "COPY orders TO '/tmp/orders.csv'",
        "EXPORT DATABASE '/tmp/all'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PREPARE p AS SELECT 1",
        "VACUUM",
        "USE main",
    ],
)
def test_what_writes_is_refused(tmp_path: Path, sql: str) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(progress_of(ORDERS, 10))
            assert (await refused(mirrors, sql)).sqlstate == "25006"
            assert await mirrors.read("FROM orders") == [(1, "a")]
            assert await mirrors.read("SELECT count(*) FROM _tailrace.progress") == [(1,)]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_scan('/tmp/x.parquet')",
        "SELECT * FROM read_duckdb('/tmp/other.duckdb')",
    ],
)
def test_files_of_the_server_are_refused(tmp_path: Path, sql: str) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            assert (await refused(mirrors, sql)).sqlstate == "42501"

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT 1; SELECT 2", "42601"),
        ("", "42601"),
        ("SELEC 1", "42601"),
        ("FROM missing", "42P01"),
        ("SELECT missing FROM orders", "42703"),
        ("SELECT 'x'::INT", "22P02"),
        ("FROM sink", "42P01"),  # a variable of this process
        ("FROM '/etc/passwd'", "42P01"),
        ("FROM upserts_rows_7_104", "42P01"),  # the writer's own source
    ],
)
def test_error_carries_its_state(tmp_path: Path, sql: str, sqlstate: str) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            assert sink is not None
            assert (await refused(mirrors, sql)).sqlstate == sqlstate

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}' (FORMAT csv, USE_TMP_FILE false)", "25006"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}.wal' (FORMAT csv)", "25006"),
        ("EXPLAIN /* then */ ANALYZE\nCHECKPOINT", "25006"),
        ("EXPLAIN/* then */ANALYZE/**/CHECKPOINT", "25006"),
        ("EXPLAIN/**/(/**/ANALYZE) SELECT 1", "0A000"),
        ("EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{file}'", "0A000"),
        ("COPY (SELECT 1) TO '{file}' (FORMAT csv, USE_TMP_FILE false)", "25006"),
        ("SELECT * FROM read_blob('{file}.wal')", "42501"),
        ("SELECT * FROM read_text('{file}')", "42501"),
        ("DESCRIBE SELECT * FROM read_csv('{file}')", "42501"),
        ("EXPLAIN SELECT * FROM read_csv('{file}')", "42501"),
        ("SELECT (SELECT count(*) FROM glob('{file}*'))", "42501"),
        ("WITH w AS (SELECT * FROM read_blob('{file}')) FROM w", "42501"),
        ("FROM query('SELECT * FROM read_blob(''{file}'')')", "42501"),
        ("FROM checkpoint()", "42501"),
        ("FROM '{file}'", "42P01"),
        ("WITH \"{file}\" AS (SELECT 1) FROM '{file}'", "42P01"),
        ("SELECT json_serialize_plan('FROM read_blob(''{file}'')')", "42501"),
        ("SELECT " + "(1)+" * 20_000 + "1", "54000"),
    ],
)
def test_the_mirrors_own_file_is_out_of_reach(tmp_path: Path, sql: str, sqlstate: str) -> None:
    """DuckDB lets a statement read and write the file of its own database, whatever its settings
    say of other files; and the write-ahead log beside it."""
    file = tmp_path / "mirror.duckdb"

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(progress_of(ORDERS, 10))
            assert (await refused(mirrors, sql.replace("{file}", str(file)))).sqlstate == sqlstate
            sink.emit(rows_batch(ORDERS, [((2,), 20, (2, "b"))]))
            await sink.flush(progress_of(ORDERS, 20))
            assert await mirrors.read("FROM orders ORDER BY k") == [(1, "a"), (2, "b")]
        with duckdb.connect(str(file)) as after:
            assert after.execute("SELECT count(*) FROM orders").fetchall() == [(2,)]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN ANALYZE SELECT * FROM orders",
        "EXPLAIN (SELECT 1)",
        "WITH w AS (FROM orders) SELECT (SELECT max(k) FROM w), list_sum([n]) FROM range(3) r(n)",
        "SELECT * FROM orders JOIN (VALUES (1)) v(k) USING (k) UNION ALL FROM orders",
        "FROM orders PIVOT (count(*) FOR v IN ('a', 'b'))",
        "SUMMARIZE orders",
        "SELECT table_name FROM information_schema.tables",
        "FROM duckdb_columns()",
    ],
)
def test_queries_of_the_files_tables_are_reading(tmp_path: Path, sql: str) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(None)
            assert await mirrors.read(sql)

    run(tmp_path, scenario)


def test_a_result_is_bounded_in_bytes(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            with pytest.raises(SQLError) as caught:
                await mirrors.reader.read(
                    "mirror.duckdb", "SELECT repeat('x', 1000) FROM range(100000)", bytes_max=10**6
                )
            assert caught.value.sqlstate == "54000"

    run(tmp_path, scenario)


def test_a_mirror_takes_a_bounded_part_of_memory_and_disk(tmp_path: Path) -> None:
    """DuckDB's own bounds are 80 % of the machine's memory, and 90 % of the disk."""

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.files.using(tmp_path / "mirror.duckdb") as file:
            with file.using_cursor() as cursor:
                bounds = ("memory_limit", "1.8 GiB"), ("max_temp_directory_size", "3.7 GiB")
                for name, bound in bounds:
                    assert cursor.sql(f"SELECT current_setting('{name}')").fetchall() == [(bound,)]

    run(tmp_path, scenario)


def test_a_read_beyond_its_memory_ends_no_feed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mirror_file.CONFIG, "memory_limit", "20MB")
    monkeypatch.setitem(mirror_file.CONFIG, "max_temp_directory_size", "1MB")

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            greedy = await refused(mirrors, "SELECT len(list(r)) FROM range(50000000) t(r)")
            assert greedy.sqlstate == "53200"
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(progress_of(ORDERS, 10))
            assert await mirrors.read("FROM orders") == [(1, "a")]

    run(tmp_path, scenario)


def test_a_reader_is_judged_by_what_the_file_holds(tmp_path: Path) -> None:
    """Released tables count: their rows are there. So do tables that no changefeed made."""
    seen: list[MirrorSources] = []

    async def permit(sources: MirrorSources) -> None:
        seen.append(sources)
        raise SQLError("42501", "no")

    async def scenario(mirrors: Mirrors) -> None:
        other = replace(ORDERS, id=ORDERS.id + 1, name="other")
        async with mirrors.open(ORDERS, other):
            pass
        await mirrors.kind.release("duckdb:///mirror.duckdb", mirrors.identity(), mirrors.holds)
        for _ in range(2):
            with pytest.raises(SQLError, match="no"):
                await mirrors.reader.read("mirror.duckdb", "SELECT 1", permit=permit)
            with duckdb.connect(str(tmp_path / "mirror.duckdb")) as own:
                own.execute("CREATE TABLE IF NOT EXISTS own (k INT)")
        both = frozenset((ORDERS.id, other.id))
        assert seen == [MirrorSources(both, others=False), MirrorSources(both, others=True)]

    run(tmp_path, scenario)


def test_missing_file_is_not_made(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        assert (await refused(mirrors, "SELECT 1")).sqlstate == "58P01"
        assert list(tmp_path.iterdir()) == []

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "sql", ["DESCRIBE orders", "SHOW TABLES", "EXPLAIN FROM orders", "EXPLAIN--why\nFROM orders"]
)
def test_looking_around_is_reading(tmp_path: Path, sql: str) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            assert await mirrors.read(sql)

    run(tmp_path, scenario)


def test_cancelled_read_is_interrupted(tmp_path: Path) -> None:
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            reads = [asyncio.ensure_future(mirrors.read(endless)) for _ in range(6)]
            await asyncio.sleep(0.05)
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(None)  # no read holds the writer up
            for read in reads:
                read.cancel()
            ended = await asyncio.gather(*reads, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ended)
            assert await mirrors.read("FROM orders") == [(1, "a")]

    run(tmp_path, scenario)


def test_a_query_that_has_just_ended_is_not_in_the_way_of_its_interruption() -> None:
    """It has closed its cursor in its thread, and the loop has not heard of its answer yet."""

    async def scenario() -> None:
        cursor = duckdb.connect()
        cursor.close()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[pa.Table] = loop.create_future()
        loop.call_soon(answer.set_result, pa.table({}))
        await end_query(cursor, answer)
        assert (await answer).num_rows == 0

    asyncio.run(scenario())
