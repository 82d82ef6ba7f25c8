"""The replica in another store that is to lead its keyspace, as the leader reaches it."""

from __future__ import annotations

from dataclasses import replace

from ....kvlayer.access import StoreAccess
from ....kvlayer.clock import Timestamp
from ....kvlayer.errors import FollowerAway
from ....kvlayer.replication.replica import TakeOver
from ..protocol import SinkError, SinkRefused
from .location import parse_target
from .requests import Leading, ReplicaRequests
from .transport import HttpTransport

PAUSE_SECONDS_MAX = 0.5
"""Writes wait for these requests: they are sent again sooner than a feed's."""


class ReplicaFollower:
    """Implements `kvlayer.raw.Follower` over HTTP. Close it."""

    def __init__(self, uri: str, store: StoreAccess) -> None:
        """Raises SQLError 22023."""
        target = parse_target(uri)
        target = replace(target, backoff_max=max(PAUSE_SECONDS_MAX, target.backoff_min))
        self.address = target.shown
        self._requests = ReplicaRequests(target, HttpTransport(target), store.random, store.metrics)

    async def resolved(self) -> Timestamp:
        try:
            return Timestamp((await self._requests.look()).resolved)
        except (SinkError, SinkRefused) as error:
            raise FollowerAway(str(error)) from error

    async def take_over(self, order: TakeOver, oracle_id: str, secret: bytes) -> None:
        asked = Leading(order.source, order.group, order.term, order.barrier, oracle_id, secret)
        try:
            await self._requests.lead(asked)
        except (SinkError, SinkRefused) as error:
            raise FollowerAway(str(error)) from error

    async def close(self) -> None:
        await self._requests.close()
