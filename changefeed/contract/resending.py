"""The rules by which entries are sent to a replica, and sent again: how often, how fast, and when
no more.

A node's pipeline sends them from its loop, and Spark's tasks from threads of their workers. This
module travels there with the query: it imports the standard library alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

REQUEST_SECONDS = 30.0
"""A target that does not answer for so long is taken for one that is away."""

TRIES_MAX = 8
"""Then the attempt fails, and the feed's next one opens the replica anew."""

_SQLSTATES = frozenset(
    {
        "55000",
        "42P07",
        "0A000",
        "42501",
        "42P01",
        "3D000",
        "3F000",
        "42809",
        "28000",
        "28P01",
        "22023",
        "54000",
    }
)
_STATUSES = frozenset({401, 403, 413, 422})


def refused(status: int, sqlstate: str | None) -> bool:
    """Whether the target's answer is one that no further try would mend."""
    return sqlstate in _SQLSTATES or status in _STATUSES


def tries(shortest: float, longest: float, random: Random) -> Iterator[float]:
    """The seconds to wait before each try: none before the first, then twice as many each time.

    Half of each wait is drawn, so that senders which failed together do not come together.
    """
    yield 0.0
    pause = shortest
    for _ in range(TRIES_MAX - 1):
        yield pause * (0.5 + random.random() / 2)
        pause = min(pause * 2, longest)


class TokenBucket:
    """Lets `rate` entries a second through, and a second's worth at once after a pause."""

    def __init__(self, rate: int | None) -> None:
        self._rate = rate
        self._tokens = float(rate or 0)
        self._filled_at: float | None = None

    def take(self, count: int, now: float) -> float:
        """The seconds after which the entries may go. They are taken in the order of the calls."""
        if self._rate is None:
            return 0.0
        if self._filled_at is not None:
            self._tokens += (now - self._filled_at) * self._rate
        self._tokens = min(self._tokens, float(self._rate)) - count
        self._filled_at = now
        return max(0.0, -self._tokens) / self._rate
