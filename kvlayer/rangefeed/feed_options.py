"""What a subscription asks for besides its span and its start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """Which values a feed shows, and what with them.

    `with_previous` fills `ValueBatch.previous`. Values first written on one of the stores in
    `omitted_origins` are left out: so replication between two stores does not go in circles.
    """

    with_previous: bool = False
    omitted_origins: frozenset[int] = frozenset()
