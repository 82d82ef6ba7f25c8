"""The topic that tells how far a feed has come: its last record that is committed.

Each feed has one of its own, with one partition, so that no other's transaction stands before what
it is to read. It is compacted, and all its records have one key.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from ....kvlayer.clock import Timestamp
from ....kvlayer.history import StorePosition
from ....kvlayer.process.offload import Offload
from ....kvlayer.span import Span
from ...encode.topics import topic_name
from ..delivery import Message
from ..mirror.progress_encoding import Fenced
from ..protocol import FeedIdentity, SinkError, SinkProgress, SinkRefused, SinkStand
from .sender import told
from .target import KafkaTarget

T = TypeVar("T")

ANSWER_SECONDS = 10.0
TAIL_RECORDS = 100
"""Records at the end that are read first: each transaction has one and a mark of its end."""

POLICY = "cleanup.policy"
COMPACT = "compact"
CONFIG = {POLICY: COMPACT, "segment.bytes": str(64 << 20)}
"""Brokers compact segments that are full: each checkpoint is a record."""


class _Record(msgspec.Struct):
    epoch: int
    resolved: int
    scan_complete: bool
    incarnation: str
    index: int
    frontier: list[tuple[str, str, int]]


class ProgressTopic:
    """The progress of one feed. Calls of brokers are made in a lane of its own."""

    def __init__(
        self,
        target: KafkaTarget,
        client: dict[str, Any],
        identity: FeedIdentity,
        offload: Offload,
    ) -> None:
        """`client` is librdkafka's configuration of a client of the cluster."""
        self.feed = feed_name(identity)
        self.name = topic_name(f"{target.topic_prefix}{self.feed}-progress")
        self._shown = f"{target.shown}: topic {self.name}"
        self._client = client
        self._identity = identity
        self._lane = offload.lane("kafka-progress")

    async def read(self) -> SinkStand | None:
        """The progress of the feed; None where it has told none. Makes the topic.

        No transaction of the feed may be under way. Raises Fenced where a greater epoch has told.
        """
        if await self._run(self._made):
            return None
        value = await self._run(self._last)
        if value is None:
            return None
        record = msgspec.json.decode(value, type=_Record)
        if record.epoch > self._identity.epoch:
            raise Fenced(
                f"fenced: epoch {record.epoch} of job {self._identity.job_id} has fed Kafka, and "
                f"this is epoch {self._identity.epoch}"
            )
        return SinkStand(
            progress=SinkProgress(
                frontier=tuple(
                    (Span(bytes.fromhex(start), bytes.fromhex(end)), Timestamp(at))
                    for start, end, at in sorted(record.frontier)
                ),
                resolved=Timestamp(record.resolved),
                scan_complete=record.scan_complete,
            ),
            position=StorePosition(incarnation=record.incarnation, index=record.index),
        )

    def record(self, stand: SinkStand) -> Message:
        """The message that tells it."""
        progress, position = stand.progress, stand.position
        value = _Record(
            epoch=self._identity.epoch,
            resolved=progress.resolved,
            scan_complete=progress.scan_complete,
            incarnation=position.incarnation,
            index=position.index,
            frontier=[(span.start.hex(), span.end.hex(), at) for span, at in progress.frontier],
        )
        return Message(self.name, self.feed.encode(), msgspec.json.encode(value))

    async def close(self) -> None:
        await self._lane.run(lambda: None)  # behind what may be under way
        self._lane.close()

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call)
        except KafkaException as error:
            raise SinkError(f"{self._shown}: {told(error.args[0])}") from None

    # In the lane

    def _made(self) -> bool:
        """Whether the topic was not there, and is now."""
        admin = AdminClient(self._client)
        made = admin.create_topics([NewTopic(self.name, 1, config=CONFIG)])
        try:
            made[self.name].result(ANSWER_SECONDS)
            return True
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        topic = ConfigResource(ResourceType.TOPIC, self.name)
        policy = admin.describe_configs([topic])[topic].result(ANSWER_SECONDS)[POLICY].value
        if policy != COMPACT:
            raise SinkRefused(
                f"{self._shown} has {POLICY}={policy}, and loses the feed's progress: set it to "
                f"{COMPACT}"
            )
        return False

    def _last(self) -> bytes | None:
        """The value of the last record that is committed."""
        consumer = Consumer(
            {
                **self._client,
                "group.id": self.feed,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            partition = TopicPartition(self.name, 0)
            low, high = consumer.get_watermark_offsets(partition, timeout=ANSWER_SECONDS)
            tail = max(low, high - TAIL_RECORDS)
            last = self._read(consumer, tail)
            return self._read(consumer, low) if last is None and tail > low else last
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, offset: int) -> bytes | None:
        """The last record's value from `offset` on."""
        consumer.assign([TopicPartition(self.name, 0, offset)])
        last: bytes | None = None
        deadline = time.monotonic() + ANSWER_SECONDS
        while (record := consumer.poll(ANSWER_SECONDS)) is not None:
            error = record.error()
            if error is None:
                value = record.value()
                last = value.encode() if isinstance(value, str) else value
                deadline = time.monotonic() + ANSWER_SECONDS
            elif error.code() == KafkaError._PARTITION_EOF:
                return last
            elif time.monotonic() > deadline:
                break
        raise SinkError(f"{self._shown} was not read to its end within {ANSWER_SECONDS:g} s")


def feed_name(identity: FeedIdentity) -> str:
    """A feed among all that a cluster of Kafka has: its transactional id."""
    return f"tailrace-{identity.store_id}-{identity.job_id}"
