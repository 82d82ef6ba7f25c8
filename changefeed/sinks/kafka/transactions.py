"""Sends batches to Kafka in transactions: a reader of what is committed sees all of one or nothing.

A transactional id belongs to one feed. Who opens a sender of that id ends what an earlier one had
under way, and the earlier one can commit no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from ....kvlayer.process.offload import Offload
from ...contract.options import ChangefeedOptions
from ..delivery import Messages
from ..protocol import NoteTrouble, SinkError, untold
from .sender import KafkaSender
from .target import KafkaTarget

CALL_SECONDS = 1.0
"""How long a thread waits for the coordinator before it looks whether anybody still asks."""

CALLS_MAX = 30

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

    async def open(self) -> None:
        """Returns when no transaction of an earlier sender is under way any more."""
        await super().open()
        await self._ask(self._opened.init_transactions)

    async def send(self, messages: Messages) -> None:
        """Sends one batch at a time; one that is refused ends the transaction."""
        await self._send(messages)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commits at the end what is sent inside. After a failure the outcome is unknown, and the
        sender is of no further use."""
        producer = self._opened
        try:
            producer.begin_transaction()
        except KafkaException as error:
            raise self._error(error.args[0]) from None
        self._open_transaction = True
        yield
        await self._ask(producer.commit_transaction)
        self._open_transaction = False

    async def close(self) -> None:
        await self._coordinator.run(self._abort)
        await super().close()
        self._coordinator.close()

    def _abort(self) -> None:
        if self._open_transaction and self._producer is not None:
            try:
                self._producer.abort_transaction(CALL_SECONDS)
            except KafkaException:
                pass  # the next sender ends it, or time does

    async def _ask(self, call: Callable[[float], None]) -> None:
        """Makes a call of the coordinator until it has ended. Such a call goes on where it was."""
        for _ in range(CALLS_MAX):
            try:
                return await self._coordinator.run(partial(call, CALL_SECONDS))
            except KafkaException as error:
                failure = error.args[0]
                if failure.code() != KafkaError._TIMED_OUT and not failure.retriable():
                    raise self._error(failure) from None
            await asyncio.sleep(0)
        raise SinkError(f"{self._error(failure)}: not done within {CALL_SECONDS * CALLS_MAX:g} s")
