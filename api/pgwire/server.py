"""The server: a listening socket, its connections, and who may cancel what.

A connection is a `Channel` (its socket) with a task that greets the client (encryption, start-up,
authentication) and then holds a `Conversation` with it. The server knows all conversations, so that
a CancelRequest, which comes on a connection of its own, finds the one that it means.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from functools import partial

from ...catalog.values.errors import SQLError
from ...kvlayer.errors import KVError
from ...sql import Session
from ...sql.results.errors import from_kv
from ..admission import Admission, Place
from ..descriptors import ACCEPTED_AT_ONCE
from ..node import Node
from . import replies
from .channel import Channel, HangUp
from .conversation import Conversation
from .greeting import Greeting, begin_session, greet
from .interruption import Interruption
from .options import PostgresOptions
from .replies import Severity

GREETING_SECONDS = 60.0
"""How long a client may take to say who it is, as PostgreSQL's authentication_timeout."""

STOP_PATIENCE_SECONDS = 5.0
"""How long conversations have to end once the server is told to stop."""

BACKLOG = 1024
"""Connections that wait in the kernel until the loop accepts them, `ACCEPTED_AT_ONCE` at a time."""


class PostgresServer:
    """Serves one node on one socket. Made by `serve_postgres`."""

    def __init__(self, node: Node, options: PostgresOptions) -> None:
        self._node = node
        self._options = options
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._conversations: dict[int, tuple[int, Conversation]] = {}
        self._admission = Admission(options.bounds, node.store.metrics, "pgwire")

    @property
    def connection_count(self) -> int:
        return len(self._tasks)

    async def start(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Channel(self._connected), sock=listener, backlog=ACCEPTED_AT_ONCE
        )
        listener.listen(BACKLOG)

    async def close(self) -> None:
        """Takes no more clients, and ends the conversations: what runs is cut short."""
        if self._server is not None:
            self._server.close()
        for _, conversation in list(self._conversations.values()):
            conversation.stop()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=STOP_PATIENCE_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    # Connections

    def _connected(self, channel: Channel) -> None:
        place = self._admission.arrive(channel.peer, partial(_turn_away, channel))
        task = asyncio.create_task(self._attend(channel, place), name=f"pgwire {channel.peer}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attend(self, channel: Channel, place: Place) -> None:
        """All of one connection. Nothing that happens here reaches another one."""
        try:
            greeting = await self._greeted(channel, place)
            if greeting is not None:
                await self._converse(channel, greeting)
        except HangUp:
            pass
        except SQLError as error:
            channel.write(replies.error(error, Severity.FATAL))
        except KVError as error:  # the store is away, and there is no statement to tell it to
            channel.write(replies.error(from_kv(error), Severity.FATAL))
        except Exception as error:  # a fault of ours: it ends one connection, and is told to both
            fault = SQLError("XX000", f"internal error: {error!r}")
            channel.write(replies.error(fault, Severity.FATAL))
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "a connection failed", "exception": error})
        finally:
            channel.close()
            place.leave()

    async def _greeted(self, channel: Channel, place: Place) -> Greeting | None:
        """Reads the client's greeting; None for a connection that only came to cancel."""
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                greeting = await greet(channel, self._node, self._options, place)
        except TimeoutError:
            return None
        except (ssl.SSLError, OSError):
            return None  # the handshake failed: there is nobody to tell
        if greeting.cancels is not None:
            self._cancel(*greeting.cancels)
            return None
        return greeting

    async def _converse(self, channel: Channel, greeting: Greeting) -> None:
        session = await self._session(greeting, channel.peer)
        conversation = Conversation(channel, session)
        process_id = session.activity.process_id
        secret = self._node.store.random.getrandbits(31)
        self._conversations[process_id] = (secret, conversation)
        session.activity.on_terminate = conversation.stop
        try:
            begin_session(channel, session, greeting)
            conversation.begin()
            channel.write(replies.backend_key(process_id, secret))
            await conversation.run()
        finally:
            del self._conversations[process_id]

    async def _session(self, greeting: Greeting, address: str) -> Session:
        database, user = greeting.database, greeting.user
        if greeting.mirror is None:
            return self._node.session(database=database, user=user, address=address)
        session = self._node.mirror_session(greeting.mirror, user=user, address=address)
        try:
            await session.check()
        except BaseException:
            await session.close()
            raise
        return session

    def _cancel(self, process_id: int, secret: int) -> None:
        """A wrong secret is not told: whoever guesses learns nothing."""
        known, conversation = self._conversations.get(process_id, (None, None))
        if conversation is not None and known == secret:
            conversation.guard.interrupt(Interruption.CANCEL)


def _turn_away(channel: Channel) -> None:
    """Ends a connection that has not said whose it is, for a newer one."""
    crowd = SQLError(
        "53300",
        "too many connections that have not authenticated",
        hint="Authenticate at once, or connect later.",
    )
    channel.turn_away(replies.error(crowd, Severity.FATAL))


@contextlib.asynccontextmanager
async def serve_postgres(
    node: Node, listener: socket.socket, options: PostgresOptions
) -> AsyncIterator[PostgresServer]:
    """Serves the node on a bound socket for as long as the context lasts."""
    server = PostgresServer(node, options)
    await server.start(listener)
    try:
        yield server
    finally:
        await server.close()
