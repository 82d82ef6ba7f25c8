"""Changefeeds into Kafka, through SQL: read back by a consumer, from librdkafka's mock cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.encode.topics import topic_name
from tailrace.changefeed.sinks.kafka.kind import KafkaKind
from tailrace.changefeed.sinks.kafka.target import parse_target, shown_uri, topic_parameters
from tests.harness.kafka_reader import MockCluster, Record, read, read_all
from tests.harness.simulation import Simulation


@asynccontextmanager
async def orders(path: Path) -> AsyncIterator[AsyncDatabase]:
    database = await aopen(path / "data")
    try:
        await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING)")
        await database.sql("INSERT INTO orders SELECT g, 'old' FROM generate_series(1, 20) g")
        yield database
    finally:
        await database.close()


async def fed(database: AsyncDatabase, uri: str, options: str, *changes: str) -> None:
    """Runs a feed over the changes, until all of them are acknowledged."""
    created = await database.sql(f"CREATE CHANGEFEED FOR orders INTO '{uri}' WITH {options}")
    ((job_id,),) = created.fetchall()
    assert isinstance(job_id, int)
    for change in ("", *changes):
        if change:
            await database.sql(change)
        async with asyncio.timeout(30):
            await database.feed(job_id).wait_until(await database.node.store.now())


def fnv_1a(key: bytes) -> int:
    found = 2166136261
    for byte in key:
        found = (found ^ byte) * 16777619 % 2**32
    return found


def sarama(key: bytes, partitions: int) -> int:
    """The partition that Sarama's hash partitioner chooses."""
    signed = fnv_1a(key) - 2**32 if fnv_1a(key) >= 2**31 else fnv_1a(key)
    return abs(signed) % partitions


def rows(records: list[Record]) -> list[Record]:
    return [record for record in records if record.key is not None]


def test_records_have_keys_partitions_and_headers(tmp_path: Path) -> None:
    async def scenario(cluster: MockCluster) -> list[Record]:
        async with orders(tmp_path) as database:
            await fed(
                database,
                f"kafka://{cluster.addresses}?topic_prefix=eu_",
                'updated, extra_headers = \'{"origin": "shop"}\'',
                *(f"UPDATE orders SET name = '{name}' WHERE k <= 10" for name in "abc"),
                "DELETE FROM orders WHERE k = 1",
            )
        return await asyncio.to_thread(read, cluster.addresses, "eu_orders", lambda r: len(r) >= 51)

    with MockCluster() as cluster:
        records = asyncio.run(scenario(cluster))
    partitions = 1 + max(record.partition for record in records)
    assert partitions > 1
    assert {record.partition for record in records} == {
        sarama(record.key or b"", 4) for record in records
    }
    assert all(record.partition == sarama(record.key or b"", 4) for record in records)
    assert all(record.headers == (("origin", b"shop"),) for record in records)
    ones = [record.value["after"] for record in records if record.key == b"[1]"]
    assert [one and one["name"] for one in ones] == ["old", "a", "b", "c", None]


def test_a_column_is_the_key_of_messages(tmp_path: Path) -> None:
    """Of a deletion it has the value that the row had. `key_in_value` tells the primary key."""

    async def scenario(cluster: MockCluster) -> list[Record]:
        async with orders(tmp_path) as database:
            await fed(
                database,
                f"kafka://{cluster.addresses}",
                "key_column = 'name', unordered, key_in_value",
                "UPDATE orders SET name = 'new' WHERE k <= 2",
                "UPDATE orders SET name = NULL WHERE k = 1",
                "DELETE FROM orders WHERE k = 2",
            )
        return await asyncio.to_thread(read, cluster.addresses, "orders", lambda r: len(r) >= 24)

    with MockCluster() as cluster:
        records = asyncio.run(scenario(cluster))
    told = [(record.key, record.value["key"][0], record.value["after"]) for record in records]
    scanned = [(key, k) for key, k, after in told if after and after["name"] == "old"]
    assert scanned == [(b'["old"]', k) for k in range(1, 21)]
    assert {key: after for key, k, after in told if k == 1} == {
        b'["old"]': {"k": 1, "name": "old"},
        b'["new"]': {"k": 1, "name": "new"},
        b"[null]": {"k": 1, "name": None},
    }
    assert [key for key, k, after in told if k == 2 and after is None] == [b'["new"]']
    assert all(record.partition == sarama(record.key or b"", 4) for record in records)


