"""Reads topics of Kafka by a consumer, and a cluster of librdkafka's own for tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
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
    value: Any
    """What the JSON says; None where there is no value."""
    headers: tuple[tuple[str, bytes], ...] = ()


class MockCluster:
    """Brokers on loopback inside of a client of librdkafka; topics are made when they are used."""

    def __init__(self, brokers: int = 2) -> None:
        self._owner = Producer({"test.mock.num.brokers": brokers, "log_level": 0})
        found = self._owner.list_topics(timeout=10).brokers.values()
        self.addresses = ",".join(f"{broker.host}:{broker.port}" for broker in found)

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
    """All records that a topic has now, in order for each partition."""
    probe = Consumer({"bootstrap.servers": brokers, "group.id": "probe", "log_level": 0})
    partitions = probe.list_topics(topic, timeout=10).topics[topic].partitions
    ends = {
        each: probe.get_watermark_offsets(TopicPartition(topic, each), timeout=10)
        for each in partitions
    }
    probe.close()
    count = sum(end[1] - end[0] for end in ends.values() if end is not None)
    return read(brokers, topic, lambda records: len(records) >= count)


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
        value=None if value is None else json.loads(value),
        headers=tuple(headers),
    )
