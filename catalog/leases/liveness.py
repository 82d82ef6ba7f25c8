"""The liveness session of a node: the row that its leases and job claims stand on.

A session lives until its expiration, a timestamp of the store, which heartbeats push ahead. Three
rules keep everyone's view of it the same:

- The node itself counts only on the expiration that the store has *acknowledged*.
- Nobody extends a session at or above its expiration, the node least of all: others may already
  have acted as if it were gone. The node goes on under a new incarnation.
- Another node may remove a session only at a timestamp at or above its expiration.

A node that was stopped for a minute thus finds, whatever it does first, that its session covers
nothing of that minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import ZERO, Timestamp, duration
from ...kvlayer.errors import KVError, StoreClosed
from ...kvlayer.settings import declare_duration
from ...kvlayer.txn import Evaluation
from ..store.lease_rows import SESSIONS, SessionRow, session_key
from .incarnation import Incarnation

HEARTBEAT_INTERVAL = declare_duration(
    "server.liveness.heartbeat_interval", 1.0, "how often a node extends its liveness session"
)
TTL = declare_duration(
    "server.liveness.ttl", 5.0, "how long a liveness session lives after its last heartbeat"
)


class SessionLost(Exception):
    """The session expired or was removed: what was done under it is void."""


class LivenessSession:
    """Keeps one node's session alive, and starts another when it is lost.

    `incarnation` is the one in force. Listeners hear of a lost one after the next is in force, in
    the same step.
    """

    def __init__(self, store: StoreAccess, node_id: int) -> None:
        self._store = store
        self.node_id = node_id
        self._incarnation: Incarnation | None = None
        self._epoch = 0
        self._lost_listeners: list[Callable[[Incarnation], None]] = []
        self._removed_listeners: list[Callable[[Sequence[str]], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    @property
    def incarnation(self) -> Incarnation:
        assert self._incarnation is not None, "the session is not started"
        return self._incarnation

    async def start(self) -> None:
        """Begins a session.

        One that an earlier process of this node left behind is removed: a node is one process.
        """
        assert self._task is None, "the session is started already"
        await self._begin(replacing=self._former_sessions)
        self._task = asyncio.create_task(self._run(), name=f"liveness of node {self.node_id}")

    def on_lost(self, listener: Callable[[Incarnation], None]) -> None:
        """Calls `listener` with each of this node's incarnations that is lost."""
        self._lost_listeners.append(listener)

    def on_removed(self, listener: Callable[[Sequence[str]], None]) -> None:
        """Calls `listener` with sessions of other nodes that were dead and are now removed."""
        self._removed_listeners.append(listener)

    async def ensure_beyond(self, at: Timestamp) -> bool:
        """Heartbeats if the session is not acknowledged beyond `at`; says whether it is then.

        It cannot be for an `at` that is a time to live or more ahead of the store's clock.
        """
        if self.incarnation.expiration <= at:
            await self.heartbeat()
        return self.incarnation.expiration > at

    async def heartbeat(self) -> None:
        """Extends the session, or begins another if it is lost."""
        async with self._one_at_a_time:
            incarnation = self.incarnation
            if not incarnation.lost:
                try:
                    expiration, _ = await self._store.one_phase(self._extend)
                except SessionLost:
                    pass
                else:
                    incarnation.extend(expiration)
                    return
            await self._begin(replacing=lambda _: (session_key(incarnation.session_id),))

    async def close(self) -> None:
        """Ends the session, so that nobody waits for it to expire."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        self._task = None
        incarnation = self.incarnation
        incarnation.end(Timestamp(self._store.clock.last + 1))
        key = session_key(incarnation.session_id)
        try:
            await self._store.one_phase(lambda evaluation: evaluation.delete((key,)))
        except KVError:
            pass  # it will expire

    async def _run(self) -> None:
        """Heartbeats, and removes the sessions of nodes that died."""
        while True:
            await asyncio.sleep(self._store.settings.get(HEARTBEAT_INTERVAL))
            try:
                await self.heartbeat()
                removed, _ = await self._store.one_phase(_remove_expired)
            except StoreClosed:
                return  # nothing is acknowledged any more, so nothing is claimed for long
            except KVError:
                self._store.metrics.add("liveness_heartbeat_retries_total")
            else:
                for listener in self._removed_listeners if removed else ():
                    listener(removed)

    def _extend(self, evaluation: Evaluation) -> Timestamp:
        session_id = self.incarnation.session_id
        row = read_session(evaluation, session_id)
        if row is None or not evaluation.before(row.expiration):
            raise SessionLost(session_id)
        return self._write(evaluation, session_id, at_least=row.expiration)

    async def _begin(self, *, replacing: Callable[[Evaluation], Sequence[bytes]]) -> None:
        """Puts another session in force and removes those that it replaces."""
        former, self._epoch = self._incarnation, self._epoch + 1
        session_id = str(UUID(int=self._store.random.getrandbits(128), version=4))

        def evaluate(evaluation: Evaluation) -> Timestamp:
            evaluation.delete(replacing(evaluation))
            return self._write(evaluation, session_id, at_least=ZERO)

        if former is not None:
            # From here on nothing may be done under it, whatever becomes of the next line.
            former.lost = True
        expiration, _ = await self._store.one_phase(evaluate)
        self._incarnation = Incarnation(session_id, self.node_id, expiration)
        if former is not None:
            self._store.metrics.add("liveness_sessions_lost_total")
            for listener in self._lost_listeners:
                listener(former)

    def _former_sessions(self, evaluation: Evaluation) -> list[bytes]:
        rows = [(key, SessionRow.decode(key, body)) for key, body in evaluation.scan(SESSIONS)]
        return [key for key, row in rows if row.node_id == self.node_id]

    def _write(self, evaluation: Evaluation, session_id: str, *, at_least: Timestamp) -> Timestamp:
        """Expirations never go down, also when the time to live was set lower."""
        ttl = duration(seconds=self._store.settings.get(TTL))
        expiration = max(Timestamp(evaluation.timestamp + ttl), at_least)
        row = SessionRow(
            session_id=session_id,
            expiration=expiration,
            node_id=self.node_id,
            epoch=self._epoch,
        )
        key, body = row.encode()
        evaluation.put((key,), (body,))
        return expiration


def read_session(evaluation: Evaluation, session_id: str) -> SessionRow | None:
    """The session's row, read in the step that acts on it: a miss is a dead session."""
    key = session_key(session_id)
    body = evaluation.get(key)
    return None if body is None else SessionRow.decode(key, body)


async def node_lives(store: StoreAccess, node_id: int) -> bool:
    """Whether the node has a session that has not expired."""
    return node_id in await living_nodes(store)


async def living_nodes(store: StoreAccess) -> set[int]:
    """The nodes that have a session that has not expired."""
    now = await store.now()
    rows = await store.snapshot(now).scan(SESSIONS)
    sessions = (SessionRow.decode(key, body) for key, body in rows)
    return {row.node_id for row in sessions if row.expiration > now}


def _remove_expired(evaluation: Evaluation) -> list[str]:
    rows = [(key, SessionRow.decode(key, body)) for key, body in evaluation.scan(SESSIONS)]
    expired = [(key, row) for key, row in rows if not evaluation.before(row.expiration)]
    if expired:
        evaluation.delete([key for key, _ in expired])
    return [row.session_id for _, row in expired]
