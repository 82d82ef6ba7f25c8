"""Brokers that refuse records, and what the sender takes for acknowledged then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.sinks.delivery import Message, Messages
from tailrace.changefeed.sinks.kafka import sender as sender_module
from tailrace.changefeed.sinks.kafka.sender import KafkaSender, told
from tailrace.changefeed.sinks.kafka.target import parse_target
from tailrace.changefeed.sinks.kafka.transactions import TransactionalSender
from tailrace.changefeed.sinks.protocol import SinkError
from tailrace.kvlayer.process.offload import ThreadOffload
from tests.harness.kafka_reader import MockCluster, read_all


def with_sender(
    cluster: MockCluster,
    use: Callable[[KafkaSender], Awaitable[None]],
    note_trouble: Callable[[str | None], None] = lambda words: None,
) -> None:
    async def scenario() -> None:
        offload = ThreadOffload()
        target = parse_target(f"kafka://{cluster.addresses}")
        sender = KafkaSender(target, ChangefeedOptions(), offload, note_trouble)
        try:
            await sender.open()
            await use(sender)
        finally:
            await sender.close()
            offload.close()

    asyncio.run(scenario())


def message(number: int) -> Messages:
    """All of one key, and so of one partition, and each so large that a request holds but one."""
    return Messages.of([Message("t", b"[1]", b"%d" % number + b" " * 600_000)])


def test_a_refused_request_is_not_overtaken() -> None:
    async def use(sender: KafkaSender) -> None:
        await sender.send(Messages.of([Message("warm", b"[1]", b"0")]))
        cluster.refuse_a_record(KafkaError.NOT_LEADER_FOR_PARTITION, after_ms=30)
        await asyncio.gather(*(sender.send(message(number)) for number in range(5)))

    with MockCluster(brokers=1) as cluster:
        with_sender(cluster, use)
        assert [record.value for record in read_all(cluster.addresses, "t")] == [*range(5)]


def test_a_record_without_an_offset_is_not_acknowledged() -> None:
    async def use(sender: KafkaSender) -> None:
        await sender.send(message(1))
        # librdkafka says of such a record that it was delivered.
        cluster.refuse_a_record(KafkaError.DUPLICATE_SEQUENCE_NUMBER, after_ms=0)
        with pytest.raises(SinkError, match="1 records of topic t were acknowledged without"):
            await sender.send(message(2))

    with MockCluster(brokers=1) as cluster:
        with_sender(cluster, use)


def test_a_record_is_refused_for_no_other() -> None:
    """librdkafka sends records of several batches in one request, which is refused as a whole."""

    async def use(sender: KafkaSender) -> None:
        await sender.send(Messages.of([Message("t", b"[1]", b"0")]))
        cluster.refuse_a_record(KafkaError.MSG_SIZE_TOO_LARGE, after_ms=30)
        sent = [Messages.of([Message("t", b"[1]", b"%d" % number)]) for number in (1, 2, 3)]
        await asyncio.gather(*map(sender.send, sent))

    with MockCluster(brokers=1) as cluster:
        with_sender(cluster, use)
        assert {record.value for record in read_all(cluster.addresses, "t")} == {0, 1, 2, 3}


def test_a_producer_that_no_broker_lets_in_is_an_error_to_try_again() -> None:
    """librdkafka says so to every call that follows, and the feed's end would be the last one."""

    async def use(sender: KafkaSender) -> None:
        with pytest.raises(SinkError, match="Cluster authorization failed"):
            await sender.send(message(1))
        with pytest.raises(SinkError, match="Cluster authorization failed"):
            await sender.send_resolved("t", b"{}")

    with MockCluster(brokers=1) as cluster:
        cluster.refuse_a_producer(KafkaError.CLUSTER_AUTHORIZATION_FAILED, after_ms=0)
        with_sender(cluster, use)


def test_a_producer_that_no_broker_lets_in_can_be_let_go() -> None:
    """The check of a new feed's sink lets its producer go, and it may hear only then."""
    with MockCluster(brokers=1) as cluster:
        cluster.refuse_a_producer(KafkaError.CLUSTER_AUTHORIZATION_FAILED, after_ms=0)
        target = parse_target(f"kafka://{cluster.addresses}")
        producer = Producer(sender_module._configuration(target, ChangefeedOptions()))
        with pytest.raises(KafkaException, match="Fatal error"):
            while True:
                producer.list_topics(timeout=1)
                producer.produce("t", b"1")
        sender_module._discard(producer)


def test_a_topic_that_no_broker_knows_is_told_and_waited_for() -> None:
    """librdkafka by itself would say nothing for half a minute, and then not which topic it is."""
    heard: list[str | None] = []

    def note(words: str | None) -> None:
        heard.append(words)
        cluster.answer_of_topic("t", KafkaError.NO_ERROR)

    async def use(sender: KafkaSender) -> None:
        cluster.answer_of_topic("t", KafkaError.UNKNOWN_TOPIC_OR_PART)
        await sender.send(message(1))

    with MockCluster(brokers=1) as cluster:
        with_sender(cluster, use, note)
        words = f"Kafka at {cluster.addresses}: topic t: Broker: Unknown topic or partition"
        assert (heard[0], heard[-1]) == (words, None)
        assert [record.value for record in read_all(cluster.addresses, "t")] == [1]


def test_what_is_not_acknowledged_is_told_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "TELL_SECONDS", 0.05)
    heard: list[str | None] = []

    async def use(sender: KafkaSender) -> None:
        await sender.send(message(1))
        heard.clear()
        cluster.refuse_a_record(KafkaError.NOT_LEADER_FOR_PARTITION, after_ms=200)
        await sender.send(message(2))

    with MockCluster(brokers=1) as cluster:
        with_sender(cluster, use, heard.append)
        words = f"Kafka at {cluster.addresses}: not acknowledged within 0.05 s"
        assert heard == [words, None]


def test_a_coordinator_that_is_not_ready_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "TELL_SECONDS", 0.05)
    heard: list[str | None] = []

    async def scenario(cluster: MockCluster) -> None:
        offload, target = ThreadOffload(), parse_target(f"kafka://{cluster.addresses}")
        options = ChangefeedOptions(exactly_once=True)
        sender = TransactionalSender(target, options, offload, "feed", heard.append)
        try:
            await sender.open()
        finally:
            await sender.close()
            offload.close()

    with MockCluster(brokers=1) as cluster:
        cluster.refuse_a_producer(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, after_ms=300)
        asyncio.run(scenario(cluster))
        words = f"Kafka at {cluster.addresses}: init_transactions is not answered since 0.05 s"
        assert heard == [words, None]


def test_the_answer_of_a_server_of_tokens_is_not_told() -> None:
    words = "Failed to acquire SASL OAUTHBEARER token"
    answered = KafkaError(KafkaError._AUTHENTICATION, f"{words}: \n{{'key': 'kanari7'}}\nmore")
    assert told(answered) == words
    assert told(KafkaError(KafkaError._TRANSPORT, "away")) == "away"
