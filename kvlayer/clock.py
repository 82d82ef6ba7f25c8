"""The hybrid logical clock: where every timestamp of a store comes from.

What a timestamp is says `timestamp`; whoever draws them finds all of it here too.

After Kulkarni et al., "Logical Physical Clocks" (2014).
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Protocol

from .errors import ClockStopped
from .metrics import Metrics
from .settings import Settings, declare_duration
from .timestamp import (
    EPOCH_UNIX_US,
    LOGICAL_BITS,
    LOGICAL_MASK,
    MAX_TIMESTAMP,
    ZERO,
    Timestamp,
    duration,
    format_timestamp,
    parse_timestamp,
    seconds_between,
    timestamp_at,
    unix_us,
)

__all__ = [
    "EPOCH_UNIX_US",
    "LOGICAL_BITS",
    "LOGICAL_MASK",
    "MAX_TIMESTAMP",
    "ZERO",
    "BoundStore",
    "Clock",
    "MemoryBoundStore",
    "PhysicalTime",
    "SteadyTime",
    "SystemWallClock",
    "Timestamp",
    "WallClock",
    "duration",
    "format_timestamp",
    "parse_timestamp",
    "seconds_between",
    "timestamp_at",
    "unix_us",
]

MAX_OFFSET = declare_duration(
    "kv.clock.max_offset", 0.5, "how far the machine's clock may jump at once and be believed"
)

BOUND_AHEAD_US = 10_000_000
"""How far the persisted upper bound runs ahead of use at most: one small write each few seconds.

A young clock has a head start of half its age. A process that is killed leaves its head start to
the next one, and so those that are killed soon after their starts, one after the other, do not
carry the store away from the wall."""

FIRST_AHEAD_US = 500_000
"""The head start of a clock that begins: less than the start of a process takes."""

RESERVE_US = 100_000
"""The end of that head start, which a clock uses only while no further bound can be saved: it holds
four hundred million timestamps."""

CAUGHT_UP_US = 600_000_000
"""By how much a start may be ahead of the wall for the wall to catch up. A wall that is further
away was set."""

_RESERVE = RESERVE_US << LOGICAL_BITS

RETRY_NS = 250_000_000
"""How long a clock waits after a bound could not be saved: as long as the log does."""


class WallClock(Protocol):
    """A source of time: the machine, or a simulation."""

    def unix_us(self) -> int:
        """Wall time in Unix microseconds; may jump."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds that never go back; for measuring, never for ordering."""
        ...


_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemWallClock:
    """The machine's clocks. The only place of the package that reads them."""

    def unix_us(self) -> int:
        return time.time_ns() // 1000

    # The clock that counts while the machine sleeps, where there is one: waking is no jump.
    monotonic_ns = staticmethod(partial(time.clock_gettime_ns, _MONOTONIC))


class PhysicalTime(Protocol):
    """The physical part of a clock's timestamps: this machine's time, or another store's."""

    def unix_us(self) -> int:
        """Unix microseconds. The clock's draws never go back, whatever is said here."""
        ...

    def check_fresh(self, drawn: Timestamp) -> None:
        """Raises OracleAway where the time is too old, or not known, to write raw keys by, and
        ClockStopped where what was `drawn` lies below it."""
        ...

    def obey(self, settings: Settings) -> None:
        """From now on its settings are what `settings` say."""
        ...

    def report(self, metrics: Metrics) -> None:
        """Puts how far the time may be believed into `metrics`."""
        ...


class SteadyTime:
    """The wall's time, less its jumps: the physical time of a store that has no oracle.

    A wall clock that is slewed is followed. One that has moved away from monotonic time by more
    than `offset_us_max` since the last look has jumped, back or far ahead, and is not believed:
    time goes on at the monotonic clock's pace from where it stood, until the wall has come back to
    within the offset, or the process starts anew. Were a jump ahead believed, every timestamp
    would stay ahead after the wall was set right, for as long as it had jumped; were one back
    waited out, leases and times to live would stand still that long.

        monotonic  0     1     2     3
        wall       100   101   9902  103
        steady     100   101   102   103

    A start above the wall, at the head start of a process that was killed, is caught up with: time
    goes at half the pace until the wall is there.
    """

    def __init__(self, wall: WallClock, *, not_before_us: int) -> None:
        self.offset_us_max = round(MAX_OFFSET.default * 1e6)
        self.refused_us = 0
        """By how much the wall was away at the last look; zero while it is believed."""
        self._wall = wall
        shown = wall.unix_us()
        self._us = max(shown, not_before_us)
        self._halved = 0 < not_before_us - shown <= CAUGHT_UP_US
        """Whether the wall is to catch up."""
        self._monotonic_ns = wall.monotonic_ns()

    def unix_us(self) -> int:
        """Never more than `offset_us_max` behind what it said before."""
        monotonic_ns = self._wall.monotonic_ns()
        expected = self._us + (monotonic_ns - self._monotonic_ns) // (
            2000 if self._halved else 1000
        )
        shown = self._wall.unix_us()
        if -self.offset_us_max <= shown - expected <= self.offset_us_max:
            self._us, self._monotonic_ns, self.refused_us = shown, monotonic_ns, 0
            self._halved = False
            return shown
        if self._halved and shown > expected:  # it has jumped past
            self._us, self._monotonic_ns, self._halved = expected, monotonic_ns, False
        self.refused_us = shown - expected
        return expected

    def check_fresh(self, drawn: Timestamp) -> None:
        """The machine's time is always there."""

    def obey(self, settings: Settings) -> None:
        def changed(name: str) -> None:
            if name == MAX_OFFSET.name:
                self.offset_us_max = round(settings.get(MAX_OFFSET) * 1e6)

        settings.listen(changed)
        changed(MAX_OFFSET.name)

    def report(self, metrics: Metrics) -> None:
        metrics.put("kv_clock_refused_seconds", self.refused_us / 1e6)


