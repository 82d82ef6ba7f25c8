"""`publish`: a copy of a mirror beside it, for programs that open files themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb
import pytest

from tailrace.api.embedded import aopen
from tailrace.catalog.values.errors import SQLError


def test_a_mirror_has_a_copy_that_others_open(tmp_path: Path) -> None:
    """Another interval than the test's time: what the feed leaves at its end is published too."""

    async def scenario() -> None:
        async with await aopen(tmp_path) as database:
            await database.sql("CREATE TABLE t (n INT8 PRIMARY KEY); INSERT INTO t VALUES (1)")
            await database.sql(
                "CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb' WITH publish = '1h'"
            )
            mirror = database.mirror("m.duckdb")
            await asyncio.wait_for(mirror.wait(), 20)
            await database.sql("INSERT INTO t VALUES (2); DELETE FROM t WHERE n = 1")
            await asyncio.wait_for(mirror.wait(), 20)

    asyncio.run(scenario())
    with duckdb.connect(str(tmp_path / "mirrors" / "m.published.duckdb"), read_only=True) as copy:
        assert copy.sql("SELECT n FROM t").fetchall() == [(2,)]
    assert sorted(each.name for each in (tmp_path / "mirrors").iterdir()) == [
        "m.duckdb", "m.published.duckdb",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sink", "every", "why"),
    [
        ("duckdb:///m.duckdb", "999ms", "at least 1 s"),
        ("duckdb:///m.published.duckdb", "1s", "mirror's own files"),
        ("null://", "1s", "has no effect"),
    ],
)
def test_what_cannot_be_published_is_refused(sink: str, every: str, why: str) -> None:
    async def scenario() -> None:
        async with await aopen(":memory:") as database:
            await database.sql("CREATE TABLE t (n INT8 PRIMARY KEY)")
            with pytest.raises(SQLError) as refused:
                await database.sql(
                    f"CREATE CHANGEFEED FOR t INTO '{sink}' WITH publish = '{every}'"
                )
            assert why in f"{refused.value.message} {refused.value.detail}"

    asyncio.run(scenario())
