"""A receiver of messages in a simulation: slow, faulty, and sharp-eyed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.changefeed.contract.options import (
    MESSAGE_OPTIONS,
    PIPELINE_OPTIONS,
    ChangefeedOptions,
)
from tailrace.changefeed.contract.sink_config import FlushConfig, RetryConfig
from tailrace.changefeed.encode import Topics, encoder_for
from tailrace.changefeed.sinks import FeedIdentity, Sink, SinkContext, SinkError, SinkKind
from tailrace.changefeed.sinks.delivery import BatchRefused, Message, Messages, MessageSink


@dataclass
class Receiver:
    """Takes batches, each in its time, and fails by chance: before it has taken anything, half way,
    or when it has taken all and only the answer is lost.

    `arrived` has every message in the order of arrival; a resolved message has no key.
    """

    random: Random
    chance: float = 0.0
    seconds: float = 0.01
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """Until it is set, no request is answered."""
    resolved_by_topic: bool = False
    arrived: list[tuple[bytes | None, dict[str, Any]]] = field(default_factory=list)
    batches: list[list[Message]] = field(default_factory=list)
    takes: Callable[[dict[str, Any]], bool] = lambda message: True
    """A batch is refused for ever for any message that it does not take."""
    messages_max: int = 1_000
    """A batch of more is too large."""
    retry_after: float = 0.0
    """Asked for with each failure."""
    on_resolved: Callable[[str], Awaitable[None]] | None = None
    """Told each mark before it has arrived."""
    accepted_bytes: int = 0
    closed: bool = False
    most: int = 0
    """Requests under way together, at the most."""
    _under_way: list[frozenset[bytes]] = field(default_factory=list)

    async def open(self) -> None:
        self._under_way.clear()

    async def send(self, messages: Messages) -> None:
        keys = frozenset(message.key for message in messages)
        for other in self._under_way:
            assert not keys & other, "two batches of one key are under way"
        self._under_way.append(keys)
        self.most = max(self.most, len(self._under_way))
        try:
            self.batches.append(list(messages))
            if len(messages) > self.messages_max:
                raise BatchRefused("receiver: 413", too_large=True)
            await self._request([(each.key, json.loads(each.value or b"{}")) for each in messages])
            self.accepted_bytes += sum(len(each.key) + len(each.value or b"") for each in messages)
        finally:
            self._under_way.remove(keys)

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        mark = json.loads(value)
        if self.on_resolved is not None:
            await self.on_resolved(mark["resolved"])
        await self._request([(None, mark)])

    async def close(self) -> None:
        assert not self._under_way, "requests under way are cancelled first"
        self.closed = True

    async def _request(self, messages: Sequence[tuple[bytes | None, dict[str, Any]]]) -> None:
        await asyncio.sleep(self.seconds * self.random.random())
        await self.answers.wait()
        if not all(self.takes(message) for _, message in messages):
            raise BatchRefused("receiver: 422", too_large=False)
        taken = len(messages)
        failed = self.random.random() < self.chance
        if failed:
            taken = self.random.choice([0, len(messages) // 2, len(messages)])
        self.arrived += messages[:taken]
        if failed:
            raise SinkError("receiver: 503", retry_after=self.retry_after)


@dataclass
class ReceiverKind(SinkKind):
    """Feeds a receiver, as a kind of sink."""

    receiver: Receiver
    flush: FlushConfig
    retry: RetryConfig
    transactional = False
    local = False
    columnar = True
    follows_schema = False
    obeys = PIPELINE_OPTIONS | MESSAGE_OPTIONS | {"on_bad_row"}

    def check_options(self, options: ChangefeedOptions) -> None:
        """Any value will do."""

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Any table will do."""

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def create(self, uri: str, context: SinkContext) -> Sink:
        topics = Topics(full_names=context.names)
        encoder = encoder_for(context.options, topics)
        return MessageSink(
            self.receiver, context, encoder, topics, flush=self.flush, retry=self.retry
        )

    async def release(self, uri: str, identity: FeedIdentity, holds: object) -> None:
        """Nothing was held."""

    def redacted(self, uri: str) -> str:
        return uri
