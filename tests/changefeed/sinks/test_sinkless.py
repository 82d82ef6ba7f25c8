"""A sinkless feed hands every row to its consumer, in order, at the consumer's pace."""

from __future__ import annotations

import asyncio

from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.encode import Topics
from tailrace.changefeed.sinks import ChangefeedRow, SinklessSink
from tailrace.kvlayer.clock import Timestamp, timestamp_at
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation


def change(k: int, v: str) -> ChangeBatch:
    key, _ = codec_for(table()).encode_row((k, v))
    return ChangeBatch(
        descriptor=table(),
        kind=ChangeKind.LIVE,
        keys=[key],
        timestamps=[Timestamp(100)],
        rows=[(k, v)],
    )


def test_rows_come_as_json_in_order() -> None:
    async def scenario() -> None:
        sink = SinklessSink(ChangefeedOptions(), Topics())
        sink.emit(change(1, "a"))
        await sink.emit_resolved(timestamp_at(unix_us=1_700_000_000_000_000))
        assert await sink.take() == [ChangefeedRow("orders", b"[1]", b'{"after":{"k":1,"v":"a"}}')]
        resolved = b'{"resolved":"1700000000000000000.0000000000"}'
        assert await sink.take() == [ChangefeedRow(None, None, resolved)]

    sim = Simulation(1)
    sim.run(scenario())


def test_flush_ends_when_rows_were_taken() -> None:
    async def scenario() -> None:
        sink = SinklessSink(ChangefeedOptions(), Topics())
        sink.emit(change(1, "a"))
        flush = asyncio.create_task(sink.flush(None))
        await asyncio.sleep(10)
        assert not flush.done()
        await sink.take()
        await flush

    sim = Simulation(2)
    sim.run(scenario())


def test_ended_sink_ends_its_consumer() -> None:
    async def scenario() -> None:
        sink = SinklessSink(ChangefeedOptions(), Topics())
        consumer = asyncio.create_task(sink.take())
        await asyncio.sleep(1)
        await sink.close()
        await asyncio.sleep(1)
        assert not consumer.done(), "another attempt may follow"
        sink.end()
        assert await consumer == []

    sim = Simulation(3)
    sim.run(scenario())
