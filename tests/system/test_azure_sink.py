"""Changefeeds into Azure's blobs: the server is stopped while it is written to, and read back by
requests of the test's own.

The command of `test_the_documents_command_runs` is that of docs/sinks.md.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tailrace.changefeed.sinks.objects.folder import ObjectsFolder
from tailrace.changefeed.sinks.objects.location import parse_location
from tests.harness.azure_server import KEY, AzureServer
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

pytestmark = pytest.mark.system

LIVES = 1


def shown_to_readers(azure: AzureServer) -> dict[str, bytes]:
    return {name: body for name, body in azure.objects().items() if "/.tailrace-" not in name}


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
            await marked(azure.objects)
        written.check(shown_to_readers(azure))

    with AzureServer(tmp_path / "azure") as azure:
        asyncio.run(scenario())


@pytest.mark.parametrize("seed", [1, 2])
def test_no_row_is_lost_by_a_server_with_faults(tmp_path: Path, seed: int) -> None:
    """Azure's client sends a part of a body again behind a connection that ended within it, and
    waits for a minute: bodies are spared that."""
    with (
        AzureServer(tmp_path / "azure") as azure,
        FaultyGateway(azure.port, seed, spare_bodies=True) as gateway,
    ):
        uri = azure.uri("changes", MARKS, port=gateway.port)
        asyncio.run(
            check_no_row_is_lost(
                tmp_path / "data", seed, uri, gateway, lambda: shown_to_readers(azure), share=0.02
            )
        )


def test_a_blob_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, bytes]] = []

    def look(size: int) -> bytes:
        seen.append(shown_to_readers(azure))
        return read(size)

    with AzureServer(tmp_path / "azure") as azure:
        folder = ObjectsFolder(parse_location(azure.uri("changes")), job_id=7)
        folder.open()
        file = folder.begin(1)
        file.write(b"all of it")
        read = file.read
        monkeypatch.setattr(file, "read", look)
        folder.publish(1, "2024-01-31/name.ndjson")
        assert seen == [{}, {}]
        assert shown_to_readers(azure) == {"changes/2024-01-31/name.ndjson": b"all of it"}


def test_the_documents_command_runs(tmp_path: Path) -> None:
    """But for the account and the endpoint, which are Azure's own there."""
    [command] = [each for each in documented_sql("Buckets") if "azure://" in each]
    documents = "azure://lake/orders?AZURE_ACCOUNT_NAME=shop&AZURE_ACCOUNT_KEY=c2VjcmV0"
    assert documents in command, command
    with AzureServer(tmp_path / "azure") as azure:
        there = command.replace(documents, azure.uri("orders"))
        asyncio.run(documented(tmp_path / "data", there))
        check_documented(shown_to_readers(azure))
