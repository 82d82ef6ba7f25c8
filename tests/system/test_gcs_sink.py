"""Changefeeds into Google Cloud Storage: an emulator is stopped while it is written to, and
read back by requests of the test's own.

The command of `test_the_documents_command_runs` is that of docs/sinks.md.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.bucket_feeds import (
    MARKS,
    Written,
    caught_up,
    check_documented,
    check_no_row_is_lost,
    create,
    documented,
    marked,
    store,
)
from tests.harness.documented import documented_sql
from tests.harness.faulty_server import FaultyGateway
from tests.harness.gcs_server import ENDPOINT, TOKEN, GCSServer

pytestmark = pytest.mark.system

LIVES = 1


def test_no_row_is_lost_by_a_server_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        written = Written(1)
        async with store(tmp_path / "data") as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, n INT, v STRING)")
            job_id = await create(
                database,
                gcs.uri("changes", MARKS),
                "updated, resolved, min_checkpoint_frequency = '50ms'",
            )
            shown = str((await database.sql("SHOW CHANGEFEED JOBS")).fetchall())
            assert "redacted" in shown and TOKEN not in shown
            for _ in range(LIVES):
                await written.write(database, 15)
                gcs.stop()
                await written.write(database, 10)
                await asyncio.to_thread(gcs.start)
            await written.write(database, 2)
            await caught_up(database, job_id)
            await marked(gcs.objects)
        found = gcs.objects()
        assert all(found.values()), "an object was seen before it was whole"
        written.check(found)

    with GCSServer(tmp_path / "gcs", monkeypatch) as gcs:
        asyncio.run(scenario())


@pytest.mark.parametrize("seed", [1, 2])
def test_no_row_is_lost_by_a_server_with_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    with (
        GCSServer(tmp_path / "gcs", monkeypatch) as gcs,
        FaultyGateway(gcs.port, seed) as gateway,
    ):
        monkeypatch.setenv(ENDPOINT, gateway.endpoint)
        uri = gcs.uri("changes", MARKS)
        asyncio.run(
            check_no_row_is_lost(tmp_path / "data", seed, uri, gateway, gcs.objects, share=0.05)
        )


def test_the_documents_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator takes any token."""
    [command] = [each for each in documented_sql("Buckets") if "gs://" in each]
    with GCSServer(tmp_path / "gcs", monkeypatch) as gcs:
        asyncio.run(documented(tmp_path / "data", command))
        check_documented(gcs.objects())
