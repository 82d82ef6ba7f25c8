"""The hybrid logical clock: where every timestamp of a store comes from.

A timestamp is a positive signed 64-bit integer: 51 bits of microseconds since 2020-01-01 UTC and
12 bits of logical counter, which carries into the physical part. It sorts as an integer and is a
BIGINT wherever it is stored. Feeds print it as `<Unix wall nanoseconds>.<ten-digit logical>`.

    >>> ts = timestamp_at(unix_us=1_700_000_000_000_000, logical=3)
    >>> format_timestamp(ts)
    '1700000000000000000.0000000003'
    >>> parse_timestamp('1700000000000000000.0000000003') == ts
    True

After Kulkarni et al., "Logical Physical Clocks" (2014).
"""

from __future__ import annotations

import re
import time
from threading import Lock
from typing import NewType, Protocol

from .settings import Settings, declare_duration

Timestamp = NewType("Timestamp", int)

LOGICAL_BITS = 12
LOGICAL_MASK = (1 << LOGICAL_BITS) - 1
EPOCH_UNIX_US = 1_577_836_800_000_000
"""2020-01-01T00:00:00Z in Unix microseconds."""

ZERO = Timestamp(0)
MAX_TIMESTAMP = Timestamp((1 << 63) - 1)

MAX_OFFSET = declare_duration(
    "kv.clock.max_offset", 0.5, "how far the machine's clock may jump at once and be believed"
)

BOUND_AHEAD_US = 10_000_000
"""How far the persisted upper bound runs ahead of use: one small write each few seconds."""


def timestamp_at(*, unix_us: int, logical: int = 0) -> Timestamp:
    """The timestamp of a wall time. Raises ValueError outside 2020-01-01 .. 2091."""
    physical = unix_us - EPOCH_UNIX_US
    if physical < 0 or physical >= 1 << 51:
        raise ValueError(f"wall time {unix_us} µs is outside 2020-01-01 .. 2091 UTC")
    if logical < 0 or logical > LOGICAL_MASK:
        raise ValueError(f"logical part {logical} is outside 0 .. {LOGICAL_MASK}")
    return Timestamp((physical << LOGICAL_BITS) | logical)


def unix_us(ts: Timestamp) -> int:
    """The physical part of `ts`, in Unix microseconds."""
    return (ts >> LOGICAL_BITS) + EPOCH_UNIX_US


def duration(*, seconds: float) -> int:
    """A span of time as a difference of timestamps (may be negative)."""
    return round(seconds * 1_000_000) << LOGICAL_BITS


def seconds_between(earlier: Timestamp, later: Timestamp) -> float:
    """Wall seconds from `earlier` to `later` (negative when they stand the other way round)."""
    return ((later >> LOGICAL_BITS) - (earlier >> LOGICAL_BITS)) / 1_000_000


def format_timestamp(ts: Timestamp) -> str:
    """The anchor's text form: `<Unix wall nanoseconds>.<ten-digit logical>`."""
    return f"{unix_us(ts) * 1000}.{ts & LOGICAL_MASK:010d}"


_DECIMAL_FORM = re.compile(r"(\d{1,19})(?:\.(\d{1,10}))?")