def test_a_columns_fields_are_headers(tmp_path: Path) -> None:
    """Beside those that all records have; messages do not show the column."""

    async def scenario(cluster: MockCluster) -> list[Record]:
        async with orders(tmp_path) as database:
            await database.sql("ALTER TABLE orders ADD COLUMN meta JSONB")
            await fed(
                database,
                f"kafka://{cluster.addresses}",
                "headers_json_column_name = 'meta', extra_headers = '{\"origin\": \"shop\"}'",
                """UPDATE orders SET meta = '{"try": 2.50, "trace": "æ", "n": null}' WHERE k = 1""",
                "DELETE FROM orders WHERE k = 1",
                "UPDATE orders SET meta = '[1]' WHERE k = 2",
            )
        return await asyncio.to_thread(read, cluster.addresses, "orders", lambda r: len(r) >= 23)

    with MockCluster() as cluster:
        records = asyncio.run(scenario(cluster))
    own = (("origin", b"shop"), ("n", None), ("try", b"2.50"), ("trace", "æ".encode()))
    scanned, updated, deleted = (record for record in records if record.key == b"[1]")
    assert scanned.headers == own[:1]
    assert set(updated.headers) == set(deleted.headers) == set(own)
    assert updated.value == {"after": {"k": 1, "name": "old"}}
    assert deleted.value == {"after": None}
    assert {record.headers for record in records if record.key == b"[2]"} == {own[:1]}


def test_a_column_that_tables_lack_is_no_key(tmp_path: Path) -> None:
    """Neither at the feed's creation, nor of a table that joins it, nor when it is dropped."""

    async def scenario(cluster: MockCluster) -> None:
        async with orders(tmp_path) as database:
            await database.sql("CREATE TABLE others (k INT PRIMARY KEY)")
            uri = f"kafka://{cluster.addresses}"
            create = f"CREATE CHANGEFEED FOR orders INTO '{uri}' WITH unordered, key_column = "
            ((job_id,),) = (await database.sql(f"{create} 'name'")).fetchall()
            assert isinstance(job_id, int)
            for statement, sqlstate in [
                (f"{create} 'colour'", "42703"),
                (f"{create} 'name', headers_json_column_name = 'colour'", "42703"),
                (f"{create} 'name', headers_json_column_name = 'name'", "42804"),
                (f"{create} 'name', headers_json_column_name = 'name', exactly_once", "0A000"),
                (f"ALTER CHANGEFEED {job_id} ADD others", "42703"),
                (f"ALTER CHANGEFEED {job_id} SET key_column = 'k'", "22023"),
                (f"ALTER CHANGEFEED {job_id} UNSET unordered", "22023"),
            ]:
                with pytest.raises(SQLError) as caught:
                    await database.sql(statement)
                assert caught.value.sqlstate == sqlstate, statement
            await database.sql("ALTER TABLE orders DROP COLUMN name")
            await database.sql("INSERT INTO orders VALUES (21)")
            job = await database.node.jobs.wait(job_id, JobState.FAILED, timeout=30)
            assert 'no column "name", which the option key_column names' in (job.error or "")

    with MockCluster() as cluster:
        asyncio.run(scenario(cluster))


def test_resolved_goes_to_every_partition(tmp_path: Path) -> None:
    def complete(records: list[Record]) -> bool:
        return len({record.partition for record in records if record.key is None}) == 4

    async def scenario(cluster: MockCluster) -> list[Record]:
        async with orders(tmp_path) as database:
            config = """'{"Compression": "LZ4", "RequiredAcks": "ONE", "ClientID": "shop"}'"""
            await fed(
                database,
                f"kafka://{cluster.addresses}?topic_name=all",
                f"resolved, topic_in_value, kafka_sink_config = {config}, "
                "partition_alg = 'murmur2', extra_headers = '{\"origin\": \"shop\"}'",
            )
            return await asyncio.to_thread(read, cluster.addresses, "all", complete)

    with MockCluster() as cluster:
        records = asyncio.run(scenario(cluster))
    for partition in range(4):
        kinds = [record.key is None for record in records if record.partition == partition]
        assert kinds == sorted(kinds), "a resolved record came before what it speaks for"
    assert {record.value["after"]["k"] for record in rows(records)} == set(range(1, 21))
    assert {record.value["topic"] for record in rows(records)} == {"orders"}
    assert {record.headers for record in records} == {(("origin", b"shop"),)}


