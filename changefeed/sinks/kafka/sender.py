"""Sends batches to Kafka by librdkafka, which has threads of its own.

    send -> produce (a queue of librdkafka) -> brokers
            poll (a task of the loop) <- acknowledgements -> the future that `send` waits for

Acknowledgements come record by record. A thread that polled would ask for the interpreter's lock
for each of them, and a loop that is busy gives it up once in a while.

Order: the producer is idempotent, and no record is ever too old for it to send. A batch that takes
too long, or of which a record is refused, ends the attempt, and with it everything that is queued.

HAZARD: librdkafka takes a request that a broker accepted for proof that those before it were, too.
A broker that knows nothing yet of a producer in a partition accepts any request of it. Of two that
are under way into a new partition the first may be refused, because its leader is not ready, and
the second be taken: the first one's records are then reported as delivered, and are nowhere. So a
connection has one request under way at a time, and a record is acknowledged by its offset: one
that is reported without was not seen by a broker that said so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Record

from ....kvlayer.process.offload import Offload
from ...contract.options import ChangefeedOptions, PartitionAlgorithm
from ...contract.sink_config import Acks
from ...encode.topics import topic_name
from ..delivery import BatchRefused, Messages
from ..protocol import NoteTrouble, SinkError, SinkRefused, untold
from .target import KafkaTarget

T = TypeVar("T")

CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.5
TOPIC_LOOK_SECONDS = 0.1
SEND_SECONDS = 30.0
"""A batch that no broker has acknowledged by then is the feed's to send again."""

TELL_SECONDS = 3.0
"""A batch that no broker has acknowledged by then is told of in the feed's running status."""

POLL_SECONDS = 0.001
"""Between looks for acknowledgements, while records are under way."""

IDLE_SECONDS = 0.1
"""Between looks for what librdkafka says of its connections, while none are."""

RECONNECT_MS_MAX = 1000
"""Between tries of a broker that is away: how long a feed may stand still when it is back."""

PARTITIONERS = {PartitionAlgorithm.FNV_1A: "fnv1a", PartitionAlgorithm.MURMUR2: "murmur2"}

REFUSALS = frozenset(
    {
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.POLICY_VIOLATION,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.TOPIC_EXCEPTION,
    }
)
"""Errors that come again whenever the record does."""

TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
"""Errors that speak of how much a request holds for one partition: perhaps of a single record."""

BAD_RECORDS = TOO_LARGE | {KafkaError.INVALID_RECORD}
"""Errors that speak of records: the topic takes others."""

CONSEQUENCES = frozenset({KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE, KafkaError._STATE})
"""Errors of records whose transaction ends by another's error, which says why."""

_TOKEN_REFUSED = re.compile(r"(acquire SASL OAUTHBEARER token).*", re.DOTALL)


