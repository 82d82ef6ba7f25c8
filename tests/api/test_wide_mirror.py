"""Mirrors of tables with every wide type, behind changes of their types too."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tailrace.api.embedded import AsyncDatabase, aopen

TABLE = (
    "CREATE TABLE visits (m mood, id INT8, hour TIME, length INTERVAL, doc JSONB, tags STRING[], "
    "ms mood[], PRIMARY KEY (m, id)) WITH (changefeed_optimized = true)"
)
ITEMS = "m::STRING, id, hour, length::STRING, doc::STRING, tags, ms::STRING[]"
SHOWN = "m, id, hour, length::VARCHAR, doc::VARCHAR, tags, ms"
ROW = "('{}', {}, '16:00', '90 min', '{{\"a\": [1.50]}}', '{{x,NULL}}', '{{sad}}')"


async def rows(database: AsyncDatabase, job_id: int) -> list[tuple[object, ...]]:
    """The mirror's rows, when it has seen everything; they equal the table's."""
    await asyncio.wait_for(
        database.feed(job_id).wait_until(await database.node.store.now()), timeout=30
    )
    found = await database.mirror("mirror.duckdb").sql(f"SELECT {SHOWN} FROM visits ORDER BY id")
    mirrored = [tuple(row.values()) for row in found.to_pylist()]
    expected = (await database.sql(f"SELECT {ITEMS} FROM visits ORDER BY id")).fetchall()
    assert mirrored == expected
    return mirrored


def test_mirror_equals_the_table_behind_changes_of_its_type(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE TYPE mood AS ENUM ('sad', 'happy')")
            await database.sql(TABLE)
            await database.sql(f"INSERT INTO visits VALUES {ROW.format('sad', 1)}")
            created = await database.sql(
                "CREATE CHANGEFEED FOR TABLE visits INTO 'duckdb:///mirror.duckdb'"
            )
            job_id = created.fetchall()[0][0]
            assert isinstance(job_id, int)
            many = ", ".join(ROW.format("happy", number) for number in range(2, 200))
            await database.sql(f"INSERT INTO visits VALUES {many}")
            assert len(await rows(database, job_id)) == 199
            await database.sql("ALTER TYPE mood ADD VALUE 'ok' AFTER 'sad'")
            await database.sql(f"INSERT INTO visits VALUES {ROW.format('ok', 200)}")
            found = await rows(database, job_id)
            assert (found[0][0], found[0][6], found[-1][0]) == ("sad", ["sad"], "ok")
            await database.sql("DELETE FROM visits WHERE id < 100 OR m = 'ok'")
            assert len(await rows(database, job_id)) == 100

    asyncio.run(scenario())
