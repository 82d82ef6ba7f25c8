"""Changefeeds into a real broker of Apache Kafka that is killed, read back by a consumer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.harness.kafka_process import KafkaProcess
from tests.harness.kafka_reader import Record, read_all
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ROWS = 120


def documented(address: str) -> str:
    """The command of docs/sinks.md, word for word but for the broker."""
    text = Path("docs/sinks.md").read_text()
    start = text.index("CREATE CHANGEFEED FOR TABLE orders INTO 'kafka:")
    return text[start : text.index("```", start)].replace("127.0.0.1:9092", address)


def wait_for(server: ServerProcess, what: str) -> None:
    deadline = time.monotonic() + 12
    while what not in (shown := str(server.rows("SHOW CHANGEFEED JOBS"))):
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)


def test_no_record_is_lost_by_kill_9_of_either_side(tmp_path: Path) -> None:
    with KafkaProcess(tmp_path / "kafka") as broker:
        server = ServerProcess(tmp_path / "data")
        with server:
            server.sql("CREATE TABLE orders (k INT8 PRIMARY KEY, n INT8)")
            server.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.3s'")
            server.sql(documented(broker.address))
            for number in range(ROWS):
                server.sql(f"UPSERT INTO orders VALUES ({number % 7}, {number})")
                if number == ROWS // 2:
                    broker.kill()
                    broker.start()
            server.kill()
        with ServerProcess(tmp_path / "data") as server:
            server.sql(f"INSERT INTO orders VALUES (100, {ROWS})")
            server.wait_for_feeds(str(server.rows("SELECT cluster_logical_timestamp()")[0][0]))
            server.sql(f"SELECT wait_for_changefeed({server.rows('SHOW CHANGEFEED JOBS')[0][0]})")
        check(read_all(broker.address, "shop_orders"))


def check(records: list[Record]) -> None:
    """Every version is there; each is first seen in order, and before any resolved record of its
    partition that speaks for it."""
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
        if at not in versions:
            assert at > max(versions, default=""), f"goes back: {record}"
            assert at > marks.get(partition, ""), f"behind a resolved record: {record}"
        versions[at] = value["after"]["n"]
    found = sorted(n for versions in seen.values() for n in versions.values())
    lost = set(range(ROWS + 1)) - set(found)
    assert not lost, (lost, [record for record in records if record.key is not None][:50])
    assert len(marks) == 4, "a resolved record goes to every partition"


def test_what_the_broker_refuses_ends_the_feed(tmp_path: Path) -> None:
    with (
        KafkaProcess(tmp_path / "kafka") as broker,
        ServerProcess(tmp_path / "data") as server,
    ):
        broker.make_topic("orders", **{"max.message.bytes": "2000"})
        server.sql("CREATE TABLE orders (k INT8 PRIMARY KEY, v STRING)")
        server.sql(f"CREATE CHANGEFEED FOR orders INTO 'kafka://{broker.address}'")
        server.sql(f"INSERT INTO orders VALUES (1, '{'x' * 5000}')")
        wait_for(server, "failed")
        wait_for(server, f"Kafka at {broker.address}: Broker: Message size too large")