class KafkaSender:
    """One attempt of one feed, with a producer, and a thread for calls that wait for brokers."""

    resolved_by_topic = True

    def __init__(
        self,
        target: KafkaTarget,
        options: ChangefeedOptions,
        offload: Offload,
        note_trouble: NoteTrouble = untold,
    ) -> None:
        self._target = target
        self._note_trouble = note_trouble
        self._lane = offload.lane("kafka")
        self._headers = list(options.extra_headers.items())
        self._named: dict[str, Any] = {"headers": self._headers} if self._headers else {}
        """The arguments that all records share."""
        self._placed = options.kafka_sink_config.acks is not Acks.NONE
        """Whether brokers tell the offsets of records."""
        self._said = ""
        """librdkafka's last words about its connections."""
        self._configuration = {
            **_configuration(target, options),
            "error_cb": self._note_error,
        }
        self._producer: Producer | None = None
        self._polling: asyncio.Task[None] | None = None
        self._under_way = 0
        """Batches."""
        self._begun = asyncio.Event()
        self._alone = asyncio.Lock()
        """Held while a record that was refused is sent beside no other."""
        self._sends = 0
        self._sent = asyncio.Event()
        self._topics: dict[str, str] = {}
        """Topics that are there, by the names that messages have for them."""

    async def open(self) -> None:
        """Returns when a broker has answered."""
        try:
            self._producer = producer = Producer(self._configuration)
        except KafkaException as error:
            raise SinkRefused(f"{self._target.shown}: {told(error.args[0])}") from None
        await self._run(partial(self._reach, producer))
        self._polling = asyncio.create_task(self._poll(producer))

    async def send(self, messages: Messages) -> None:
        async with self._alone:
            self._sends += 1
        try:
            return await self._send(messages)
        except BatchRefused:
            if len(messages) > 1:
                raise
        finally:
            self._sends -= 1
            self._sent.set()
        # A request of librdkafka holds records of several batches: another may have been meant.
        async with self._alone:
            while self._sends:
                self._sent.clear()
                await self._sent.wait()
            await self._send(messages)

    async def _send(self, messages: Messages) -> None:
        producer = self._opened
        new = set(messages.topics) - self._topics.keys()
        await asyncio.gather(*(self._find(producer, topic) for topic in new))
        batch = _Batch(len(messages), placed=self._placed)
        handed_over = 0
        try:
            produce, note, topics = producer.produce, batch.note, self._topics
            columns = (messages.topics, messages.keys, messages.values, messages.headers)
            for topic, key, value, own in zip(*columns, strict=True):
                named = {"headers": [*self._headers, *own]} if own else self._named
                produce(topics[topic], value, key, on_delivery=note, **named)
                handed_over += 1
        except KafkaException as error:
            batch.end_early(error.args[0], len(messages) - handed_over)
        await self._delivered(batch)

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        """Sends a record to each partition of the topic, as many as there are by now."""
        assert topic is not None, "resolved records go to topics"
        producer = self._opened
        name = topic_name(topic)
        partitions = await self._partitions(producer, name)
        batch = _Batch(len(partitions), placed=self._placed)
        for place, partition in enumerate(partitions):
            try:
                producer.produce(
                    name, value, partition=partition, on_delivery=batch.note, **self._named
                )
            except KafkaException as error:
                batch.end_early(error.args[0], len(partitions) - place)
                break
        await self._delivered(batch)

    async def close(self) -> None:
        await self._end_producer()
        self._lane.close()

    async def _end_producer(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
        producer, self._producer = self._producer, None
        if producer is not None:
            await self._lane.run(partial(_discard, producer))

    async def _find(self, producer: Producer, topic: str) -> None:
        """Returns when the topic is there. librdkafka by itself would keep records of a topic that
        no broker knows, and say nothing."""
        name = topic_name(topic)
        await self._partitions(producer, name)
        self._topics[topic] = name

    async def _partitions(self, producer: Producer, topic: str) -> list[int]:
        """The partitions of a topic. One that is made by being asked for is there a moment
        later."""
        looks = round(CONNECT_SECONDS / TOPIC_LOOK_SECONDS)
        while True:
            found = await self._run(partial(producer.list_topics, topic, timeout=CONNECT_SECONDS))
            metadata = found.topics[topic]
            if metadata.error is None:
                return list(metadata.partitions)
            looks -= 1
            error = self._error(metadata.error, topic)
            if not looks:
                raise error
            self._note_trouble(str(error))
            await asyncio.sleep(TOPIC_LOOK_SECONDS)

    @property
    def _opened(self) -> Producer:
        assert self._producer is not None, "not open"
        return self._producer

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
            try:
                producer.poll(0)
            except KafkaException as error:
                raise self._error(error.args[0]) from None
            if self._under_way:
                await asyncio.sleep(POLL_SECONDS)
                continue
            self._begun.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._begun.wait()

    async def _delivered(self, batch: _Batch) -> None:
        """Returns when all of the batch is acknowledged. A producer that can go on no more raises
        that where it is polled."""
        assert self._polling is not None, "not open"
        either: list[asyncio.Future[Any]] = [batch.delivered, self._polling]
        self._under_way += 1
        self._begun.set()
        try:
            for seconds in (TELL_SECONDS, SEND_SECONDS - TELL_SECONDS):
                await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if any(each.done() for each in either):
                    break
                self._note_trouble(self._unacknowledged(TELL_SECONDS))
            if batch.failed_with(KafkaError._FATAL):
                await asyncio.wait([self._polling], timeout=TELL_SECONDS)  # is told why
        finally:
            self._under_way -= 1
        if self._polling.done():
            self._polling.result()
        if batch.delivered.done():
            error = batch.delivered.result()
            if error is not None:
                raise self._error(error, batch.topic)
            if batch.unplaced:
                raise SinkError(
                    f"{self._target.shown}: {batch.unplaced} records of topic {batch.topic} were "
                    "acknowledged without their offsets: they are sent again"
                )
            self._said = ""
            self._note_trouble(None)
        else:
            raise SinkError(self._unacknowledged(SEND_SECONDS))

    def _unacknowledged(self, seconds: float) -> str:
        return self._with_said(f"{self._target.shown}: not acknowledged within {seconds:g} s")

    def _with_said(self, words: str) -> str:
        return f"{words}: {self._said}" if self._said else words

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        """Tells of `what` in the feed's running status, while brokers have not answered it for
        `TELL_SECONDS`."""
        words = f"{self._target.shown}: {what} is not answered since {TELL_SECONDS:g} s"
        loop = asyncio.get_running_loop()
        later = loop.call_later(TELL_SECONDS, lambda: self._note_trouble(self._with_said(words)))
        try:
            yield
        finally:
            later.cancel()
            if loop.time() >= later.when():
                self._note_trouble(None)

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call)
        except KafkaException as error:
            raise self._error(error.args[0]) from None

    def _note_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._said:
            self._said = told(error)

    def _error(self, error: KafkaError, topic: str | None = None) -> SinkError | SinkRefused:
        said = f": {self._said}" if self._said and self._said != told(error) else ""
        where = self._target.shown if topic is None else f"{self._target.shown}: topic {topic}"
        words = f"{where}: {told(error)}{said}"
        if error.code() in BAD_RECORDS:
            return BatchRefused(words, too_large=error.code() in TOO_LARGE)
        return SinkRefused(words) if error.code() in REFUSALS else SinkError(words)


