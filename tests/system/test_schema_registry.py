"""Changefeeds in Avro with a real registry: read back by fastavro, with schemas that the registry
gives, from librdkafka's mock cluster.

The commands are those of docs/sinks.md.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tests.harness.documented import documented_sql
from tests.harness.kafka_reader import MockCluster, Record, read
from tests.harness.registry_process import RegistryProcess

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry")) as process:
        yield process


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as found:
        yield found


@asynccontextmanager
async def table(path: Path, name: str) -> AsyncIterator[AsyncDatabase]:
    database = await aopen(path / "data")
    try:
        for setting in ("private_addresses", "insecure_http"):
            await database.sql(f"SET CLUSTER SETTING changefeed.webhook.{setting}.enabled = true")
        await database.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.2s'")
        await database.sql(f"CREATE TABLE {name} (k INT PRIMARY KEY, price DECIMAL(10,2))")
        await database.sql(f"INSERT INTO {name} VALUES (1, 1.50)")
        yield database
    finally:
        await database.close()


async def create(database: AsyncDatabase, statement: str, options: str) -> int:
    created = await database.sql(f"CREATE CHANGEFEED {statement} WITH format = avro, {options}")
    ((job_id,),) = created.fetchall()
    assert isinstance(job_id, int)
    return job_id


async def caught_up(database: AsyncDatabase, job_id: int) -> None:
    async with asyncio.timeout(30):
        await database.feed(job_id).wait_until(await database.node.store.now())


async def shown(database: AsyncDatabase, job_id: int, words: str) -> str:
    """SHOW CHANGEFEED JOB, when it says these words."""
    async with asyncio.timeout(30):
        while words not in (
            text := str((await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall())
        ):
            await asyncio.sleep(0.02)
    return text


class Reader:
    """Reads messages with what the registry says of their ids."""

    def __init__(self, registry: RegistryProcess) -> None:
        self._registry = registry
        self._schemas: dict[int, Any] = {}

    def read(self, message: bytes | None) -> Any:
        assert message is not None and message[0] == 0, message
        id = int.from_bytes(message[1:5], "big")
        if id not in self._schemas:
            self._schemas[id] = fastavro.parse_schema(self._registry.schema(id))
        return fastavro.schemaless_reader(BytesIO(message[5:]), self._schemas[id], None)

    def rows(self, records: list[Record]) -> list[tuple[Any, Any]]:
        """Keys and values of the records that have a key, in their order by key."""
        found = [(self.read(each.key), self.read(each.raw)) for each in records if each.key]
        return sorted(found, key=lambda pair: pair[0]["k"])


def test_rows_and_schemas_are_read_back(
    tmp_path: Path, registry: RegistryProcess, cluster: MockCluster
) -> None:
    async def scenario() -> list[Record]:
        async with table(tmp_path, "orders") as database:
            job = await create(
                database,
                f"FOR orders INTO 'kafka://{cluster.addresses}'",
                f"diff, resolved, avro_schema_prefix = shop_, "
                f"confluent_schema_registry = '{registry.url}'",
            )
            await caught_up(database, job)
            await database.sql("ALTER TABLE orders ADD COLUMN note STRING DEFAULT 'new'")
            await database.sql("INSERT INTO orders VALUES (2, NULL, NULL)")
            await database.sql("ALTER TABLE orders DROP COLUMN price")
            await caught_up(database, job)  # a row is shown again unless it is deleted before
            await database.sql("DELETE FROM orders WHERE k = 1")
            await caught_up(database, job)
        return await asyncio.to_thread(
            read,
            cluster.addresses,
            "orders",
            lambda found: (
                any(not each.key for each in found) and sum(bool(each.key) for each in found) >= 6
            ),
        )

    records = asyncio.run(scenario())
    reader = Reader(registry)
    assert [value for _, value in reader.rows(records)] == [
        {"before": None, "after": {"k": 1, "price": 1.50}},
        {"before": {"k": 1, "price": 1.50}, "after": {"k": 1, "price": 1.50, "note": "new"}},
        {"before": {"k": 1, "price": 1.50, "note": "new"}, "after": {"k": 1, "note": "new"}},
        {"before": {"k": 1, "note": "new"}, "after": None},
        {"before": None, "after": {"k": 2, "price": None, "note": None}},
        {"before": {"k": 2, "price": None, "note": None}, "after": {"k": 2, "note": None}},
    ]
    resolved = reader.read(next(each.raw for each in records if not each.key))
    assert resolved.keys() == {"resolved"}
    assert registry.subjects == ["orders-value", "shop_orders-key", "shop_orders-value"]
    # Each pair of versions of the table that messages have, once.
    assert len(registry.versions("shop_orders-value")) == 5
    assert len(registry.versions("shop_orders-key")) == 1


def test_the_documents_command_runs(
    tmp_path: Path, registry: RegistryProcess, cluster: MockCluster
) -> None:
    """But for the addresses, and who logs in at the registry."""
    [command] = documented_sql("Avro")
    command = command.replace("https://app:secret@registry.example:8081", registry.url)

    async def scenario() -> list[Record]:
        async with table(tmp_path, "orders") as database:
            made = await database.sql(command.replace("127.0.0.1:9092", cluster.addresses))
            ((job_id,),) = made.fetchall()
            assert isinstance(job_id, int)
            await caught_up(database, job_id)
        return await asyncio.to_thread(read, cluster.addresses, "orders", bool)

    reader = Reader(registry)
    [(key, value)] = reader.rows(asyncio.run(scenario()))
    assert (key, value["after"]) == ({"k": 1}, {"k": 1, "price": 1.50})
    assert value.keys() == {"after", "updated"}
    assert "shop_orders-value" in registry.subjects


def test_a_schema_that_the_registry_refuses_ends_the_feed(
    tmp_path: Path, registry: RegistryProcess, cluster: MockCluster
) -> None:
    async def scenario() -> None:
        async with table(tmp_path, "refused") as database:
            taken = {"type": "record", "name": "refused_envelope", "fields": [
                {"name": "after", "type": "long"}]}  # fmt: skip
            await asyncio.to_thread(
                registry.ask,
                "/subjects/refused-value/versions",
                {"schema": str(taken).replace("'", '"')},
            )
            job = await create(
                database,
                f"FOR refused INTO 'kafka://{cluster.addresses}'",
                f"on_error = pause, confluent_schema_registry = '{registry.url}'",
            )
            text = await shown(database, job, "'paused'")
            assert "schema registry at 127.0.0.1" in text
            assert "subject refused-value: 409" in text

    asyncio.run(scenario())


def test_a_registry_that_does_not_answer_is_waited_for(
    tmp_path: Path, registry: RegistryProcess, cluster: MockCluster
) -> None:
    async def scenario() -> None:
        secret = registry.url.replace("://", "://app:kanari7@")
        async with table(tmp_path, "waiting") as database:
            into = f"FOR waiting INTO 'kafka://{cluster.addresses}'"
            for wrong, sqlstate in (
                ("http://app:kanari7@127.0.0.1:1", "08001"),
                ("ftp://app:kanari7@127.0.0.1:1", "22023"),
                (f"{secret}?password=kanari7", "22023"),
            ):
                with pytest.raises(SQLError) as told:
                    await create(database, into, f"confluent_schema_registry = '{wrong}'")
                assert told.value.sqlstate == sqlstate
                assert "kanari7" not in str(told.value)
            with pytest.raises(SQLError, match="needs confluent_schema_registry"):
                await create(database, into, "diff")
            options = f"confluent_schema_registry = '{secret}?timeout=100ms'"
            job = await create(database, into, options)
            await caught_up(database, job)
            registry.send(signal.SIGSTOP)
            try:
                await database.sql("ALTER TABLE waiting ADD COLUMN note STRING")
                await database.sql("INSERT INTO waiting VALUES (2, NULL, 'b')")
                text = await shown(database, job, "schema registry at 127.0.0.1")
                assert "no answer within 0.1 s" in text and "kanari7" not in text
            finally:
                registry.send(signal.SIGCONT)
            await caught_up(database, job)
            records = await asyncio.to_thread(
                read, cluster.addresses, "waiting", lambda found: len(found) >= 2
            )
            last = Reader(registry).rows(records)[-1]
            assert last == ({"k": 2}, {"after": {"k": 2, "price": None, "note": "b"}})

    asyncio.run(scenario())
