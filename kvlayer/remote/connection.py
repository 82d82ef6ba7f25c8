"""The connection of a node to the process that serves its store.

A connection lives as long as its *session stream*: the server ends with it whatever the node had
under way, and the node knows by it when that has happened. Heartbeats find out what a stream alone
does not tell: that the other end is there and says nothing.

Every answer brings the store's clock, its garbage threshold and how far its log is, so that
`clock.last`, `gc_threshold` and `position` are as of the last answer. All connections are to one
history of one store: where the store was put back from an older copy meanwhile, the node is turned
away, for what it knows of the store is not true of that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from ..clock import ZERO, Timestamp, WallClock
from ..errors import KVError, StoreClosed, StoreUnreachable
from ..history import StorePosition
from ..metrics import Metrics
from .channel import Channel, ChannelBroken, ChannelRefused
from .failures import error_of
from .messages import PROTOCOL, Heartbeat, Hello, Message, Reply, Welcome, decode, encode

HEARTBEAT_SECONDS = 1.0
HEARTBEAT_TIMEOUT_SECONDS = 3.0
"""Shorter than a liveness session, so that a node learns of it before its leases have run out."""

RECONNECT_SECONDS_MIN = 0.05
RECONNECT_SECONDS_MAX = 2.0
PATIENCE_SECONDS = 5.0
"""How long a call waits for a connection before it says that there is none."""

ConnectionListener = Callable[[KVError | None], None]
"""Told StoreUnreachable when the connection is lost, None when there is another one, and
StoreClosed when there will be none."""

M = TypeVar("M")


class RemoteClock:
    """The store's clock, as far as it is known here."""

    def __init__(self, wall: WallClock) -> None:
        self.wall = wall
        self._last = ZERO

    @property
    def last(self) -> Timestamp:
        return self._last

    def heard(self, at: Timestamp) -> None:
        if at > self._last:
            self._last = at


class Connection:
    """Keeps one connection, and another when it is lost.

    Calls made while there is none wait for the next, `PATIENCE_SECONDS` at most. `number` names the
    connection in force to the server; what was begun under another is gone.
    """

    def __init__(self, channel: Channel, wall: WallClock, metrics: Metrics) -> None:
        self.clock = RemoteClock(wall)
        self.gc_threshold = ZERO
        self.store_id = ""
        self.number = 0
        self._incarnation = ""
        self._index = 0
        self._channel = channel
        self._metrics = metrics
        self._connected = asyncio.Event()
        self._welcomed: asyncio.Future[None] | None = None
        self._refusal: str | None = None
        self._listeners: list[ConnectionListener] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connects for the first time. Raises StoreUnreachable, StoreClosed (it was refused)."""
        assert self._task is None, "the connection is started already"
        self._welcomed = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep(), name="connection to the store")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.shield(self._welcomed)
        except TimeoutError:
            await self.close()
            raise StoreUnreachable("the store does not answer") from None
        except StoreClosed:
            await self.close()
            raise

    async def close(self) -> None:
        self._refusal = self._refusal or "the connection is closed"
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        self._connected.clear()
        await self._channel.close()

    def on_change(self, listener: ConnectionListener) -> None:
        self._listeners.append(listener)

    def check_open(self) -> None:
        if self._refusal is not None:
            raise StoreClosed(self._refusal)

    @property
    def connected(self) -> bool:
        return self._connected.is_set()

    @property
    def position(self) -> StorePosition:
        """The position of the store's log at the last answer."""
        return StorePosition(incarnation=self._incarnation, index=self._index)

    async def ready(self) -> int:
        """The number of the connection in force. Raises StoreClosed, StoreUnreachable."""
        self.check_open()
        if not self._connected.is_set():
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._connected.wait()
            except TimeoutError:
                raise StoreUnreachable("the store does not answer") from None
            self.check_open()
        return self.number

    async def call(self, method: str, message: Message, type: type[M]) -> M:
        """One call, and its answer. Raises KVErrors of the store, and ChannelBroken."""
        return self._open(await self._channel.call(method, encode(message)), type)

    async def read(self, method: str, message: Message, type: type[M]) -> M:
        """As `call`, for what changes nothing: where it is not answered, StoreUnreachable."""
        try:
            return await self.call(method, message, type)
        except ChannelBroken as broken:
            raise StoreUnreachable(str(broken)) from broken

    async def stream(self, method: str, message: Message, type: type[M]) -> AsyncGenerator[M, None]:
        """One call, and all its answers. Raises KVErrors of the store, and StoreUnreachable."""
        answers = self._channel.stream(method, encode(message))
        try:
            async with aclosing(answers):
                async for answer in answers:
                    yield self._open(answer, type)
        except ChannelBroken as broken:
            raise StoreUnreachable(str(broken)) from broken

    def _open(self, answer: bytes, type: type[M]) -> M:
        reply = decode(answer, Reply)
        self.clock.heard(reply.clock)
        self.gc_threshold = max(self.gc_threshold, reply.threshold)
        self._index = max(self._index, reply.index)
        if reply.failure is not None:
            raise error_of(reply.failure)
        return decode(reply.body, type)

    async def _keep(self) -> None:
        """Connects, stays connected until that fails, and connects again."""
        pause = RECONNECT_SECONDS_MIN
        while True:
            try:
                await self._session()
                pause = RECONNECT_SECONDS_MIN
            except (ChannelBroken, KVError):
                pass
            except ChannelRefused as refused:
                self._refuse(str(refused))
                return
            if self._refusal is not None:
                return
            if self._connected.is_set():
                pause = RECONNECT_SECONDS_MIN
                self._connected.clear()
                self._metrics.add("remote_connections_lost_total")
                self._tell(StoreUnreachable("the store does not answer"))
            await self._channel.reset()
            await asyncio.sleep(pause)
            pause = min(2 * pause, RECONNECT_SECONDS_MAX)

    async def _session(self) -> None:
        """One connection, from its welcome to its end."""
        hello = Hello(PROTOCOL, self.position if self.store_id else None)
        answers = self._channel.stream("session", encode(hello))
        async with aclosing(answers):
            async for answer in answers:
                welcome = self._open(answer, Welcome)
                if self.store_id not in ("", welcome.store_id):
                    self._refuse(
                        f"store {welcome.store_id} answers, and this node joined {self.store_id}"
                    )
                    return
                self.store_id = welcome.store_id
                self._incarnation = welcome.incarnation
                self.number = welcome.connection
                self._connected.set()
                if self._welcomed is not None and not self._welcomed.done():
                    self._welcomed.set_result(None)
                else:
                    self._tell(None)
                await self._live(answers)
                return

    async def _live(self, answers: AsyncGenerator[bytes, None]) -> None:
        """Returns when the stream ends or a heartbeat is not answered."""
        ended = asyncio.ensure_future(anext(answers, None))
        beating = asyncio.ensure_future(self._beat())
        both = (ended, beating)
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.wait(both)
            for one in both:
                if not one.cancelled():
                    one.exception()  # why it ended does not matter: it did

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            async with asyncio.timeout(HEARTBEAT_TIMEOUT_SECONDS):
                await self.call("heartbeat", Heartbeat(self.number), type(None))

    def _refuse(self, reason: str) -> None:
        self._refusal = reason
        if self._welcomed is not None and not self._welcomed.done():
            self._welcomed.set_exception(StoreClosed(reason))
        self._connected.set()  # who waits for a connection is to hear that there will be none
        self._tell(StoreClosed(reason))

    def _tell(self, change: KVError | None) -> None:
        for listener in self._listeners:
            listener(change)
