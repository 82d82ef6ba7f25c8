"""Schedules of changefeeds, through SQL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError


async def shown(database: AsyncDatabase, statement: str) -> list[Mapping[str, object]]:
    result = await database.sql(statement)
    names = [column.name for column in result.columns]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


async def runs(database: AsyncDatabase) -> list[Mapping[str, object]]:
    return await shown(database, "SHOW CHANGEFEED JOBS")


async def until_run(database: AsyncDatabase, count: int) -> list[Mapping[str, object]]:
    async with asyncio.timeout(20):
        while True:
            found = await runs(database)
            if [job["status"] for job in found] == ["succeeded"] * count:
                return found
            await asyncio.sleep(0.05)


def test_a_schedule_writes_a_scan_and_survives_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = tmp_path / "data"
        database = await aopen(folder)
        await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING)")
        await database.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
        create = (
            "CREATE SCHEDULE IF NOT EXISTS nightly FOR CHANGEFEED orders INTO 'null://' "
            "WITH full_table_name RECURRING '@daily' WITH SCHEDULE OPTIONS first_run = 'now', "
            "on_execution_failure = 'pause', on_previous_running = 'skip'"
        )
        (made,) = await shown(database, create)
        assert (made["label"], made["status"]) == ("nightly", "ACTIVE")
        assert await shown(database, create) == []
        (job,) = await until_run(database, 1)
        assert "full_table_name, initial_scan = 'only'" in str(job["description"])
        await database.sql(f"PAUSE SCHEDULE {made['schedule_id']}")
        await database.close()
        database = await aopen(folder)
        try:
            (paused,) = await shown(database, "SHOW PAUSED SCHEDULES FOR CHANGEFEED")
            assert (paused["schedule_status"], paused["next_run"]) == ("PAUSED", None)
            assert paused["command"] == (
                "CREATE SCHEDULE 'nightly' FOR CHANGEFEED TABLE defaultdb.public.orders INTO "
                "'null://' WITH full_table_name, initial_scan = 'only' RECURRING '@daily'"
            )
            await database.sql(
                "RESUME SCHEDULES (SELECT job_id FROM [SHOW JOBS] "
                "WHERE job_type = 'CHANGEFEED SCHEDULE')"
            )
            async with asyncio.timeout(20):
                while not await shown(database, "SHOW RUNNING SCHEDULES"):
                    await asyncio.sleep(0.05)
            (active,) = await shown(database, f"SHOW SCHEDULE {made['schedule_id']}")
            assert str(active["next_run"]).endswith("00:00:00+00:00")
            assert (active["recurrence"], active["state"]) == ("@daily", None)
            dropped = await database.sql(f"DROP SCHEDULE {made['schedule_id']}")
            assert dropped.tag == "DROP SCHEDULES 1"
            async with asyncio.timeout(20):
                while await shown(database, "SHOW SCHEDULES"):
                    await asyncio.sleep(0.05)
            assert len(await runs(database)) == 1
        finally:
            await database.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("orders INTO 'null://' RECURRING 'soon'", "'soon' is no crontab"),
        ("orders INTO 'null://' WITH resolved RECURRING '@daily'", "exclude each other"),
        ("orders INTO 'null://' WITH cursor = '-1s' RECURRING '@daily'", "does not go with"),
        ("INTO 'null://' AS SELECT k FROM orders RECURRING '@daily'", "CDC queries"),
        ("nothing INTO 'null://' RECURRING '@daily'", "does not exist"),
        (
            "orders INTO 'null://' RECURRING '@daily' WITH SCHEDULE OPTIONS first_run = 'x'",
            "first_run is 'now' or a date and time",
        ),
        (
            "orders INTO 'null://' RECURRING '@daily' WITH SCHEDULE OPTIONS "
            "on_previous_running = 'x'",
            "one of wait, skip, start, not 'x'",
        ),
        ("orders INTO 'duckdb:///../x' RECURRING '@daily'", "x"),
    ],
)
def test_what_no_run_could_do_is_refused(tmp_path: Path, statement: str, words: str) -> None:
    async def scenario() -> None:
        database = await aopen(tmp_path / "data")
        try:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            with pytest.raises(SQLError, match=words):
                await database.sql(f"CREATE SCHEDULE FOR CHANGEFEED {statement}")
            assert await shown(database, "SHOW SCHEDULES") == []
            with pytest.raises(SQLError, match="schedule with ID 1 does not exist"):
                await database.sql("PAUSE SCHEDULE 1")
        finally:
            await database.close()

    asyncio.run(scenario())