class BoundStore(Protocol):
    """Keeps the clock's upper bound across restarts."""

    def load(self) -> Timestamp:
        """The persisted bound, or ZERO for a new store."""
        ...

    def save(self, bound: Timestamp) -> None:
        """Makes `bound` durable before it returns. Raises OSError when it cannot."""
        ...


class MemoryBoundStore:
    """A bound that lives as long as its process: for stores that keep nothing else either."""

    def __init__(self, bound: Timestamp = ZERO) -> None:
        self._bound = bound

    def load(self) -> Timestamp:
        return self._bound

    def save(self, bound: Timestamp) -> None:
        self._bound = bound


class Clock:
    """Draws timestamps, each greater than every other it drew, in this process or before it.

    The promise across restarts rests on `_bound`: a timestamp is handed out only while it is below
    a bound that is already durable, and a restart begins at that bound. HAZARD: a clock that began
    at the wall time instead would repeat timestamps after the wall clock was set back, and a
    repeated commit timestamp is two transactions with one identity in every feed.

    While the disk is full a bound cannot be saved. Then the clock stands still short of the bound
    that it has, and draws one timestamp after the other in what is left: they are as good as any,
    so reads, feeds and whoever finds room in the log go on. It runs again when there is space.
    """

    def __init__(
        self, wall: WallClock, bounds: BoundStore, physical: PhysicalTime | None = None
    ) -> None:
        """The time is `physical`; without one, the wall's."""
        self.wall = wall
        self._bounds = bounds
        self._began_ns = wall.monotonic_ns()
        self._ahead = 0
        """The head start of the bound that was saved last."""
        self._bound = bounds.load()
        self._last = self._bound
        bound_us = unix_us(self._bound) if self._bound else 0
        self.ahead_us = max(0, bound_us - wall.unix_us())
        """By how much the store began above the wall."""
        # After a restart the wall is believed, unless it lies below what may have been handed out.
        self.physical = physical or SteadyTime(wall, not_before_us=bound_us)
        self.stands = False
        """Whether the last draw had to do with what the reserve holds."""
        self._retry_ns = 0
        """Monotonic time before which saving a bound is not tried again."""
        self._extending = Lock()
        """Held while a bound is made durable: the loop may need the next one while a thread saves
        this one, and the lower of the two must never be the last on the disk."""

    def now(self) -> Timestamp:
        """Draws a timestamp.

        Raises ClockStopped when there is none left below the durable bound and no further one can
        be saved: at the start of a store, or after very many draws on a full disk.
        """
        physical = (self.physical.unix_us() - EPOCH_UNIX_US) << LOGICAL_BITS
        last = self._last
        drawn = physical if physical > last else last + 1
        if drawn >= self._bound - _RESERVE:
            drawn = self._draw_ahead(drawn)
        assert drawn > last, (drawn, last)
        assert drawn >= physical or self.stands, (drawn, physical)
        self._last = Timestamp(drawn)
        return Timestamp(drawn)

    def _draw_ahead(self, drawn: int) -> int:
        """`drawn`, once a bound above it is durable; or what the reserve still holds."""
        next_best = max(self._bound - _RESERVE, self._last + 1)
        if (
            not self.stands
            or next_best >= self._bound
            or self.wall.monotonic_ns() >= self._retry_ns
        ):
            try:
                self.extend(Timestamp(drawn))
            except ClockStopped:
                if next_best >= self._bound:
                    raise
                self.stands = True
            else:
                self.stands = False
        return next_best if self.stands else drawn

    @property
    def last(self) -> Timestamp:
        """The greatest timestamp drawn so far; drawing again returns a greater one."""
        return self._last

    def forward(self, ts: Timestamp) -> bool:
        """Makes every later draw greater than `ts`; says whether that moved the clock.

        Recovery calls it with the greatest timestamp it finds in the log. Raises ClockStopped.
        """
        if ts <= self._last:
            return False
        if ts >= self._bound:
            self.extend(ts)
        self._last = ts
        return True

    @property
    def bound_due(self) -> bool:
        """Whether half of the durable head start is used: time to `extend` off the hot path."""
        if 2 * (self._bound - self._last) >= self._ahead:
            return False
        return self.wall.monotonic_ns() >= self._retry_ns

    def extend(self, from_ts: Timestamp | None = None) -> None:
        """Persists a bound a head start above `from_ts` (the last draw when None).

        Raises ClockStopped when it cannot be made durable.
        """
        start = self._last if from_ts is None else from_ts
        age_us = (self.wall.monotonic_ns() - self._began_ns) // 1000
        ahead = min(max(FIRST_AHEAD_US, age_us // 2), BOUND_AHEAD_US) << LOGICAL_BITS
        bound = Timestamp(start + ahead)
        with self._extending:
            if bound <= self._bound:
                return
            try:
                self._bounds.save(bound)
            except OSError as error:
                self._retry_ns = self.wall.monotonic_ns() + RETRY_NS
                raise ClockStopped(f"the clock's bound cannot be saved: {error}") from error
            self._bound, self._ahead = bound, ahead

    def close(self) -> None:
        """Persists the last draw as the bound: the next start has no head start to be ahead by.

        HAZARD: for the thread that draws, or a draw between the two would be repeated. A disk that
        takes no bound keeps the one it has. The clock may be asked on.
        """
        with self._extending, suppress(OSError):
            if self._last < self._bound:
                self._bounds.save(self._last)
                self._bound = self._last

    def __repr__(self) -> str:
        return f"<Clock last={format_timestamp(self._last)}>"