def parse_timestamp(text: str) -> Timestamp:
    """Reads `format_timestamp`'s form; a missing logical part is zero. Raises ValueError."""
    match = _DECIMAL_FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp: write <Unix nanoseconds>.<logical>")
    wall_ns = int(match[1])
    if wall_ns % 1000:
        raise ValueError(f"{text!r} is finer than a microsecond, which no timestamp here is")
    return timestamp_at(unix_us=wall_ns // 1000, logical=int(match[2] or "0"))


class WallClock(Protocol):
    """Where time comes from: the machine, or a simulation."""

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

    def monotonic_ns(self) -> int:
        # The clock that counts while the machine sleeps, where there is one: waking is no jump.
        return time.clock_gettime_ns(_MONOTONIC)


class SteadyTime:
    """The wall's time, less its jumps.

    A wall clock that is slewed is followed. One that has moved away from monotonic time by more
    than `offset_us_max` since the last look has jumped, back or far ahead, and is not believed:
    time goes on at the monotonic clock's pace from where it stood, until the wall has come back to
    within the offset, or the process starts anew. Were a jump ahead believed, every timestamp
    would stay ahead after the wall was set right, for as long as it had jumped; were one back
    waited out, leases and times to live would stand still that long.

        monotonic  0     1     2     3
        wall       100   101   9902  103
        steady     100   101   102   103
    """

    def __init__(self, wall: WallClock, *, not_before_us: int) -> None:
        self.offset_us_max = round(MAX_OFFSET.default * 1e6)
        self.refused_us = 0
        """By how much the wall was away at the last look; zero while it is believed."""
        self._wall = wall
        self._us = max(wall.unix_us(), not_before_us)
        self._monotonic_ns = wall.monotonic_ns()

    def unix_us(self) -> int:
        """Never more than `offset_us_max` behind what it said before."""
        monotonic_ns = self._wall.monotonic_ns()
        expected = self._us + (monotonic_ns - self._monotonic_ns) // 1000
        shown = self._wall.unix_us()
        if -self.offset_us_max <= shown - expected <= self.offset_us_max:
            self._us, self._monotonic_ns, self.refused_us = shown, monotonic_ns, 0
            return shown
        self.refused_us = shown - expected
        return expected


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

    def __init__(self) -> None:
        self._bound = ZERO

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
    """

    def __init__(self, wall: WallClock, bounds: BoundStore) -> None:
        self.wall = wall
        self._bounds = bounds
        self._bound = bounds.load()
        self._last = self._bound
        # After a restart the wall is believed, unless it lies below what may have been handed out.
        self.steady = SteadyTime(wall, not_before_us=unix_us(self._bound) if self._bound else 0)
        self._extending = Lock()
        """Held while a bound is made durable: the loop may need the next one while a thread saves
        this one, and the lower of the two must never be the last on the disk."""

    def now(self) -> Timestamp:
        """Draws a timestamp. Raises OSError when the bound cannot be made durable."""
        physical = (self.steady.unix_us() - EPOCH_UNIX_US) << LOGICAL_BITS
        last = self._last
        drawn = physical if physical > last else last + 1
        if drawn >= self._bound:
            self.extend(Timestamp(drawn))
        self._last = Timestamp(drawn)
        return Timestamp(drawn)

    def obey(self, settings: Settings) -> None:
        """The maximum offset is what `settings` say, now and whenever they change."""

        def changed(name: str) -> None:
            if name == MAX_OFFSET.name:
                self.steady.offset_us_max = round(settings.get(MAX_OFFSET) * 1e6)

        settings.listen(changed)
        changed(MAX_OFFSET.name)

    @property
    def last(self) -> Timestamp:
        """The greatest timestamp drawn so far; drawing again returns a greater one."""
        return self._last

    def forward(self, ts: Timestamp) -> bool:
        """Makes every later draw greater than `ts`; says whether that moved the clock.

        Recovery calls it with the greatest timestamp it finds in the log.
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
        return self._bound - self._last < duration(seconds=BOUND_AHEAD_US / 2_000_000)

    def extend(self, from_ts: Timestamp | None = None) -> None:
        """Persists a bound `BOUND_AHEAD_US` above `from_ts` (the last draw when None)."""
        start = self._last if from_ts is None else from_ts
        bound = Timestamp(start + (BOUND_AHEAD_US << LOGICAL_BITS))
        with self._extending:
            if bound <= self._bound:
                return
            self._bounds.save(bound)
            self._bound = bound

    def __repr__(self) -> str:
        return f"<Clock last={format_timestamp(self._last)}>"
