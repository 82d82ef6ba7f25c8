"""Changefeeds into Azure's blobs: the server is stopped while it is written to, and read back by
requests of the test's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.azure_server import KEY, AzureServer
from tests.system.test_s3_sink import MARKS, Written, caught_up, create, store

pytestmark = pytest.mark.system

LIVES = 1


def test_no_row_is_lost_by_a_server_that_is_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        written = Written(1)
        async with store(tmp_path / "data") as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, n INT, v STRING)")
            job_id = await create(
                database,
                azure.uri("changes", MARKS),
                "updated, resolved, min_checkpoint_frequency = '50ms'",
            )
            shown = str((await database.sql("SHOW CHANGEFEED JOBS")).fetchall())
            assert "redacted" in shown and KEY[:20] not in shown
            for _ in range(LIVES):
                await written.write(database, 15)
                azure.stop()
                await written.write(database, 10)
                await asyncio.to_thread(azure.start)
            await written.write(database, 2)
            await caught_up(database, job_id)
            async with asyncio.timeout(30):
                while not any(name.endswith(".RESOLVED") for name in azure.objects()):
                    await asyncio.sleep(0.1)
        written.check(azure.objects())

    with AzureServer(tmp_path / "azure") as azure:
        asyncio.run(scenario())
