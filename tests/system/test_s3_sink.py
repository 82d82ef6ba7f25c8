"""Changefeeds into S3: a real server, which is slow, refuses and loses answers, and is read back by
programs that know nothing of the sink.

The commands are those of docs/sinks.md.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.bucket_feeds import (
    MARKS,
    caught_up,
    check_documented,
    check_no_row_is_lost,
    create,
    documented,
    ended,
    store,
)
from tests.harness.documented import documented_sql
from tests.harness.s3_server import BUCKET, SECRET, S3Server

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the server's own libraries
]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_row_is_lost_by_a_store_with_faults(tmp_path: Path, seed: int) -> None:
    with S3Server(seed) as s3:
        uri = s3.uri("changes", MARKS)
        asyncio.run(check_no_row_is_lost(tmp_path, seed, uri, s3, s3.objects, share=0.2))


def test_what_other_programs_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, v STRING)")
            await database.sql("INSERT INTO orders SELECT i, repeat('x', 500) FROM "
                               "generate_series(1, 40000) AS t (i)")  # fmt: skip
            for folder, options in (
                ("parquet", "format = 'parquet', initial_scan = 'only'"),
                ("lines", "compression = 'gzip', initial_scan = 'only'"),
            ):
                job_id = await create(database, s3.uri(folder, "&file_size=12MB"), options)
                await ended(database, job_id)
        objects = s3.objects()
        rows: list[Any] = []
        for name, body in objects.items():
            if name.startswith("parquet/"):
                rows += pq.read_table(io.BytesIO(body)).column("k").to_pylist()
        assert sorted(rows) == list(range(1, 40001))
        lines = [
            json.loads(line)["key"][0]
            for name, body in objects.items()
            if name.startswith("lines/")
            for line in gzip.decompress(body).splitlines()
        ]
        assert sorted(lines) == list(range(1, 40001))

    with S3Server() as s3:
        asyncio.run(scenario())


def test_the_documents_command_runs(tmp_path: Path) -> None:
    """But for the endpoint, which is Amazon's own there."""
    command = documented_sql("Buckets")[0]
    with S3Server() as s3:
        endpoint = f"&AWS_ENDPOINT={s3.endpoint}"
        there = command.replace("&AWS_REGION", f"{endpoint}&AWS_REGION")
        asyncio.run(documented(tmp_path, there))
        check_documented(s3.objects())


def test_a_store_that_answers_slowly_is_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, n INT, v STRING)")
            job_id = await create(database, s3.uri("changes"), "min_checkpoint_frequency = '50ms'")
            s3.delay = 0.5
            async with asyncio.timeout(0.4):  # a writer waits for no sink
                await database.sql("INSERT INTO orders VALUES (1, 1, 'a')")
            await caught_up(database, job_id)
        assert [json.loads(body)["key"] for body in s3.objects().values()] == [[1]]

    with S3Server() as s3:
        asyncio.run(scenario())


def test_enriched_objects_say_whence_they_come(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            await database.sql("INSERT INTO orders VALUES (1)")
            options = "envelope = 'enriched', enriched_properties = 'source'"
            job_id = await create(database, s3.uri("changes"), options)
            await caught_up(database, job_id)
        (line,) = [json.loads(body) for body in s3.objects().values()]
        assert (line["op"], line["key"], line["after"]) == ("c", {"k": 1}, {"k": 1})
        source = line["source"]
        assert (source["changefeed_sink"], source["job_id"]) == ("cloudstorage", str(job_id))

    with S3Server() as s3:
        asyncio.run(scenario())


def test_what_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            for uri, words in (
                (s3.uri("x").replace(BUCKET, "nothere"), "bucket nothere does not exist"),
                (s3.uri("x").replace("app", "") + "&AWS_REGION=", "has no value"),
                (f"s3://{BUCKET}/x?AUTH=implicit", "AUTH=implicit is not allowed"),
            ):
                with pytest.raises(SQLError, match=words) as told:
                    await create(database, uri, "updated")
                assert SECRET not in f"{told.value} {told.value.detail} {told.value.hint}"
            job_id = await create(database, s3.uri("x"), "updated")
            shown = str((await database.sql("SHOW CHANGEFEED JOBS")).fetchall())
            assert "kanari7" not in shown and str(job_id) in shown and "redacted" in shown
        for file in tmp_path.rglob("*"):
            assert not file.is_file() or b"kanari7" not in file.read_bytes(), file

    with S3Server() as s3:
        asyncio.run(scenario())
