"""How changefeeds end: at a time, by an error that pauses them, and what they hold until then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import format_timestamp
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps

LATER = "2040-01-01 00:00:00+00"

SHOWN_SECONDS_MAX = 120.0
"""Seconds in which a feed comes into the state that it is waited for."""


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            await work(database)

    asyncio.run(whole())


async def created(database: AsyncDatabase, options: str, sink: str = "null://") -> int:
    rows = (await database.sql(f"CREATE CHANGEFEED FOR t INTO '{sink}' WITH {options}")).fetchall()
    assert isinstance(rows[0][0], int)
    return rows[0][0]


async def streamed(database: AsyncDatabase, **options: str | bool) -> list[tuple[str, str, str]]:
    """All that a feed without a sink shows before it ends; NULL is an empty text."""
    found = []
    async for row in database.changefeed("t", **options):
        texts = [each.decode() if isinstance(each, bytes) else str(each or "") for each in row]
        found.append((texts[0], texts[1], texts[2]))
    return found


async def becomes(database: AsyncDatabase, job_id: int, *words: str) -> None:
    shown = ""
    try:
        async with asyncio.timeout(SHOWN_SECONDS_MAX):
            while not all(word in shown for word in words):
                await asyncio.sleep(0.02)
                shown = str((await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall())
    except TimeoutError:
        raise AssertionError(f"{shown} does not say {words}") from None


def test_a_feed_ends_at_its_end_time(tmp_path: Path) -> None:
    """One that has passed: the end that is still to come is `test_pipeline`'s."""

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("INSERT INTO t VALUES (1)")
        start = format_timestamp(await database.node.store.now())
        await database.sql("INSERT INTO t VALUES (2)")
        end = format_timestamp(await database.node.store.now())
        await database.sql("INSERT INTO t VALUES (3)")
        between = f"cursor = '{start}', end_time = '{end}'"
        job_id = await created(database, f"{between}, initial_scan", "duckdb:///m.duckdb")
        await becomes(database, job_id, "'succeeded'")
        mirror = await database.mirror("m.duckdb").sql("SELECT k FROM t ORDER BY k")
        assert [row["k"] for row in mirror.to_pylist()] == [1, 2]
        rows = await streamed(
            database, cursor=start, end_time=end, initial_scan="yes", resolved=True
        )
        assert [row[1] for row in rows if row[0]] == ["[1]", "[2]"]
        assert end in rows[-1][2]
        with pytest.raises(SQLError, match="must be after"):
            await created(database, "end_time = '-1s'")
        with pytest.raises(SQLError, match="exclude each other"):
            await created(database, f"{between}, initial_scan = 'only'")

    on_database(tmp_path, scenario)


def test_times_are_written_as_of_system_time(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("INSERT INTO t VALUES (1)")
        [(at,)] = (await database.sql("SELECT clock_timestamp()::TIMESTAMPTZ")).fetchall()
        await database.sql("INSERT INTO t VALUES (2)")
        end = format_timestamp(await database.node.store.now())
        await database.sql("INSERT INTO t VALUES (3)")
        for cursor in (str(at), "-1us"):
            explained = await database.sql(
                f"EXPLAIN CHANGEFEED FOR t WITH cursor = '{cursor}', end_time = '{LATER}'"
            )
            assert "2208988800000000000" in str(explained.fetchall())
        rows = await streamed(database, cursor=str(at), end_time=end)
        assert [row[1] for row in rows] == ["[2]"]
        for wrong in ("soon", LATER):
            with pytest.raises(SQLError) as caught:
                await database.sql(f"CREATE CHANGEFEED FOR t WITH cursor = '{wrong}'")
            assert caught.value.sqlstate == "22023"
            assert "cursor" in caught.value.message

    on_database(tmp_path, scenario)


def test_an_error_pauses_a_feed_that_was_told_so(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        paused = await created(database, "on_error = 'pause'")
        failed = await created(database, "on_error = 'fail'")
        await database.sql(f"SELECT wait_for_changefeed({paused})")
        await database.sql("DROP TABLE t")
        await becomes(database, failed, "'failed'", "was dropped")
        await becomes(database, paused, "'paused'", "paused by an error", "was dropped")
        with pytest.raises(SQLError, match="paused by an error"):
            await database.sql(f"SELECT wait_for_changefeed({paused})")
        await database.sql(f"RESUME JOB {paused}")
        await becomes(database, paused, "'paused'", "paused by an error")
        await database.sql(f"CANCEL JOB {paused}")
        await becomes(database, paused, "'canceled'")

    on_database(tmp_path, scenario)


def test_what_a_feed_protects_expires(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        short = await created(database, "gc_protect_expires_after = '2h', paused")
        await created(database, "paused")
        store = database.node.store
        snapshot = store.snapshot(await store.now())
        found = await ProtectedTimestamps(store).read_all(snapshot)
        ages = sorted(each.max_age_seconds for each in found if each.owner == "changefeed")
        assert ages == [2 * 3600.0, 96 * 3600.0]
        with pytest.raises(SQLError, match="cannot be altered"):
            await database.sql(f"ALTER CHANGEFEED {short} SET gc_protect_expires_after = '1h'")
        with pytest.raises(SQLError, match="above zero"):
            await created(database, "gc_protect_expires_after = '0s'")

    on_database(tmp_path, scenario)


def test_a_feed_that_is_resumed_behind_what_it_protected_says_so(tmp_path: Path) -> None:
    """Its protection has expired, and what it had still to read is collected."""

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("SET CLUSTER SETTING changefeed.protect_timestamp.max_age = '1ms'")
        job_id = await created(database, "no_initial_scan", "duckdb:///m.duckdb")
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        await database.sql(f"PAUSE JOB {job_id}")
        await becomes(database, job_id, "paused")
        await database.sql("INSERT INTO t VALUES (1)")
        await database.sql("DELETE FROM t WHERE k = 1")
        served = database.node.served
        assert served is not None
        [[table_id]] = (await database.sql("SELECT 't'::regclass::oid::int8")).fetchall()
        assert isinstance(table_id, int)
        await served.collect_garbage(table_span(table_id), await served.now())
        await database.sql(f"RESUME JOB {job_id}")
        await becomes(
            database, job_id, "failed", "garbage collected since", "create the changefeed"
        )

    on_database(tmp_path, scenario)