def test_configurations_that_will_not_do_are_refused(tmp_path: Path) -> None:
    """Before any broker is asked."""

    async def scenario() -> None:
        async with orders(tmp_path) as database:
            for config, words in [
                ('{"CompressionLevel": 3}', "Compression NONE has no CompressionLevel"),
                ('{"Compression": "SNAPPY", "CompressionLevel": 0}', "SNAPPY has no Compression"),
                ('{"Compression": "GZIP", "CompressionLevel": 10}', "of GZIP is at most 9"),
                ('{"requiredacks": 2}', "RequiredAcks is one of NONE, ONE, ALL, not 2"),
                ('{"Flush": {"Bytes": 1, "bytes": 2}}', "Flush has a field twice"),
            ]:
                with pytest.raises(SQLError, match=words):
                    await database.sql(
                        "CREATE CHANGEFEED FOR orders INTO 'kafka://127.0.0.1:9' "
                        f"WITH kafka_sink_config = '{config}'"
                    )

    asyncio.run(scenario())


def test_exactly_once_is_chosen_at_the_beginning(tmp_path: Path) -> None:
    async def scenario(cluster: MockCluster) -> None:
        async with orders(tmp_path) as database:
            create = f"CREATE CHANGEFEED FOR orders INTO 'kafka://{cluster.addresses}' WITH "
            refused = [
                ('{"RequiredAcks": "ONE"}', "exactly_once does not go with RequiredAcks ONE"),
                ('{"Flush": {"MaxMessages": 7}}', "exactly_once does not go with Flush"),
            ]
            for config, words in refused:
                with pytest.raises(SQLError, match=words):
                    await database.sql(f"{create} exactly_once, kafka_sink_config = '{config}'")
            created = await database.sql(create + "updated, paused")
            ((job_id,),) = created.fetchall()
            with pytest.raises(SQLError, match="exactly_once cannot be altered"):
                await database.sql(f"ALTER CHANGEFEED {job_id!r} SET exactly_once")

    with MockCluster() as cluster:
        asyncio.run(scenario(cluster))


def test_brokers_that_do_not_answer_are_told_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as database:
            with pytest.raises(SQLError, match=r"Kafka at 127.0.0.1:1: .*refused") as caught:
                await fed(database, "kafka://127.0.0.1:1", "updated")
            assert caught.value.sqlstate == "08001"

    asyncio.run(scenario())


BAD_URIS = [
    ("kafka://", "brokers"),
    ("kafka://u:kanari@h", "brokers"),
    ("kafka://h/path", "no path"),
    ("kafka://h?topic_name=", "no value"),
    ("kafka://h?colour=kanari", "unknown parameter 'colour'"),
    ("kafka://h?ca_cert=AAAA", "tls_enabled"),
    ("kafka://h?tls_enabled=yes", "true or false"),
    ("kafka://h?tls_enabled=true&ca_cert=AAAA", "ca_cert is no certificate in PEM"),
    ("kafka://h?tls_enabled=true&client_cert=AAAA", "client_cert and client_key go together"),
    (
        "kafka://h?tls_enabled=true&client_cert=AAAA&client_key=AAAA",
        "client_cert and client_key are no pair",
    ),
    ("kafka://h?sasl_user=a", "sasl_enabled"),
    ("kafka://h?sasl_enabled=true&sasl_user=a", "sasl_password is missing"),
    ("kafka://h?sasl_enabled=true&sasl_mechanism=AWS_MSK_IAM", "sasl_mechanism is one of"),
    ("confluent-cloud://h?api_key=a", "api_secret is missing"),
    ("azure-event-hub://h?shared_access_key_name=a", "shared_access_key is missing"),
]


@pytest.mark.parametrize(("uri", "words"), BAD_URIS)
def test_uris_that_will_not_do_are_refused(uri: str, words: str) -> None:
    with pytest.raises(SQLError, match=words) as caught:
        parse_target(uri)
    assert caught.value.sqlstate == "22023"
    assert "kanari" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    text = (
        "kafka://b1:9092,[::1]:9093?sasl_enabled=true&sasl_user=ada&sasl_password=kanari%26"
        "&sasl_mechanism=SCRAM-SHA-256&tls_enabled=true"
    )
    target = parse_target(text)
    assert target.brokers == ("b1:9092", "[::1]:9093")
    assert target.client == {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "ada",
        "sasl.password": "kanari&",
    }
    assert "kanari" not in shown_uri(text) + repr(target)
    assert shown_uri(text).startswith("kafka://b1:9092,[::1]:9093?sasl_enabled=true&sasl_user=ada&")
    assert shown_uri(shown_uri(text)) == shown_uri(text)


CLOUDS = {
    "azure-event-hub://ns.x?shared_access_key_name=n&shared_access_key=kanari%3D": (
        "ns.x:9093",
        "$ConnectionString",
        "Endpoint=sb://ns.x/;SharedAccessKeyName=n;SharedAccessKey=kanari=",
    ),
    "confluent-cloud://pkc.x?api_key=n%2B&api_secret=kanari%3D": ("pkc.x:9092", "n+", "kanari="),
}


