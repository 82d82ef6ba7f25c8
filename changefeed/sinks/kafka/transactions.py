"""Sends batches to Kafka in transactions: a reader of what is committed sees all of one or nothing.

A transactional id belongs to one feed. Who opens a sender of that id ends what an earlier one had
under way, and the earlier one can commit no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from ....kvlayer.process.offload import Offload
from ...contract.options import ChangefeedOptions
from ..delivery import BatchRefused, Messages
from ..delivery.sender import size_of
from ..protocol import NoteTrouble, SinkError, untold
from .sender import KafkaSender
from .target import KafkaTarget

CALL_SECONDS = 1.0
"""How long a thread waits for the coordinator before it looks whether anybody still asks."""

CALLS_MAX = 30

BATCH_BYTES_MAX = 1_000_000
"""The size of a batch while no topic has refused one: librdkafka's requests hold no more."""

OPEN_MS_MAX = 15 * 60 * 1000
"""The maximum that brokers allow by default. Then they end the transaction of a dead feed: until
then readers of what is committed see nothing behind it."""


class TransactionalSender(KafkaSender):
    """The transactions of one attempt of one feed. A record that is sent outside of one is an
    error."""

    def __init__(
        self,
        target: KafkaTarget,
        options: ChangefeedOptions,
        offload: Offload,
        name: str,
        note_trouble: NoteTrouble = untold,
    ) -> None:
        """`name` is the transactional id."""
        super().__init__(target, options, offload, note_trouble)
        self._configuration |= {"transactional.id": name, "transaction.timeout.ms": OPEN_MS_MAX}
        self._coordinator = offload.lane("kafka-transactions")
        self._open_transaction = False
        self._batch_bytes_max = BATCH_BYTES_MAX

    async def open(self) -> None:
        """Returns when no transaction of an earlier sender is under way any more."""
        await super().open()
        await self._ask(self._opened.init_transactions)

    async def send(self, messages: Messages) -> None:
        """Sends one batch at a time; one that is refused ends the transaction."""
        sizes = list(map(size_of, messages.keys, messages.values, messages.headers))
        start = size = 0
        for place, each in enumerate([*sizes, self._batch_bytes_max + 1]):
            if size and size + each > self._batch_bytes_max:
                await self._send_together(messages[start:place], size)
                start, size = place, 0
            size += each

    async def _send_together(self, messages: Messages, size: int) -> None:
        try:
            await self._send(messages)
        except BatchRefused as refused:
            if refused.too_large and len(messages) > 1:
                self._batch_bytes_max = size // 2
            raise

    async def commit(self, sends: Callable[[], Awaitable[None]]) -> None:
        """Commits what `sends` sends: it may be called again, in another transaction, where a topic
        takes no batch so large. After a failure the outcome is unknown, and the sender is of no
        further use."""
        while True:
            producer, bytes_max = self._opened, self._batch_bytes_max
            try:
                producer.begin_transaction()
            except KafkaException as error:
                raise self._error(error.args[0]) from None
            self._open_transaction = True
            try:
                await sends()
                break
            except BatchRefused:
                if self._batch_bytes_max == bytes_max:
                    raise
                # librdkafka skips the numbers of refused records, which the broker takes for lost.
                await self._end_producer()
                await self.open()
        await self._ask(producer.commit_transaction)
        self._open_transaction = False

    async def close(self) -> None:
        await super().close()
        self._coordinator.close()

    async def _end_producer(self) -> None:
        await self._coordinator.run(self._abort)
        await super()._end_producer()

    def _abort(self) -> None:
        if self._open_transaction and self._producer is not None:
            try:
                self._producer.abort_transaction(CALL_SECONDS)
            except KafkaException:
                pass  # the next sender ends it, or time does
            self._open_transaction = False

    async def _ask(self, call: Callable[[float], None]) -> None:
        """Makes a call of the coordinator until it has ended. Such a call goes on where it was."""
        with self.telling(call.__name__):
            for _ in range(CALLS_MAX):
                try:
                    return await self._coordinator.run(partial(call, CALL_SECONDS))
                except KafkaException as error:
                    failure = error.args[0]
                    if failure.code() != KafkaError._TIMED_OUT and not failure.retriable():
                        raise self._error(failure) from None
                await asyncio.sleep(0)
        raise SinkError(f"{self._error(failure)}: not done within {CALL_SECONDS * CALLS_MAX:g} s")
