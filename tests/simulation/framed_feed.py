"""The validator of feeds with `transactions`: what a receiver of their messages may count on.

    BEGIN 10, t 1@10, u 7@10, END 10 {t: 1, u: 1}, u 3@-, BEGIN 20, ...

While an attempt lasts, each transaction has one begin and one end with its counts, no row stands in
another's, rows of a scan stand outside, and of each table the transactions come in the order of
their commits, each once. Tables in step come together: where one shows its part of a transaction
above what was resolved as the attempt began, all that wrote in it do. An attempt that ends may
leave a transaction open, and another one shows all of it. Each part is whole: it has every row that
the model knows to have been committed, and no other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.changefeed.contract.changes import ChangeBatch
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.encode import EncodedBatch, Topics, encoder_for
from tailrace.changefeed.jobs.details import ChangefeedDetails
from tailrace.changefeed.sinks.protocol import SinkError, SinkProgress, SinkStand
from tailrace.changefeed.sinks.transaction_sink import FramedMessage
from tailrace.kvlayer.clock import ZERO, Timestamp, parse_timestamp
from tailrace.kvlayer.frontier import part_of
from tailrace.kvlayer.keys import table_span
from tailrace.schemafeed import TableEvent
from tests.simulation.schema_model import KEY_GAP, TableModel


@dataclass
class Shown:
    """A transaction: the keys that were shown of it, by table."""

    at: Timestamp
    keys: dict[str, list[int]] = field(default_factory=dict)


@dataclass
class FramedAttempt:
    """What one attempt told, in order. `in_step` are its tables that stood where the feed had
    resolved, or above, as it began, and where that was: above it they show all."""

    in_step: Mapping[int, Timestamp] = field(default_factory=dict)
    transactions: list[Shown] = field(default_factory=list)
    _open: Shown | None = None
    _last: dict[str, Timestamp] = field(default_factory=dict)
    """Of each table, the last transaction of which a part was shown."""

    @classmethod
    def beginning(cls, details: ChangefeedDetails, known: SinkProgress | None) -> FramedAttempt:
        if known is None or not known.scan_complete:
            return cls()
        in_step = {}
        for target in details.followed:
            parts = part_of(known.frontier, table_span(target.table_id))
            reached = min((at for _, at in parts), default=ZERO)
            if reached >= known.resolved and not (target.fresh or target.again):
                in_step[target.table_id] = max(at for _, at in parts)
        return cls(in_step)

    def note(self, topic: str | None, key: bytes | None, value: bytes) -> tuple[int, Timestamp]:
        """Takes a message. Returns a row's key and timestamp, and (0, 0) for other messages."""
        message = json.loads(value)
        told = message["transaction"]
        if topic is None:
            at = parse_timestamp(told["id"])
            if told["status"] == "BEGIN":
                assert self._open is None, f"{at} begins within {self._open}"
                self._open = Shown(at)
            else:
                self._end(at, told["counts"])
            return 0, ZERO
        assert key is not None, message
        name, *_ = json.loads(key)
        name -= KEY_GAP * (name >= KEY_GAP)
        updated = parse_timestamp(message["updated"])
        if told is None:
            assert self._open is None, f"{topic} {name} of no transaction within {self._open}"
        else:
            opened = self._open
            assert opened is not None, f"{topic} {name} of {told} within none"
            assert opened.at == updated == parse_timestamp(told), (opened, message)
            opened.keys.setdefault(topic, []).append(name)
        return name, updated

    def _end(self, at: Timestamp, counts: Mapping[str, int]) -> None:
        ended, self._open = self._open, None
        assert ended is not None, f"{at} ends, and has not begun"
        assert ended.at == at, (ended, at)
        shown = {topic: len(keys) for topic, keys in ended.keys.items()}
        assert shown == counts, f"{ended} ends with the counts {counts}"
        for topic, keys in ended.keys.items():
            assert len(set(keys)) == len(keys), f"{ended} has a row of {topic} twice"
            assert self._last.get(topic, ZERO) < at, f"{topic} at {at} behind {self._last[topic]}"
            self._last[topic] = at
        self.transactions.append(ended)

    def judge(self, models: Mapping[int, TableModel]) -> None:
        names = {model.name: model for model in models.values()}
        for shown in self.transactions:
            for topic, keys in shown.keys.items():
                written, rewritten = _written(names[topic], shown.at)
                lacking = written.difference(keys)
                assert not lacking, f"{lacking} of {topic} are lacking in {shown}"
                assert rewritten or written == set(keys), f"{shown} has more of {topic}: {written}"
            self._check_together(shown, models)

    def _check_together(self, shown: Shown, models: Mapping[int, TableModel]) -> None:
        together = [models[id] for id, reached in self.in_step.items() if reached < shown.at]
        if not any(model.name in shown.keys for model in together):
            return
        for model in together:
            written, _ = _written(model, shown.at)
            assert not written or model.name in shown.keys, f"{model.name} is lacking in {shown}"


def _written(model: TableModel, at: Timestamp) -> tuple[set[int], bool]:
    """The keys that a commit wrote, and whether it also changed the table's schema."""
    written = {key for write in model.writes if write.at == at for key in write.tokens}
    return written, any(era.at == at for era in model.eras)


class FramedSink:
    """Implements `FramingSink`: takes messages, is slow and fails as the seed says."""

    def __init__(
        self,
        options: ChangefeedOptions,
        attempt: FramedAttempt,
        random: Random,
        *,
        fail_chance: float,
        on_batch: Callable[[ChangeBatch], None],
        on_rows: Callable[[Sequence[tuple[str, int, Timestamp]]], None],
        on_failure: Callable[[], None],
    ) -> None:
        """`on_rows` hears of rows that were taken: table, key, timestamp."""
        self._encoder = encoder_for(options, Topics())
        self._attempt = attempt
        self._random = random
        self._fail_chance = fail_chance
        self._on_batch = on_batch
        self._on_rows = on_rows
        self._on_failure = on_failure
        self._messages: list[FramedMessage] = []
        self._failed = False

    async def stand(self) -> SinkStand | None:
        return None

    async def open(self, tables: Sequence[TableDescriptor]) -> None: ...

    def emit(self, batch: ChangeBatch) -> None:
        raise AssertionError("rows go through their transactions")

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        self._on_batch(batch)
        return self._encoder.encode(batch)

    def put(self, messages: Sequence[FramedMessage]) -> None:
        self._messages += messages

    def change_schema(self, event: TableEvent) -> None: ...

    async def flush(self, progress: SinkProgress | None) -> None:
        assert not self._failed, "a sink that failed is of no use"
        taken, self._messages = self._messages, []
        if self._random.random() < self._fail_chance:
            self._failed = True
            self._on_failure()
            self._take(taken[: self._random.randrange(len(taken) + 1)])
            raise SinkError("the sink was away")
        self._take(taken)
        if self._random.random() < 0.2:
            await asyncio.sleep(self._random.random() * 0.05)

    def _take(self, messages: Sequence[FramedMessage]) -> None:
        rows = []
        for topic, key, value in messages:
            name, at = self._attempt.note(topic, key, value)
            if topic is not None:
                rows.append((topic, name, at))
        self._on_rows(rows)

    async def emit_resolved(self, resolved: Timestamp) -> None: ...

    async def close(self) -> None: ...
