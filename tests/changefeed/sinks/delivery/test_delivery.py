"""What delivery holds, when it sends, and how it tries again: the sink by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.contract.sink_config import FlushConfig, RetryConfig
from tailrace.changefeed.encode import EncodedBatch, Topics, encoder_for
from tailrace.changefeed.sinks import FeedIdentity, SinkContext, SinkError, registry
from tailrace.changefeed.sinks.delivery import MessageSink
from tailrace.changefeed.sinks.delivery.sink import IN_FLIGHT_BYTES
from tailrace.changefeed.sinks.registry import SchemaRegistry
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tests.changefeed.sinks.delivery.receiver import Receiver
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation

LIMIT = 10_000
AT_ONCE, THRICE = FlushConfig(), RetryConfig()


class CountingEncoder:
    """The encoder, and how many bytes it has made."""

    def __init__(self, options: ChangefeedOptions, topics: Topics) -> None:
        self._encoder = encoder_for(options, topics)
        self.encode_resolved = self._encoder.encode_resolved
        self.bytes = 0

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        encoded = self._encoder.encode(batch)
        self.bytes += encoded.size
        return encoded


class Bench:
    def __init__(self, sim: Simulation, flush: FlushConfig, retry: RetryConfig) -> None:
        self.receiver = Receiver(sim.random, seconds=0.0)
        settings = Settings()
        settings.set(IN_FLIGHT_BYTES.name, str(LIMIT))
        options, topics = ChangefeedOptions(), Topics()
        self.encoder = CountingEncoder(options, topics)
        self.troubles: list[str | None] = []
        context = SinkContext(
            identity=FeedIdentity(store_id="s", job_id=7, epoch=1),
            position=lambda: StorePosition(incarnation="", index=0),
            clock=Clock(sim.wall, MemoryBoundStore()),
            offload=sim.offload,
            settings=settings,
            metrics=Metrics(),
            options=options,
            note_trouble=self.troubles.append,
        )
        self.sink = MessageSink(
            self.receiver, context, self.encoder, topics, flush=flush, retry=retry
        )

    def emit(self, *keys: int, value: str = "v") -> None:
        codec = codec_for(table())
        self.sink.emit(
            ChangeBatch(
                descriptor=table(),
                kind=ChangeKind.LIVE,
                keys=[codec.encode_row((key, value))[0] for key in keys],
                timestamps=[Timestamp(100)] * len(keys),
                rows=[(key, value) for key in keys],
            )
        )


@asynccontextmanager
async def opened(
    sim: Simulation,
    *,
    answers: bool = True,
    flush: FlushConfig = AT_ONCE,
    retry: RetryConfig = THRICE,
) -> AsyncIterator[Bench]:
    bench = Bench(sim, flush, retry)
    if answers:
        bench.receiver.answers.set()
    await bench.sink.open([table()])
    try:
        yield bench
    finally:
        await bench.sink.close()


def test_a_receiver_that_stands_still_bounds_what_is_encoded() -> None:
    async def scenario() -> None:
        async with opened(sim, answers=False) as bench:
            for number in range(500):
                bench.emit(number, number + 1, value="x" * 300)
                await asyncio.sleep(0.01)
            assert LIMIT / 3 < bench.encoder.bytes < LIMIT + 1_000
            flush = asyncio.create_task(bench.sink.flush(None))
            await asyncio.sleep(60)
            assert not flush.done(), "a flush returned, and nothing was acknowledged"
            bench.receiver.answers.set()
            await flush
            assert bench.encoder.bytes == bench.receiver.accepted_bytes > 300_000

    sim = Simulation(1)
    sim.run(scenario())


def test_a_batch_gathers_as_it_is_told() -> None:
    async def scenario() -> None:
        gathering = FlushConfig(messages=4, frequency=2.0)
        async with opened(sim, flush=gathering) as bench:
            bench.emit(*[1] * 9)  # one key: one lane
            await asyncio.sleep(1.9)
            assert [len(batch) for batch in bench.receiver.batches] == [4, 4]
            await bench.sink.flush(None)
            assert [len(batch) for batch in bench.receiver.batches] == [4, 4, 1]
            assert sim.now == pytest.approx(2.0)

    sim = Simulation(2)
    sim.run(scenario())


def test_batches_behind_one_that_is_too_large_are_smaller() -> None:
    async def scenario() -> None:
        async with opened(sim, flush=FlushConfig(messages=64, frequency=1.0)) as bench:
            bench.receiver.messages_max = 10
            for sizes in ([64, 32, 16, 8, 8, 16, 8, 8, 32, 16, 8, 8, 16, 8, 8], [8] * 8):
                bench.receiver.batches.clear()
                bench.emit(*[1] * 64)  # one key: one lane
                await bench.sink.flush(None)
                assert [len(batch) for batch in bench.receiver.batches] == sizes

    sim = Simulation(6)
    sim.run(scenario())


def test_pauses_grow_and_begin_anew_after_progress() -> None:
    async def scenario() -> None:
        async with opened(sim, retry=RetryConfig(max=3, backoff=1.0)) as bench:
            for _ in range(2):
                bench.receiver.chance = 1.0
                bench.emit(1)
                began, before = sim.now, len(bench.receiver.batches)
                flush = asyncio.create_task(bench.sink.flush(None))
                await asyncio.sleep(3.5)  # tries at 0, 1 and 3
                assert len(bench.receiver.batches) - before == 3
                bench.receiver.chance = 0.0
                await flush
                assert sim.now - began == pytest.approx(7.0)
            bench.receiver.chance = 1.0
            bench.emit(1)
            with pytest.raises(SinkError, match="503"):
                await bench.sink.flush(None)
            with pytest.raises(SinkError, match="503"):
                await bench.sink.flush(None)

    sim = Simulation(3)
    sim.run(scenario())


def test_a_failure_is_told_until_its_request_has_been_taken() -> None:
    async def scenario() -> None:
        async with opened(sim, retry=RetryConfig(max=1_000, backoff=1.0)) as bench:
            bench.receiver.chance = 1.0
            bench.emit(1, 2, 3, 4, 5, 6)
            await asyncio.sleep(10)
            assert set(bench.troubles) == {"receiver: 503"}
            bench.receiver.chance = 0.0
            await bench.sink.flush(None)
            assert bench.troubles[-1] is None
            assert bench.troubles.count(None) == 1, "told when the last request was taken"

    sim = Simulation(4)
    sim.run(scenario())


def test_a_failure_is_told_no_more_when_the_attempt_has_ended() -> None:
    async def scenario() -> None:
        async with opened(sim, retry=RetryConfig(max=1, backoff=1.0)) as bench:
            bench.receiver.chance = 1.0
            bench.emit(1)
            with pytest.raises(SinkError, match="503"):
                await bench.sink.flush(None)
            assert bench.troubles == ["receiver: 503", "receiver: 503", None]

    sim = Simulation(5)
    sim.run(scenario())


def test_a_receiver_that_asks_for_time_is_left_alone() -> None:
    async def scenario() -> None:
        async with opened(sim, retry=RetryConfig(max=1, backoff=1.0)) as bench:
            bench.receiver.chance, bench.receiver.retry_after = 1.0, 60.0
            bench.emit(1)
            flush = asyncio.create_task(bench.sink.flush(None))
            await asyncio.sleep(1)
            bench.emit(*range(2, 40))  # other lanes
            await asyncio.sleep(58)
            assert len(bench.receiver.batches) == 1, "asked again before its time"
            with pytest.raises(SinkError, match="503"):
                await flush
            assert sim.now == pytest.approx(120, abs=2), "the feed's next attempt would be too soon"

    sim = Simulation(7)
    sim.run(scenario())


class DeadClient:
    """Stands for a connection to a registry whose end fails."""

    def __init__(self, *_: object, **__: object) -> None: ...

    async def close(self) -> None:
        raise ConnectionResetError("the registry is gone")


def test_a_registry_that_is_gone_leaves_no_receiver_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PinnedClient", DeadClient)

    async def scenario() -> None:
        bench = Bench(sim, AT_ONCE, THRICE)
        bench.sink._registry = SchemaRegistry("http://registry.example", Settings())
        with pytest.raises(ConnectionResetError):
            await bench.sink.close()
        assert bench.receiver.closed

    sim = Simulation(1)
    sim.run(scenario())
