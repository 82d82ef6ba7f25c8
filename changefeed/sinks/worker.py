"""Kinds of sink whose rows another program writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...kvlayer.clock import Timestamp
from ...kvlayer.history import StorePosition
from ...kvlayer.span import Span
from ..contract.options import ChangefeedOptions
from .kind import Kind
from .protocol import FeedIdentity, Holds, SinkProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFeed:
    """A feed of one table or keyspace, with all keys of `span`, whose rows another program writes,
    as its kind runs it.

    The program's every batch is reported: how far the feed has come with it, and its rows.
    `resolved` is how far it had come before; `start_at` if it had not begun. `position` says how
    far this process has been given the store's log, and `holds` whether such a position is in the
    store's past.
    """

    identity: FeedIdentity
    uri: str
    table_id: int
    name: str
    span: Span
    user: str
    """The feed's owner, by whose rights the program reads."""
    start_at: Timestamp
    resolved: Timestamp
    options: ChangefeedOptions
    position: Callable[[], StorePosition]
    holds: Holds
    report: Callable[[SinkProgress, int], Awaitable[None]]


class WorkerKind(Kind):
    """A scheme behind which no sink stands but a program, which fetches the rows itself.

    It judges a URI as a `SinkKind` does, and then runs a feed from beginning to end.
    """

    @abstractmethod
    async def run(self, feed: WorkerFeed) -> None:
        """Returns when the feed has done its work. Raises SinkError and SinkRefused."""
