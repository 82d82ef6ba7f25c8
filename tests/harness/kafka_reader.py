"""Reads topics of Kafka by a consumer, and a cluster of librdkafka's own for tests."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    partition: int
    key: bytes | None
    raw: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def value(self) -> Any:
        """What the JSON says; None where there is no value."""
        return None if self.raw is None else json.loads(self.raw)


PRODUCE, INIT_PRODUCER_ID = 0, 22
"""Kafka's numbers of the requests that write records, and that name a producer."""


class MockCluster:
    """Brokers on loopback inside of a client of librdkafka; topics are made when they are used."""

    def __init__(self, brokers: int = 2) -> None:
        self._owner = Producer({"test.mock.num.brokers": brokers, "log_level": 0})
        self._brokers = self._owner.list_topics(timeout=10).brokers
        self.addresses = ",".join(
            f"{broker.host}:{broker.port}" for broker in self._brokers.values()
        )

    def refuse_a_record(self, error: int, *, after_ms: int) -> None:
        """Each broker answers the next request to write records with `error`, so late, and writes
        nothing."""
        self._refuse(PRODUCE, error, after_ms)

    def refuse_a_producer(self, error: int, *, after_ms: int) -> None:
        """Likewise the next request for the id of a producer."""
        self._refuse(INIT_PRODUCER_ID, error, after_ms)

    def _refuse(self, request: int, error: int, after_ms: int) -> None:
        library, cluster = self._library()
        push = library.rd_kafka_mock_broker_push_request_error_rtts
        for broker in self._brokers:
            pushed = push(
                cluster, broker, ctypes.c_int16(request), ctypes.c_size_t(1), error, after_ms
            )
            assert pushed == 0, pushed

    def answer_of_topic(self, topic: str, error: int) -> None:
        """Whoever asks where a topic is hears of `error`, until that is KafkaError.NO_ERROR."""
        library, cluster = self._library()
        library.rd_kafka_mock_topic_set_error(cluster, topic.encode(), error)

    def _library(self) -> tuple[ctypes.CDLL, ctypes.c_void_p]:
        """librdkafka, and its handle of the cluster."""
        [path] = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*")
        library = ctypes.CDLL(str(path))
        library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
        # The client's handle is the first field of the Python object, behind its header.
        handle = ctypes.c_void_p.from_address(id(self._owner) + object.__basicsize__)
        return library, ctypes.c_void_p(library.rd_kafka_handle_mock_cluster(handle))

    def __enter__(self) -> MockCluster:
        return self

    def __exit__(self, *_: object) -> None:
        del self._owner


def read(brokers: str, topic: str, done: Callable[[list[Record]], bool]) -> list[Record]:
    """All records of the topic, in order for each partition, until `done` says so of them."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": f"reader-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    records: list[Record] = []
    deadline = time.monotonic() + 30
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        while not done(records):
            assert time.monotonic() < deadline, records[-5:]
            message = consumer.poll(0.1)
            if message is not None:
                records.append(_record(message))
    finally:
        consumer.close()
    return records


def read_all(brokers: str, topic: str) -> list[Record]:
    """All committed records that a topic has now, in order for each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": f"reader-{time.monotonic_ns()}",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    records: list[Record] = []
    deadline = time.monotonic() + 30
    try:
        left = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in left])
        while left:
            assert time.monotonic() < deadline, left
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                records.append(_record(message))
    finally:
        consumer.close()
    return records


def _record(message: Message) -> Record:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    value, key = message.value(), message.key()
    headers: Any = message.headers() or ()
    return Record(
        topic=str(message.topic()),
        partition=int(message.partition() or 0),
        key=key if key is None or isinstance(key, bytes) else key.encode(),
        raw=value if value is None or isinstance(value, bytes) else value.encode(),
        headers=tuple(headers),
    )
