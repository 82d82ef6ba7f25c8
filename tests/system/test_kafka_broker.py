"""Changefeeds into a real broker of Apache Kafka that is killed, read back by a consumer."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest

from tests.harness.documented import documented_sql
from tests.harness.kafka_process import PASSWORD, USER, KafkaProcess
from tests.harness.kafka_reader import Record, read, read_all
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ROWS, OLD = 120, -2000
"""What is written while either side dies, and what was there before, by the numbers of rows."""

TOPICS = ("shop_orders", "ledger_orders")
RUNS = int(os.environ.get("TAILRACE_KAFKA_RUNS", "1"))
"""How many seeds are tried: each is a moment at which either side dies."""


def documented(address: str) -> list[str]:
    """The commands of docs/sinks.md, word for word but for the broker: a feed that tells each
    change at least once into shop_orders, and one that tells it once into ledger_orders."""
    return [command.replace("127.0.0.1:9092", address) for command in documented_sql("Kafka")]


def wait_for(server: ServerProcess, what: str) -> None:
    deadline = time.monotonic() + 12
    while what not in (shown := str(server.rows("SHOW CHANGEFEED JOBS"))):
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)


@pytest.mark.parametrize("seed", range(RUNS))
def test_no_record_is_lost_nor_doubled_by_kill_9_of_either_side(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    broker_dies, server_dies = random.randrange(ROWS), random.randrange(ROWS)
    with KafkaProcess(tmp_path / "kafka") as broker:
        with ServerProcess(tmp_path / "data") as server:
            server.sql("CREATE TABLE orders (k INT8 PRIMARY KEY, n INT8)")
            server.sql(f"INSERT INTO orders SELECT 1000 - g, g FROM generate_series({OLD}, -1) g")
            server.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.3s'")
            for command in documented(broker.address):
                server.sql(command)
            for number in range(ROWS):
                server.sql(f"UPSERT INTO orders VALUES ({number % 7}, {number})")
                if number == broker_dies:
                    broker.kill()
                    broker.start()
                if number == server_dies:
                    server.kill()
                    server.start()
            server.sql(f"INSERT INTO orders VALUES (100, {ROWS})")
            server.wait_for_feeds(str(server.rows("SELECT cluster_logical_timestamp()")[0][0]))
            for job_id, *_ in server.rows("SHOW CHANGEFEED JOBS"):
                server.sql(f"SELECT wait_for_changefeed({job_id})")
            for topic in TOPICS:
                read(broker.address, topic, resolved_everywhere)
        for topic in TOPICS:
            records = read_all(broker.address, topic)
            check(records, once=topic == "ledger_orders")


def resolved_everywhere(records: list[Record]) -> bool:
    """Whether each partition has a resolved record."""
    return len({record.partition for record in records if record.key is None}) == 4


def check(records: list[Record], *, once: bool) -> None:
    """Every version is there; each is first seen in order, and before any resolved record of its
    partition that speaks for it. None is there twice where each is to be there `once`."""
    seen: dict[bytes, dict[str, int]] = {}
    partitions: dict[bytes, int] = {}
    marks: dict[int, str] = {}
    for record in records:
        partition, key, value = record.partition, record.key, record.value
        if key is None:
            marks[partition] = max(marks.get(partition, ""), value["resolved"])
            continue
        assert partitions.setdefault(key, partition) == partition, record
        at, versions = value["updated"], seen.setdefault(key, {})
        assert not once or at not in versions, f"twice: {record}"
        if at not in versions:
            assert at > max(versions, default=""), f"goes back: {record}"
            assert at > marks.get(partition, ""), f"behind a resolved record: {record}"
        versions[at] = value["after"]["n"]
    found = sorted(n for versions in seen.values() for n in versions.values())
    lost = set(range(OLD, ROWS + 1)) - set(found)
    assert not lost, (lost, [record for record in records if record.key is not None][:50])


def test_what_the_broker_refuses_ends_the_feed(tmp_path: Path) -> None:
    with (
        KafkaProcess(tmp_path / "kafka") as broker,
        ServerProcess(tmp_path / "data") as server,
    ):
        server.sql("CREATE TABLE orders (k INT8 PRIMARY KEY, v STRING)")
        uri = f"kafka://{broker.login_address}?sasl_enabled=true&sasl_user={USER}&sasl_password="
        create = {"sql": f"CREATE CHANGEFEED FOR orders INTO '{uri}kanari'"}
        refused = server.client.post(f"{server.url}/v1/sql", json=create).text
        assert f"Kafka at {broker.login_address}" in refused and "Authentication failed" in refused
        server.sql(f"CREATE CHANGEFEED FOR orders INTO '{uri}{quote(PASSWORD)}'")
        server.sql("INSERT INTO orders VALUES (1, 'of a topic that is deleted')")
        job_id = server.rows("SHOW CHANGEFEED JOBS")[0][0]
        server.sql(f"SELECT wait_for_changefeed({job_id})")
        broker.drop_topic("orders")
        server.sql("INSERT INTO orders VALUES (2, 'of the topic that came after it')")
        server.sql(f"SELECT wait_for_changefeed({job_id})")
        assert [record.key for record in read_all(broker.address, "orders")] == [b"[2]"]
        broker.make_topic("small_orders", **{"max.message.bytes": "2000"})
        server.sql(f"INSERT INTO orders VALUES (3, '{'x' * 5000}')")
        small = f"{uri}{quote(PASSWORD)}&topic_prefix=small_"
        server.sql(f"CREATE CHANGEFEED FOR orders INTO '{small}'")
        wait_for(server, "failed")
        place = f"Kafka at {broker.login_address}: topic small_orders"
        wait_for(server, f"{place}: Broker: Message size too large")
        once = f"kafka://{broker.address}?topic_prefix=once%20"
        created = f"CREATE CHANGEFEED FOR orders INTO '{once}' WITH exactly_once"
        job_id = server.rows(created)[0][0]
        server.sql(f"SELECT wait_for_changefeed({job_id})")
        [topic] = [name for name in broker.topics() if name.endswith("-progress")]
        assert topic.startswith("once_u0020_tailrace-"), topic
        server.sql(f"PAUSE JOB {job_id}")
        wait_for(server, "'paused'")
        broker.drop_topic(topic)
        server.sql(f"RESUME JOB {job_id}")
        wait_for(server, f"the topic {topic} no longer tells how far the changefeed has come")
        assert "kanari" not in refused + str(server.rows("SHOW CHANGEFEED JOBS")) + server.errors()
