"""Arrivals: targets that come to a feed while it runs, by what is committed to the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...kvlayer.clock import Timestamp
from ...kvlayer.events import Event
from ...kvlayer.span import Span


class Arrivals(Protocol):
    """The receiver of arrivals. The pipeline follows `span` beside its targets, from `start_at`
    where its progress says nothing of it, and its part of the frontier has the id `id`.

    A target that arrives at T begins with what was committed at T. So the feed resolves T - 1 at
    most until another attempt has that target.
    """

    @property
    def id(self) -> int: ...

    @property
    def span(self) -> Span: ...

    @property
    def start_at(self) -> Timestamp: ...

    async def take(self, events: Sequence[Event], resolved: Timestamp) -> Timestamp:
        """Up to where the targets are all that there are, `events` telling of all up to
        `resolved`."""
        ...

    async def join(self) -> None:
        """Lets those that have arrived join the feed: the attempt will be told to stop."""
        ...

    @property
    def ended(self) -> Exception | None:
        """The error for which none will arrive any more, where that is so."""
        ...
