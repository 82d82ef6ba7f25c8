"""Transactions by token: sessions that outlive a request, for a while.

    POST /v1/transactions                   -> {"transaction": "…", "idle_seconds": 30}
    POST /v1/sql {"transaction": "…", …}    any number of times
    POST /v1/transactions/{id}/commit       or /rollback

One that nobody uses for `idle_seconds` is rolled back, and whoever comes later is told 25P03.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ...catalog.values.errors import SQLError
from ...sql import Result, Session
from ..node import Node

OPEN_MAX = 200
"""Transactions that are open at a time: each holds locks and a snapshot."""

OPEN_OF_USER_MAX = 150
"""Open transactions of one user: the rest lets others work beside a user who never commits."""

EXPIRED_MAX = 1_000
"""Transactions of which it is still known that they have expired."""

TOKEN_BYTES = 18


@dataclass(slots=True, eq=False)
class HeldTransaction:
    """`session` is in a transaction. Requests take their turn on `turn`."""

    id: str
    user: str
    session: Session
    idle_seconds: float
    turn: asyncio.Lock
    timer: asyncio.TimerHandle | None = None


class HeldTransactions:
    """The open transactions of one server."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._open: dict[str, HeldTransaction] = {}
        self._expired: dict[str, str] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def begin(
        self, user: str, address: str, database: str, begin: str, idle_seconds: float
    ) -> HeldTransaction:
        """Raises SQLError 53300 where too many are open."""
        self._check_room(user)
        session = self._node.session(database=database, user=user, address=address)
        try:
            await session.execute(begin)
        except BaseException:
            await session.close()
            raise
        id = secrets.token_urlsafe(TOKEN_BYTES)
        held = HeldTransaction(id, user, session, idle_seconds, asyncio.Lock())
        self._open[id] = held
        self._wait(held)
        return held

    def _check_room(self, user: str) -> None:
        mine = sum(held.user == user for held in self._open.values())
        for count, most, whose in (
            (len(self._open), OPEN_MAX, ""),
            (mine, OPEN_OF_USER_MAX, f' of user "{user}"'),
        ):
            if count >= most:
                raise SQLError(
                    "53300",
                    f"{most} transactions{whose} are open, and there may be no more",
                    hint="Commit them, or let them expire.",
                )

    def find(self, id: str, user: str) -> HeldTransaction:
        """Raises SQLError 25P03 for one that has expired, 25P01 for one that is not known."""
        held = self._open.get(id)
        if held is not None and held.user == user:
            return held
        if self._expired.get(id) == user:
            raise SQLError(
                "25P03",
                "the transaction was not used for too long, and is rolled back",
                hint="Begin another one, with a longer idle_seconds if need be.",
            )
        raise SQLError("25P01", "there is no such transaction", hint="POST /v1/transactions.")

    async def run(
        self,
        held: HeldTransaction,
        text: str,
        parameters: list[object],
        *,
        streamed: bool = False,
    ) -> list[Result]:
        """Runs statements in it. Its time begins anew when they are done."""
        async with self._used(held):
            return await held.session.execute(text, parameters, streamed=streamed)

    @asynccontextmanager
    async def sending(self, held: HeldTransaction, result: Result) -> AsyncIterator[None]:
        """Around the taking of a result's batches: other requests wait, and so does its time."""
        async with self._used(held), held.session.sending(result):
            yield

    @asynccontextmanager
    async def _used(self, held: HeldTransaction) -> AsyncIterator[None]:
        async with held.turn:
            self.find(held.id, held.user)  # it may have ended while this request waited
            if held.timer is not None:
                held.timer.cancel()
            try:
                yield
            finally:
                if held.id in self._open:
                    self._wait(held)

    async def end(self, held: HeldTransaction) -> None:
        """Forgets it, and rolls back what is open."""
        self._open.pop(held.id, None)
        if held.timer is not None:
            held.timer.cancel()
        await held.session.close()

    async def close(self) -> None:
        """Rolls all of them back."""
        for held in list(self._open.values()):
            await self.end(held)
        if self._ending:
            await asyncio.wait(set(self._ending))

    def _wait(self, held: HeldTransaction) -> None:
        loop = asyncio.get_running_loop()
        held.timer = loop.call_later(held.idle_seconds, self._expire, held)

    def _expire(self, held: HeldTransaction) -> None:
        if self._open.pop(held.id, None) is None:
            return
        while len(self._expired) >= EXPIRED_MAX:
            del self._expired[next(iter(self._expired))]
        self._expired[held.id] = held.user
        task = asyncio.get_running_loop().create_task(held.session.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
