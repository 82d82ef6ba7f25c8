"""A connection to the server behind a sink: who waits for it can always stop waiting.

A server that stands still answers no request to cancel either. So a call that is cancelled shuts
the socket down, which ends the call at once with an error; the connection is of no further use.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from ..protocol import SinkError, SinkRefused
from .location import PostgresTarget

T = TypeVar("T")
Connection = psycopg.AsyncConnection[tuple[Any, ...]]

SETTINGS = (
    "SET IntervalStyle = postgres; SET DateStyle = ISO; SET TimeZone = UTC; "
    "SET statement_timeout = 0; SET default_transaction_isolation = 'read committed'; "
    "SET default_transaction_read_only = off"
)
"""What values are read by, and nothing that the role or the database has set for other clients."""

REFUSED_CLASSES = ("22", "54")
"""Classes of errors that come again whenever the rows do: a value that the database cannot hold,
and one beyond a limit."""


async def connect(target: PostgresTarget) -> Connection:
    """Raises SinkError with the server's own words."""
    try:
        connection = await psycopg.AsyncConnection.connect(
            **target.connection,  # type: ignore[arg-type]  # libpq's parameters, some of them int
            autocommit=True,
        )
    except psycopg.Error as error:
        raise SinkError(f"{target.shown}: {words_of(error)}") from None
    try:
        await cancellable(connection, connection.execute(SETTINGS))
    except psycopg.Error as error:
        await connection.close()
        raise SinkError(f"{target.shown}: {words_of(error)}") from None
    except BaseException:
        await connection.close()
        raise
    return connection


@asynccontextmanager
async def connected(target: PostgresTarget) -> AsyncIterator[Connection]:
    """A connection for the time of the block. Raises SinkError, also for errors of the block."""
    connection = await connect(target)
    try:
        yield connection
    except psycopg.Error as error:
        raise SinkError(f"{target.shown}: {words_of(error)}") from None
    finally:
        await connection.close()


async def cancellable(connection: Connection, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work` on the connection. A cancelled caller breaks the connection."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            _shut_down(connection)
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # whatever it was, nobody waits for it
        raise


async def in_transaction(connection: Connection, work: Callable[[], Awaitable[T]]) -> T:
    """Runs `work` between BEGIN and COMMIT; rolls back what it raises."""
    await connection.execute("BEGIN")
    try:
        found = await work()
        await connection.execute("COMMIT")
    except BaseException:
        await roll_back(connection)
        raise
    return found


async def roll_back(connection: Connection) -> None:
    """Ends a transaction that failed, if the connection still lives."""
    if connection.closed or connection.info.transaction_status is TransactionStatus.IDLE:
        return
    try:
        await connection.execute("ROLLBACK")
    except psycopg.Error:
        pass  # the connection broke, and the server rolls back by itself


def sink_error(target: PostgresTarget, error: psycopg.Error) -> SinkError | SinkRefused:
    """The error as the feed tells it: one that may pass, or one that the rows themselves cause."""
    text = f"{target.shown}: {words_of(error)}"
    if (error.sqlstate or "")[:2] in REFUSED_CLASSES:
        return SinkRefused(text)
    return SinkError(text)


def words_of(error: psycopg.Error) -> str:
    """The server's or libpq's own words on one line, without the values of rows."""
    primary = error.diag.message_primary
    text = primary if primary else str(error)
    words = " ".join(text.split()) or type(error).__name__
    return f"{words} (SQLSTATE {error.sqlstate})" if error.sqlstate else words


def _shut_down(connection: Connection) -> None:
    if connection.closed:
        return
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as shared:
            shared.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is broken already
