"""Transactions of a feed in a real broker: who takes over sees what was committed, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.sinks.delivery import Message, Messages
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
    async with sender.transaction():
        await sender.send(Messages.of(messages))


def test_who_takes_over_sees_what_was_committed(tmp_path: Path) -> None:
    def row(number: int) -> Message:
        return Message("rows", b"[1]", b"%d" % number)

    async def scenario(broker: KafkaProcess) -> None:
        offload = ThreadOffload()
        async with opened(broker, offload, epoch=2) as (first, progress):
            assert await progress.read() is None
            await committed(first, row(1), progress.record(stand(1)))
            late = first.transaction()
            await late.__aenter__()
            await first.send(Messages.of([row(2), progress.record(stand(2))]))
            async with opened(broker, offload, epoch=3) as (second, successor):
                assert await successor.read() == stand(1)
                with pytest.raises(SinkError, match="fenced"):
                    await late.__aexit__(None, None, None)
                await committed(second, row(3), successor.record(stand(3)))
                assert await successor.read() == stand(3)
                with pytest.raises(Fenced, match="epoch 3 of job 7"):
                    await progress.read()
        offload.close()

    with KafkaProcess(tmp_path / "kafka") as broker:
        asyncio.run(scenario(broker))
        assert [record.value for record in read_all(broker.address, "rows")] == [1, 3]
