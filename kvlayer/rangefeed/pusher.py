"""Pushes transactions that have held the resolved timestamp back for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..clock import duration
from ..errors import KVError
from ..settings import declare_duration
from .host import PushOutcome, RangeFeedHost
from .unresolved_intents import UnresolvedIntents

PUSH_AGE = declare_duration(
    "kv.rangefeed.push_txns.age",
    3.0,
    "how old a transaction's intents are when range feeds begin to push it",
)
PUSH_INTERVAL = declare_duration(
    "kv.rangefeed.push_txns.interval", 1.0, "how often range feeds push old transactions"
)

PUSHES_MAX = 1000
"""Transactions pushed in one round, oldest first. Only the oldest holds the timestamp back."""

JITTER = 0.2
"""Rounds come at the interval give or take this part of it, so that ranges do not push one
transaction all at once."""


class Pusher:
    """Without it, an abandoned transaction would hold the resolved timestamp back for ever.

    A transaction is pushed when its intents are older than the age: the closed timestamp has
    stopped waiting for it by then. One round runs at a time, in a task of its own.
    """

    def __init__(self, host: RangeFeedHost, learned: Callable[[bytes, PushOutcome], None]) -> None:
        self._host = host
        self._learned = learned
        self._round: asyncio.Task[None] | None = None
        self._due_ns = 0

    def tick(self, now_ns: int, intents: UnresolvedIntents) -> None:
        """Begins a round if one is due and there is something to push."""
        if now_ns < self._due_ns or self._round is not None:
            return
        settings, random = self._host.settings, self._host.random
        jitter = 1 + JITTER * (2 * random.random() - 1)
        self._due_ns = now_ns + round(settings.get(PUSH_INTERVAL) * jitter * 1e9)
        if intents.oldest is None:
            return
        limit = self._host.clock.now() - duration(seconds=settings.get(PUSH_AGE))
        old = intents.before(limit, PUSHES_MAX)
        if old:
            self._round = asyncio.get_running_loop().create_task(self._push_all(old))

    def stop(self) -> None:
        """Ends the round under way."""
        if self._round is not None:
            self._round.cancel()
            self._round = None

    async def _push_all(self, old: Sequence[bytes]) -> None:
        try:
            for transaction_id in old:
                outcome = await self._host.push(transaction_id)
                self._host.metrics.add("rangefeed_pushes_total")
                self._learned(transaction_id, outcome)
        except KVError:
            # The store closes, or the transaction is busy: the next round asks again.
            self._host.metrics.add("rangefeed_push_failures_total")
        finally:
            self._round = None
