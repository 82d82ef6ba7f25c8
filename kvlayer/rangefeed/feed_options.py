"""The options of a subscription besides its span and its start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """The values that a feed shows, and in which form.

    `with_previous` fills `ValueBatch.previous`. Values first written on one of the stores in
    `omitted_origins` are left out: so replication between two stores does not go in circles.
    """

    with_previous: bool = False
    omitted_origins: frozenset[int] = frozenset()
