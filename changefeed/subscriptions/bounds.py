"""Bounds of what a subscription keeps from garbage collection, in age and in bytes.

A subscription whose client never comes back would keep every version for ever. Beyond either bound
it fails by name, and its rows are collected. What it keeps is counted as it is written: each turn
reads the versions that were committed since the last one, and no others.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ...kvlayer.access import committed
from ...kvlayer.clock import Timestamp, seconds_between
from ...kvlayer.errors import KVError, StoreClosed
from ...kvlayer.settings import declare_bytes
from ..jobs.services import ChangefeedServices
from .subscription import (
    MAX_AGE,
    Subscription,
    fail_subscription,
    find_subscription,
    list_subscriptions,
)

MAX_BYTES = declare_bytes(
    "changefeed.subscription.max_bytes",
    1 << 30,
    "keys and values that may be committed behind a subscription before it fails (0: any number)",
)

TURN_SECONDS = 10.0
"""By so much a subscription may pass its bounds."""


class _Kept:
    """The bytes that one subscription keeps, by the end of the turn that found them."""

    def __init__(self, since: Timestamp) -> None:
        self.upto = since
        self._turns: deque[tuple[Timestamp, int]] = deque()

    def add(self, upto: Timestamp, count: int) -> None:
        self.upto = upto
        if count:
            self._turns.append((upto, count))

    def above(self, position: Timestamp) -> int:
        """Bytes above the position, and some of those below it that one turn found with them."""
        while self._turns and self._turns[0][0] <= position:
            self._turns.popleft()
        return sum(count for _, count in self._turns)


class SubscriptionBounds:
    """Fails subscriptions that are beyond their bounds. One node does it for all."""

    def __init__(self, services: ChangefeedServices) -> None:
        self._services = services
        self._kept: dict[bytes, _Kept] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="subscription bounds")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def enforce(self) -> None:
        """Makes one turn over all subscriptions. Raises KVError."""
        store = self._services.store
        now = await store.now()
        standing = [
            each for each in await list_subscriptions(store.snapshot(now)) if not each.error
        ]
        known = {each.definition.protection_id for each in standing}
        self._kept = {key: kept for key, kept in self._kept.items() if key in known}
        for subscription in standing:
            excess = await self._excess(subscription, now)
            if excess is not None:
                await self._fail(subscription, excess)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TURN_SECONDS)
            try:
                await self.enforce()
            except StoreClosed:
                return
            except KVError:
                self._services.store.metrics.add("changefeed_subscription_bound_failures_total")

    async def _excess(self, subscription: Subscription, now: Timestamp) -> str | None:
        settings = self._services.store.settings
        age_max, bytes_max = settings.get(MAX_AGE), settings.get(MAX_BYTES)
        age = seconds_between(subscription.position, now)
        if 0 < age_max < age:
            return (
                f"it is {age:.0f} s behind, and {MAX_AGE.name} allows {age_max:.0f} s between "
                "acknowledgements"
            )
        if not bytes_max:
            return None
        kept = self._kept.setdefault(
            subscription.definition.protection_id, _Kept(subscription.position)
        )
        kept.add(now, await self._committed(subscription, kept.upto, now))
        count = kept.above(subscription.position)
        if count <= bytes_max:
            return None
        return (
            f"{count} bytes were committed since it was acknowledged, and {MAX_BYTES.name} allows "
            f"{bytes_max}"
        )

    async def _committed(
        self, subscription: Subscription, after: Timestamp, upto: Timestamp
    ) -> int:
        """Bytes of the keys and values that were committed to its tables in between."""
        total = 0
        for table_id in subscription.definition.tables:
            span = self._services.target(table_id).span
            async for versions in self._services.store.versions(span, after, upto):
                total += sum(len(key) + len(value or b"") for key, _, value in versions)
        return total

    async def _fail(self, subscription: Subscription, error: str) -> None:
        async with committed(self._services.store) as transaction:
            current = await find_subscription(transaction, subscription.name)
            if current == subscription:  # else it was acknowledged or dropped meanwhile
                await fail_subscription(self._services, transaction, current, error)
                self._services.store.metrics.add("changefeed_subscriptions_failed_total")
