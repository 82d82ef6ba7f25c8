"""Sends batches to Kafka by librdkafka, which has threads of its own.

    send -> produce (a queue of librdkafka) -> brokers
            poll (a thread of ours) <- acknowledgements -> the future that `send` waits for

Order: the producer is idempotent, and no record is ever too old for it to send. A batch that takes
too long, or of which a record is refused, ends the attempt, and with it everything that is queued.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer

from ....kvlayer.offload import Offload
from ...contract.options import ChangefeedOptions, PartitionAlgorithm
from ...contract.sink_config import Acks
from ..delivery import Message
from ..protocol import SinkError, SinkRefused
from .target import KafkaTarget

T = TypeVar("T")

CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.5
SEND_SECONDS = 30.0
"""A batch that no broker has acknowledged by then is the feed's to send again."""

POLL_SECONDS = 0.1
"""How long the thread waits for an acknowledgement before it looks whether it is to end."""

PARTITIONERS = {PartitionAlgorithm.FNV_1A: "fnv1a", PartitionAlgorithm.MURMUR2: "murmur2"}

REFUSALS = frozenset(
    {
        KafkaError.INVALID_RECORD,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.POLICY_VIOLATION,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.TOPIC_EXCEPTION,
    }
)
"""Errors that come again whenever the record does."""

TOPIC_BYTES_MAX = 249
_NOT_OF_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")


class KafkaSender:
    """One attempt of one feed, with a producer and a thread."""

    resolved_by_topic = True

    def __init__(self, target: KafkaTarget, options: ChangefeedOptions, offload: Offload) -> None:
        self._target = target
        self._lane = offload.lane("kafka")
        self._headers = list(options.extra_headers.items())
        self._said = ""
        """What librdkafka said last of its connections."""
        self._configuration = {
            **_configuration(target, options),
            "error_cb": self._note_error,
        }
        self._producer: Producer | None = None
        self._polling: asyncio.Task[None] | None = None
        self._topics: dict[str, str] = {}

    async def open(self) -> None:
        """Returns when a broker has answered."""
        try:
            self._producer = producer = Producer(self._configuration)
        except KafkaException as error:
            raise SinkRefused(f"{self._target.shown}: {error.args[0].str()}") from None
        await self._run(partial(self._reach, producer))
        self._polling = asyncio.create_task(self._poll(producer))

    async def send(self, messages: Sequence[Message]) -> None:
        producer = self._producer
        assert producer is not None, "not open"
        batch = _Batch(len(messages))
        named: dict[str, Any] = {"headers": self._headers} if self._headers else {}
        try:
            for message in messages:
                producer.produce(
                    self._topic(message.topic),
                    message.value,
                    message.key,
                    on_delivery=batch.note,
                    **named,
                )
        except KafkaException as error:
            raise self._error(error.args[0]) from None
        await self._delivered(batch)

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        """One record for each partition of the topic, as many as there are by now."""
        producer = self._producer
        assert producer is not None and topic is not None, "not open"
        name = self._topic(topic)
        found = await self._run(partial(producer.list_topics, name, timeout=CONNECT_SECONDS))
        metadata = found.topics[name]
        if metadata.error is not None:
            raise self._error(metadata.error)
        batch = _Batch(len(metadata.partitions))
        for partition in metadata.partitions:
            producer.produce(name, value, partition=partition, on_delivery=batch.note)
        await self._delivered(batch)

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
        producer, self._producer = self._producer, None
        if producer is not None:
            await self._lane.run(partial(_discard, producer))
        self._lane.close()

    def _reach(self, producer: Producer) -> None:
        """Returns when a broker has answered. Raises KafkaException when none has by the end of
        the time, or as soon as librdkafka has said why."""
        for _ in range(round(CONNECT_SECONDS / LOOK_SECONDS)):
            try:
                producer.list_topics(timeout=LOOK_SECONDS)
                return
            except KafkaException as error:
                failure = error
                producer.poll(0)  # calls `_note_error`
                if self._said:
                    break
        raise failure

    async def _poll(self, producer: Producer) -> None:
        while True:
            await self._run(partial(producer.poll, POLL_SECONDS))

    async def _delivered(self, batch: _Batch) -> None:
        """Returns when all of the batch is acknowledged. A producer that can go on no more raises
        that where it is polled."""
        assert self._polling is not None, "not open"
        either: list[asyncio.Future[Any]] = [batch.delivered, self._polling]
        await asyncio.wait(
            either,
            timeout=SEND_SECONDS,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if batch.delivered.done():
            error = batch.delivered.result()
            if error is not None:
                raise self._error(error)
        elif self._polling.done():
            self._polling.result()
        else:
            said = f": {self._said}" if self._said else ""
            raise SinkError(
                f"{self._target.shown}: not acknowledged within {SEND_SECONDS:g} s{said}"
            )

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call)
        except KafkaException as error:
            raise self._error(error.args[0]) from None

    def _note_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._said:
            self._said = error.str()

    def _error(self, error: KafkaError) -> SinkError | SinkRefused:
        said = f": {self._said}" if self._said and self._said != error.str() else ""
        words = f"{self._target.shown}: {error.str()}{said}"
        return SinkRefused(words) if error.code() in REFUSALS else SinkError(words)

    def _topic(self, name: str) -> str:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = topic_name(name)
        return found


class _Batch:
    """Counts acknowledgements, in the thread that polls; `delivered` is done when all are there,
    with the first error among them."""

    def __init__(self, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = count
        self._error: KafkaError | None = None
        self.delivered: asyncio.Future[KafkaError | None] = self._loop.create_future()
        if not count:
            self.delivered.set_result(None)

    def note(self, error: KafkaError | None, _: object) -> None:
        self._error = self._error or error
        self._left -= 1
        if not self._left:
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self.delivered.done():  # nobody waits any more
            self.delivered.set_result(self._error)


def topic_name(name: str) -> str:
    """A name of a table as Kafka takes it, as CockroachDB writes it: `a b` is `a_u0020_b`."""
    if name in (".", ".."):
        return "".join(f"_u{ord(each):04x}_" for each in name)
    return _NOT_OF_TOPICS.sub(lambda found: f"_u{ord(found[0]):04x}_", name)[:TOPIC_BYTES_MAX]


def _discard(producer: Producer) -> None:
    """Ends a producer without waiting for what it still holds."""
    producer.purge()
    producer.flush(0)


def _configuration(target: KafkaTarget, options: ChangefeedOptions) -> dict[str, Any]:
    config = options.kafka_sink_config
    found: dict[str, Any] = {
        **target.client,
        "bootstrap.servers": ",".join(target.brokers),
        "client.id": config.client_id,
        "acks": config.acks.value,
        "compression.type": config.compression.value,
        "partitioner": PARTITIONERS[options.partition_alg],
        "linger.ms": 1,
        "log_level": 0,  # its errors come to `error_cb`
        # What waits is bounded by the sink, and in time by `SEND_SECONDS`.
        "queue.buffering.max.messages": 0,
        "queue.buffering.max.kbytes": 2**31 - 1,
        "message.timeout.ms": 0,
    }
    if config.compression_level is not None:
        found["compression.level"] = config.compression_level
    if config.acks is Acks.ALL:
        found["enable.idempotence"] = True
    else:
        found["max.in.flight.requests.per.connection"] = 1  # or a second try goes behind the next
    return found