class _Batch:
    """Counts acknowledgements, in whichever thread librdkafka tells of them; `delivered` is done
    when all are there, with the first error among them that no other one caused. Where records are
    to be `placed`, `unplaced` counts those without an offset. `topic` is that of a record that
    failed or has none."""

    def __init__(self, count: int, *, placed: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = count
        self._placed = placed
        self._error: KafkaError | None = None
        self.unplaced = 0
        self.topic: str | None = None
        self.delivered: asyncio.Future[KafkaError | None] = self._loop.create_future()
        if not count:
            self.delivered.set_result(None)

    def note(self, error: KafkaError | None, record: Record) -> None:
        if error is not None:
            if self._error is None or self._error.code() in CONSEQUENCES:
                self._error, self.topic = error, record.topic()
        elif self._placed and record.offset() is None:
            self.unplaced += 1
            self.topic = self.topic or record.topic()
        self._left -= 1
        if not self._left:
            self._loop.call_soon_threadsafe(self._finish)

    def failed_with(self, code: int) -> bool:
        error = self.delivered.result() if self.delivered.done() else None
        return error is not None and error.code() == code

    def end_early(self, error: KafkaError, left: int) -> None:
        """So many records, at least one, were not handed over."""
        self._error = self._error or error
        self._left -= left
        if not self._left:
            self._finish()

    def _finish(self) -> None:
        if not self.delivered.done():  # nobody waits any more
            self.delivered.set_result(self._error)


def told(error: KafkaError) -> str:
    """librdkafka's words, without what a server of tokens answered: it may be any server that the
    node reaches, and its answer is not for who named it."""
    return _TOKEN_REFUSED.sub(r"\1", error.str())


def _discard(producer: Producer) -> None:
    """Ends a producer without waiting for what it still holds."""
    with suppress(KafkaException):  # one that can go on no more says so, whatever it is asked for
        producer.purge()
        producer.flush(0)


def client_configuration(target: KafkaTarget, options: ChangefeedOptions) -> dict[str, Any]:
    """The configuration with which any client of librdkafka reaches the brokers."""
    return {
        **target.client,
        "bootstrap.servers": ",".join(target.brokers),
        "client.id": options.kafka_sink_config.client_id,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
        "log_level": 0,  # its errors come to `error_cb`, or with a call
    }


def _configuration(target: KafkaTarget, options: ChangefeedOptions) -> dict[str, Any]:
    config = options.kafka_sink_config
    found: dict[str, Any] = {
        **client_configuration(target, options),
        "acks": config.acks.value,
        "compression.type": config.compression.value,
        "partitioner": PARTITIONERS[options.partition_alg],
        "linger.ms": 1,
        # What waits is bounded by the sink, and in time by `SEND_SECONDS`.
        "queue.buffering.max.messages": 0,
        "queue.buffering.max.kbytes": 2**31 - 1,
        # How large a record may be is the topic's to say; librdkafka would refuse 1 MB.
        "message.max.bytes": 1_000_000_000,
        "message.timeout.ms": 0,
        "max.in.flight.requests.per.connection": 1,  # see HAZARD
        "enable.idempotence": config.acks is Acks.ALL,
    }
    if config.compression_level is not None:
        found["compression.level"] = config.compression_level
    return found
