"""What is held until it is resolved is shown transaction by transaction."""

from __future__ import annotations

import asyncio
import json

import pytest

from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.message_form import Envelope
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.encode import Topics
from tailrace.changefeed.sinks import SinklessSink, transaction_sink
from tailrace.changefeed.sinks.protocol import SinkProgress
from tailrace.changefeed.sinks.transaction_sink import TransactionSink
from tailrace.kvlayer.clock import Timestamp, format_timestamp
from tailrace.kvlayer.span import EVERYTHING
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation

TABLE = table()


def batch(changes: list[tuple[int, int]], kind: ChangeKind = ChangeKind.LIVE) -> ChangeBatch:
    """Rows of keys at timestamps."""
    codec = codec_for(TABLE)
    return ChangeBatch(
        descriptor=TABLE,
        kind=kind,
        keys=[codec.encode_row((k, "v"))[0] for k, _ in changes],
        timestamps=[Timestamp(at) for _, at in changes],
        rows=[(k, "v") for k, _ in changes],
    )


def progress(at: int) -> SinkProgress:
    return SinkProgress(
        frontier=((EVERYTHING, Timestamp(at)),), resolved=Timestamp(at), scan_complete=True
    )


class Reader:
    """A stream with transactions, and what its consumer has read: `B10`, `k@10`, `E10` with the
    count, and `k@-` of a scan."""

    def __init__(self, sim: Simulation) -> None:
        options = ChangefeedOptions(transactions=True)
        self.names = {format_timestamp(Timestamp(at)): str(at) for at in range(1000)}
        self.read: list[str] = []
        self.outlet = SinklessSink(options, Topics())
        self.sink = TransactionSink(
            self.outlet,
            Envelope.WRAPPED,
            offload=sim.offload,
            known=None,
        )

    async def flush(self, at: int | None) -> list[str]:
        """What a flush shows."""
        self.read = []
        reading = asyncio.create_task(self._read())
        await self.sink.flush(None if at is None else progress(at))
        reading.cancel()
        return self.read

    async def _read(self) -> None:
        while rows := await self.outlet.take():
            self.read += [self._shown(row.key, json.loads(row.value)) for row in rows]

    def _shown(self, key: bytes | None, message: dict[str, object]) -> str:
        told = message["transaction"]
        if key is not None:
            k = json.loads(key)[0]
            return f"{k}@{'-' if told is None else self.names[str(told)]}"
        assert isinstance(told, dict)
        at = self.names[told["id"]]
        return f"B{at}" if told["status"] == "BEGIN" else f"E{at}:{told['counts']['orders']}"


def test_rows_of_one_commit_are_shown_together_once_it_is_resolved() -> None:
    async def scenario() -> None:
        reader = Reader(sim)
        reader.sink.emit(batch([(1, 5), (2, 5)], ChangeKind.INITIAL_SCAN))
        reader.sink.emit(batch([(3, 30), (1, 10)]))
        reader.sink.emit(batch([(2, 20)]))
        reader.sink.emit(batch([(4, 10)]))
        assert await reader.flush(None) == []
        reader.sink.emit(batch([(2, 20), (5, 25)]))
        assert await reader.flush(20) == [
            *("1@-", "2@-"),
            *("B10", "1@10", "4@10", "E10:2"),
            *("B20", "2@20", "E20:1"),
        ]
        reader.sink.emit(batch([(2, 20)]))
        assert await reader.flush(24) == [], "what a range feed tells again"
        reader.sink.emit(batch([(1, 30), (9, 30)], ChangeKind.BACKFILL))
        assert await reader.flush(30) == [
            *("B25", "5@25", "E25:1"),
            *("B30", "3@30", "1@30", "9@30", "E30:3"),
        ]
        reader.sink.emit(batch([(1, 8)], ChangeKind.BACKFILL))
        assert await reader.flush(31) == ["1@8"], "shown again, of no transaction that begins"
        await reader.sink.close()

    sim = Simulation(1)
    sim.run(scenario())


def test_parts_of_what_is_due_cut_no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_sink, "PART_BYTES", 1)
    monkeypatch.setattr(transaction_sink, "SLICE_MESSAGES", 2)

    async def scenario() -> None:
        reader = Reader(sim)
        for k in range(5):
            reader.sink.emit(batch([(k, 10)]))
        reader.sink.emit(batch([(1, 30), (2, 20)]))
        reader.sink.emit(batch([(5, 20)]))
        assert await reader.flush(40) == [
            *("B10", "0@10", "1@10", "2@10", "3@10", "4@10", "E10:5"),
            *("B20", "2@20", "5@20", "E20:2"),
            *("B30", "1@30", "E30:1"),
        ]
        await reader.sink.close()

    sim = Simulation(2)
    sim.run(scenario())
