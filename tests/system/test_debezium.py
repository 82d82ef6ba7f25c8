"""Debezium's CockroachDB connector, as it is published, reads a store's tables through a changefeed
that it creates: killed and started again, it hands on every change.

A connector, Kafka Connect, a broker and a store are four programs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.kafka_connect import DEBEZIUM, KafkaConnect, connect_jars
from tests.harness.kafka_process import KafkaProcess
from tests.harness.kafka_reader import Record, read_all
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

PATIENCE_SECONDS = 60.0


def properties(server: ServerProcess, brokers: str) -> dict[str, str]:
    return {
        "name": "shop",
        "connector.class": "io.debezium.connector.cockroachdb.CockroachDBConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.pg_port),
        "database.user": "root",
        "database.password": "any",
        "database.dbname": "defaultdb",
        "database.sslmode": "disable",
        "database.server.name": "shop",
        "topic.prefix": "shop",
        "table.include.list": "public.orders",
        "snapshot.mode": "initial",
        "cockroachdb.changefeed.sink.uri": f"kafka://{brokers}",
        "cockroachdb.changefeed.kafka.bootstrap.servers": brokers,
        "cockroachdb.changefeed.resolved.interval": "1s",
        "cockroachdb.changefeed.include.diff": "true",
    }


def handed_on(
    kafka: KafkaProcess, connect: KafkaConnect, done: Callable[[list[Record]], bool]
) -> list[Record]:
    """What the connector has written of the table, when that is all that was waited for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        assert connect.running, connect.log[-4000:]
        if "shop.public.orders" in kafka.topics():
            records = [each for each in read_all(kafka.address, "shop.public.orders") if each.raw]
            if done(records):
                return records
            assert time.monotonic() < deadline, records
        assert time.monotonic() < deadline, connect.log[-4000:]
        time.sleep(0.2)


def of(records: list[Record], id: int) -> list[tuple[str, Any]]:
    """The operations on one row and the names that they left."""
    messages = [json.loads(each.raw or b"") for each in records if each.key == b'{"id":%d}' % id]
    return [(each["op"], (each["after"] or {}).get("customer_name")) for each in messages]


def test_debezium_hands_every_change_on(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, KafkaProcess(tmp_path / "kafka") as kafka:
        server.sql("SET CLUSTER SETTING kv.rangefeed.enabled = true")
        server.sql(
            "CREATE TABLE orders (id INT PRIMARY KEY, customer_name STRING NOT NULL, "
            "amount DECIMAL(10,2))"
        )
        server.sql("INSERT INTO orders SELECT g, 'Alice', g FROM generate_series(1, 200) g")
        with KafkaConnect(
            tmp_path / "connect",
            kafka.address,
            properties(server, kafka.address),
            jars=connect_jars(DEBEZIUM),
        ) as connect:
            records = handed_on(kafka, connect, lambda found: len(found) >= 200)
            for id in range(1, 201):
                [(operation, name)] = of(records, id)
                assert (operation in "cr", name) == (True, "Alice"), "r: read by its snapshot"
            connect.kill()
            server.sql("UPDATE orders SET customer_name = 'Bob' WHERE id = 1")
            server.sql("DELETE FROM orders WHERE id = 2")
            connect.start()
            server.sql("INSERT INTO orders VALUES (201, 'Carol', 320.00)")
            records = handed_on(
                kafka,
                connect,
                lambda found: bool(of(found, 201)) and ("d", None) in of(found, 2)
                and ("u", "Bob") in of(found, 1),
            )  # fmt: skip
        assert of(records, 1)[-1] == ("u", "Bob")
        assert of(records, 2)[-1] == ("d", None)
        [jobs] = server.rows("SELECT count(*) FROM [SHOW CHANGEFEED JOBS]")
        assert jobs == [1], "a connector that starts again made another feed"
