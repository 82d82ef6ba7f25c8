"""Pushes transactions that have held the resolved timestamp back for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..clock import duration
from ..errors import KVError
from ..settings import declare_duration, declare_int
from .host import PushOutcome, RangeFeedHost
from .unresolved_intents import UnresolvedIntents

PUSH_AGE = declare_duration(
    "kv.rangefeed.push_txns.age",
    3.0,
    "how old a transaction's intents are when range feeds begin to push it",
)
PUSH_INTERVAL = declare_duration(
    "kv.rangefeed.push_txns.interval",
    1.0,
    "how long range feeds wait before they push again when a push has failed",
)
PUSH_JITTER = declare_int(
    "kv.rangefeed.push_txns.jitter_percent",
    10,
    "by how much of the age, at most, range feeds push earlier",
)

PUSHES_MAX = 1000
"""Transactions pushed in one round, oldest first. Only the oldest holds the timestamp back."""

ROUND_INTERVAL = 0.05
"""Seconds between rounds, so that a push has taken effect before the next one looks: its entry must
be durable and delivered."""


class Pusher:
    """Without it, an abandoned transaction would hold the resolved timestamp back for ever.

    A transaction is pushed when its intents reach the age, by when the closed timestamp has stopped
    waiting for it; not at the next of some rounds, which would add their interval to how far the
    resolved timestamp may be behind. The age is drawn anew for each round, and is a little less
    than the setting: so that ranges do not push one transaction all at once, and yet none later
    than it says. One round runs at a time, in a task of its own.
    """

    def __init__(self, host: RangeFeedHost, learned: Callable[[bytes, PushOutcome], None]) -> None:
        self._host = host
        self._learned = learned
        self._round: asyncio.Task[None] | None = None
        self._due_ns = 0
        self._age = self._draw_age()

    def tick(self, now_ns: int, intents: UnresolvedIntents) -> None:
        """Begins a round if anything is old enough."""
        oldest = intents.oldest
        if oldest is None or now_ns < self._due_ns or self._round is not None:
            return
        now = self._host.clock.last  # the tick has drawn it just before
        if oldest > now - duration(seconds=self._age):
            return
        self._age = self._draw_age()
        self._due_ns = now_ns + round(ROUND_INTERVAL * 1e9)
        old = intents.before(now - duration(seconds=self._age), PUSHES_MAX)
        old = old or intents.before(oldest + 1, PUSHES_MAX)
        self._round = asyncio.get_running_loop().create_task(self._push_all(old))

    def _draw_age(self) -> float:
        settings = self._host.settings
        early = settings.get(PUSH_JITTER) / 100 * self._host.random.random()
        return settings.get(PUSH_AGE) * (1 - early)

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
            interval_ns = round(self._host.settings.get(PUSH_INTERVAL) * 1e9)
            self._due_ns = self._host.clock.wall.monotonic_ns() + interval_ns
        finally:
            self._round = None
