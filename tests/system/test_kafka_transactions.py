"""Transactions of a feed in a real broker: who takes over sees what was committed, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.sinks.delivery import BatchRefused, Message, Messages
from tailrace.changefeed.sinks.kafka.progress_topic import ProgressTopic, feed_name
from tailrace.changefeed.sinks.kafka.sender import client_configuration
from tailrace.changefeed.sinks.kafka.target import parse_target
from tailrace.changefeed.sinks.kafka.transactions import TransactionalSender
from tailrace.changefeed.sinks.mirror.progress_encoding import Fenced
from tailrace.changefeed.sinks.protocol import (
    FeedIdentity,
    SinkError,
    SinkProgress,
    SinkStand,
)
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.process.offload import ThreadOffload
from tailrace.kvlayer.span import Span
from tests.harness.kafka_process import KafkaProcess
from tests.harness.kafka_reader import read_all

pytestmark = pytest.mark.system

OPTIONS = ChangefeedOptions(exactly_once=True)


def stand(at: int) -> SinkStand:
    """In the midst of a scan."""
    return SinkStand(
        progress=SinkProgress(
            frontier=((Span(b"a", b"m"), Timestamp(at)), (Span(b"m", b"z"), ZERO)),
            resolved=ZERO,
            scan_complete=False,
        ),
        position=StorePosition(incarnation="i", index=at),
    )


@asynccontextmanager
async def opened(
    broker: KafkaProcess, offload: ThreadOffload, *, epoch: int
) -> AsyncIterator[tuple[TransactionalSender, ProgressTopic]]:
    identity = FeedIdentity(store_id="s", job_id=7, epoch=epoch)
    target = parse_target(f"kafka://{broker.address}")
    sender = TransactionalSender(target, OPTIONS, offload, feed_name(identity))
    progress = ProgressTopic(target, client_configuration(target, OPTIONS), identity, offload)
    try:
        await sender.open()
        yield sender, progress
    finally:
        await sender.close()
        await progress.close()


async def committed(sender: TransactionalSender, *messages: Message) -> None:
    await sender.commit(partial(sender.send, Messages.of(messages)))


def test_who_takes_over_sees_what_was_committed(tmp_path: Path) -> None:
    def row(number: int) -> Message:
        return Message("rows", b"[1]", b"%d" % number)

    async def scenario(broker: KafkaProcess) -> None:
        offload = ThreadOffload()
        async with opened(broker, offload, epoch=2) as (first, progress):
            assert await progress.read() is None
            await committed(first, row(1), progress.record(stand(1)))

            async def late() -> None:
                await first.send(Messages.of([row(2), progress.record(stand(2))]))
                second, successor = await others.enter_async_context(
                    opened(broker, offload, epoch=3)
                )
                assert await successor.read() == stand(1)
                taken_over.append((second, successor))

            async with AsyncExitStack() as others:
                taken_over: list[tuple[TransactionalSender, ProgressTopic]] = []
                with pytest.raises(SinkError, match="fenced"):
                    await first.commit(late)
                [(second, successor)] = taken_over
                await committed(second, row(3), successor.record(stand(3)))
                assert await successor.read() == stand(3)
                with pytest.raises(Fenced, match="epoch 3 of job 7"):
                    await progress.read()
        offload.close()

    with KafkaProcess(tmp_path / "kafka") as broker:
        asyncio.run(scenario(broker))
        assert [record.value for record in read_all(broker.address, "rows")] == [1, 3]


def test_a_topic_that_takes_small_batches_is_sent_those(tmp_path: Path) -> None:
    async def scenario(broker: KafkaProcess) -> None:
        offload = ThreadOffload()
        async with opened(broker, offload, epoch=1) as (sender, _):
            rows = [Message("small", b"[1]", b"%d" % n + b" " * 1000) for n in range(100)]
            await committed(sender, *rows)
            with pytest.raises(BatchRefused, match="topic small: Broker: Message size too large"):
                await committed(sender, *rows, Message("small", b"[1]", b" " * 5000))
        offload.close()

    with KafkaProcess(tmp_path / "kafka") as broker:
        broker.make_topic("small", **{"max.message.bytes": "4000"})
        asyncio.run(scenario(broker))
        assert [record.value for record in read_all(broker.address, "small")] == [*range(100)]
