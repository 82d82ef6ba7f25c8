"""Requests to a replica's store, sent again while they are not answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TypeVar

import msgspec

from ....kvlayer.clock import Timestamp, format_timestamp
from ....kvlayer.metrics import Metrics
from ....kvlayer.replication.replica import Ingest
from ...contract.resending import TRIES_MAX, TokenBucket, refused, tries
from ..protocol import KeyInterval, NoteTrouble, SinkError, SinkRefused, TaskKeys, untold
from .location import ReplicaTarget
from .transport import MSGPACK, Reply, Transport, TransportBroken

S = TypeVar("S", bound=msgspec.Struct)

RESTORE_SECONDS = 6 * 3600.0
"""How long a restoration may take: nothing is lost by waiting, and asking again begins anew."""

_encode = msgspec.json.Encoder().encode
_encode_order = msgspec.msgpack.Encoder().encode


class Opening(msgspec.Struct, omit_defaults=True):
    source: str
    task: KeyInterval | None = None
    whole: KeyInterval | None = None


class Leading(msgspec.Struct):
    """The request that makes the replica lead: see `kvlayer.replication.replica.TakeOver`. `oracle`
    is the store that keeps the placement, and `secret` that of the leader's offer."""

    source: str
    group: str
    term: int
    barrier: int
    oracle: str
    secret: bytes


class Statement(msgspec.Struct):
    sql: str


class Stand(msgspec.Struct):
    """Returns the replica's answer."""

    epoch: int
    resolved: int
    note: bytes
    taken: int
    known: int


class Pair(msgspec.Struct):
    key: bytes
    value: bytes


class Page(msgspec.Struct):
    """`next` is the key with which to go on."""

    pairs: list[Pair]
    next: bytes | None = None


class _Problem(msgspec.Struct):
    title: str
    sqlstate: str | None = None


class Refused(SinkRefused):
    """The target refused, and said why."""

    def __init__(self, words: str, sqlstate: str | None) -> None:
        super().__init__(words)
        self.sqlstate = sqlstate


class ReplicaRequests:
    """Asks one replica. What is not answered is sent again: the replica drops what it has."""

    def __init__(
        self,
        target: ReplicaTarget,
        transport: Transport,
        random: Random,
        metrics: Metrics,
        note_trouble: NoteTrouble = untold,
    ) -> None:
        self._target = target
        self._transport = transport
        self._random = random
        self._metrics = metrics
        self._note_trouble = note_trouble
        self._bucket = TokenBucket(target.rate_limit)
        self._place = f"/v1/keyspaces/{target.keyspace}/ingest"

    async def open(self, source: str, task: TaskKeys | None = None) -> Stand:
        """Begins an epoch of the replica, or of a task of it, which is made where it is missing."""
        opening = Opening(source)
        if task is not None:
            opening = Opening(source, task.own, task.whole)
        try:
            return await self._post(f"{self._place}/open", opening, Stand)
        except Refused as error:
            if error.sqlstate != "42P01":
                raise
        text = f"CREATE KEYSPACE IF NOT EXISTS {self._name} WITH (role = 'replica')"
        await self._post("/v1/sql", Statement(text), None)
        return await self._post(f"{self._place}/open", opening, Stand)

    async def restore(self, uri: str) -> None:
        """Makes the replica from a backup, or goes on with one that was not finished."""
        place = uri.replace("'", "''")
        text = f"RESTORE KEYSPACE {self._name} FROM '{place}' WITH (role = 'replica')"
        asked = partial(
            self._transport.post, "/v1/sql", _encode(Statement(text)), seconds=RESTORE_SECONDS
        )
        await self._tried(asked, None)

    @property
    def _name(self) -> str:
        """The keyspace's, as SQL takes it."""
        parts = self._target.keyspace.split(".")
        return ".".join('"' + part.replace('"', '""') + '"' for part in parts)

    async def send(self, order: Ingest) -> Stand:
        """Returns when what was sent is durable there. Its keys are without what all keys of the
        keyspace begin with. Raises SinkError, SinkRefused."""
        now = asyncio.get_running_loop().time()
        if wait := self._bucket.take(len(order.keys), now):
            self._metrics.add("replication_rate_limit_waits_total")
            await asyncio.sleep(wait)
        body = _encode_order(order)
        return await self._tried(
            partial(self._transport.post, self._place, body, media_type=MSGPACK), Stand
        )

    async def look(self) -> Stand:
        """Reads the replica's stand, without beginning an epoch."""
        return await self._tried(partial(self._transport.get, self._place, {}), Stand)

    async def lead(self, asked: Leading) -> Stand:
        """Returns when the replica is written there."""
        return await self._post(f"{self._place}/lead", asked, Stand)

    async def page(self, start: bytes, end: bytes | None, at: Timestamp) -> Page:
        """A page of the replica's keys in `[start, end)` and their values, as of `at`."""
        asked = {"from": start.decode("latin-1"), "at": format_timestamp(at)}
        if end is not None:
            asked["to"] = end.decode("latin-1")
        path = self._place.removesuffix("ingest") + "keys"
        return await self._tried(partial(self._transport.get, path, asked), Page)

    async def close(self) -> None:
        await self._transport.close()

    async def _post(self, path: str, body: msgspec.Struct, reply: type[S] | None) -> S:
        return await self._tried(partial(self._transport.post, path, _encode(body)), reply)

    async def _tried(self, ask: Callable[[], Awaitable[Reply]], reply: type[S] | None) -> S:
        target, words = self._target, ""
        for pause in tries(target.backoff_min, target.backoff_max, self._random):
            if pause:
                self._metrics.add("replication_retries_total")
                await asyncio.sleep(pause)
            try:
                answer = await ask()
                if answer.status == 200:
                    found = msgspec.json.decode(answer.body, type=reply or msgspec.Raw)
                    if words:
                        self._note_trouble(None)
                    return found  # type: ignore[return-value]
                words = self._judge(answer)
            except TransportBroken as broken:
                words = str(broken)
            except (
                msgspec.MsgspecError,
                UnicodeDecodeError,
            ) as error:  # a proxy's page, or half an answer
                words = f"{target.shown}: no store answers so: {error}"
            self._note_trouble(words)
        raise SinkError(f"{words} ({TRIES_MAX} tries)")

    def _judge(self, answer: Reply) -> str:
        """The reason for another try. Raises Refused where there is none."""
        try:
            problem = msgspec.json.decode(answer.body, type=_Problem)
        except msgspec.MsgspecError:
            problem = _Problem(f"HTTP status {answer.status}")
        words = f"{self._target.shown}: {problem.title}"
        if refused(answer.status, problem.sqlstate):
            raise Refused(words, problem.sqlstate)
        return words