@pytest.mark.parametrize("text", CLOUDS)
def test_clouds_are_kafka_with_a_login(text: str) -> None:
    broker, user, password = CLOUDS[text]
    target = parse_target(text)
    assert target.brokers == (broker,)
    assert target.client == {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }
    assert "kanari" not in shown_uri(text) + repr(target)
    prefixed = f"{text}&topic_prefix=eu_&topic_name=all"
    assert parse_target(prefixed).topic_prefix == "eu_"
    named = {"topic_prefix": "eu_", "topic_name": "all"}
    assert topic_parameters(prefixed) == topic_parameters(shown_uri(prefixed)) == named
    with pytest.raises(SQLError, match="unknown parameter 'tls_enabled'"):
        parse_target(f"{text}&tls_enabled=false")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ("orders", "a_u0020_b")),
        ("?topic_prefix=eu%20", ("eu_u0020_orders", "eu_u0020_a_u0020_b")),
        ("?topic_prefix=eu_&topic_name=all", ("eu_all",)),
    ],
)
def test_a_feeds_topics_are_shown_as_they_are_called(query: str, names: tuple[str, ...]) -> None:
    full_names = {1: "shop.public.orders", 2: 'shop.public."a b"'}
    kind = KafkaKind(Simulation(1).offload)
    shown = kind.topic_names(f"kafka://b1:9092,b2:9092{query}", full_names, ChangefeedOptions())
    assert shown == names


def test_names_of_tables_become_names_of_topics() -> None:
    assert topic_name("shop.public.orders-1_x") == "shop.public.orders-1_x"
    assert topic_name("a b☃") == "a_u0020_b_u2603_"
    assert topic_name("..") == "_u002e__u002e_"


def test_a_record_that_is_too_large_is_a_dead_letter(tmp_path: Path) -> None:
    """It is the broker that says so: how much it takes is not the sink's to know."""

    async def scenario(cluster: MockCluster) -> list[Record]:
        async with orders(tmp_path) as database:
            created = await database.sql(
                f"CREATE CHANGEFEED FOR orders INTO 'kafka://{cluster.addresses}' "
                "WITH on_bad_row = 'dead_letter'"
            )
            ((job_id,),) = created.fetchall()
            assert isinstance(job_id, int)
            for k, size in ((21, 2_000_000), (22, 3_000_000), (23, 1)):
                await database.feed(job_id).wait_until(await database.node.store.now())
                for _ in range(2 if k == 22 else 0):  # the second time it is sent alone
                    cluster.refuse_a_record(KafkaError.MSG_SIZE_TOO_LARGE, after_ms=0)
                await database.sql(f"INSERT INTO orders VALUES ({k}, repeat('x', {size}))")
            await database.feed(job_id).wait_until(await database.node.store.now())
            letters = await database.sql("SELECT key, error FROM system.dead_letters")
            ((key, error),) = letters.fetchall()
            assert key == "[22]"
            assert "too large" in str(error)
        return await asyncio.to_thread(read, cluster.addresses, "orders", lambda r: len(r) >= 22)

    with MockCluster(brokers=1) as cluster:
        keys = {record.key for record in rows(asyncio.run(scenario(cluster)))}
    assert keys == {b"[%d]" % k for k in range(1, 24) if k != 22}


def test_a_batch_that_is_too_large_goes_in_parts(tmp_path: Path) -> None:
    """A broker speaks of all that a request holds for a partition, and no record of it is."""

    async def scenario(cluster: MockCluster) -> list[Record]:
        async with orders(tmp_path) as database:
            created = await database.sql(
                f"CREATE CHANGEFEED FOR orders INTO 'kafka://{cluster.addresses}'"
            )
            ((job_id,),) = created.fetchall()
            assert isinstance(job_id, int)
            await database.feed(job_id).wait_until(await database.node.store.now())
            cluster.refuse_a_record(KafkaError.MSG_SIZE_TOO_LARGE, after_ms=0)
            await database.sql("INSERT INTO orders SELECT g, 'x' FROM generate_series(21, 200) g")
            await database.feed(job_id).wait_until(await database.node.store.now())
        return await asyncio.to_thread(read_all, cluster.addresses, "orders")

    with MockCluster(brokers=1) as cluster:
        keys = {record.key for record in asyncio.run(scenario(cluster))}
    assert keys == {b"[%d]" % k for k in range(1, 201)}
