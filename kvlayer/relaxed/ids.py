"""Ids of write batches: strictly monotonic within a domain, and near real time.

An id is 64 bits: seconds since the Unix epoch in 32.32 fixed point, the low seven bits zeroed to
leave room for a counter. Time that did not pass, or went back, gives the last id plus one:

    time      100.0 s            100.0 s            100.0 s + 30 ns    100.0 s + 60 ns
    id        0x64_0000_0000     0x64_0000_0001     0x64_0000_0080     0x64_0000_0100

Seconds wrap in 2106, so ids are compared modulo 2**64: the earlier of two is the one from which
the other is less than half the circle (68 years) away. Zero is nobody's id: it becomes one.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

ID_MASK = (1 << 64) - 1
HALF = 1 << 63
COUNTER_BITS = 7
NO_ID = 0
"""The begin of a domain's first epoch, and the id of no batch."""

_CLEAR_COUNTER = ID_MASK & ~((1 << COUNTER_BITS) - 1)
_NS = 1_000_000_000

Nanoseconds = Callable[[], int]
"""Nanoseconds since the Unix epoch, by a clock that never goes back and is never set."""


def before(first: int, second: int) -> bool:
    """Whether `first` is the earlier of two ids that are less than 68 years apart."""
    return 0 < ((second - first) & ID_MASK) < HALF


def stamped(nanoseconds: int) -> int:
    """The id of a time, its counter zero."""
    return ((nanoseconds << 32) // _NS) & _CLEAR_COUNTER


def seconds_of(id: int) -> float:
    """Seconds since the Unix epoch at which an id was drawn."""
    return id / (1 << 32)


def following(last: int, nanoseconds: int) -> int:
    """The id to draw behind `last`, at this time. `last` is NO_ID for the first."""
    drawn = ((nanoseconds << 32) // _NS) & _CLEAR_COUNTER  # `stamped`, without the call
    if last and not 0 < ((drawn - last) & ID_MASK) < HALF:
        drawn = (last + 1) & ID_MASK
    return drawn or 1


def just_behind(id: int) -> int:
    """The end of an epoch whose only batch has this id."""
    return (id + 1) & ID_MASK or 1


def within(id: int, begin: int, end: int) -> bool:
    """Whether an epoch `[begin, end)` holds the id. The first, from NO_ID, holds all below."""
    if begin == NO_ID:
        return before(id, end)
    return ((id - begin) & ID_MASK) < ((end - begin) & ID_MASK)


def boot_offset_ns() -> int:
    """The difference of real time and the boot clock, in nanoseconds: read once, at a process's
    start."""
    return time.time_ns() - time.clock_gettime_ns(_BOOT_CLOCK)


def machine_clock(offset_ns: int | None = None) -> Nanoseconds:
    """The machine's boot clock, which counts while it sleeps and is never set, plus one offset.

    Domains that are compared by their ids (`joint`) are given the same offset.
    """
    offset = boot_offset_ns() if offset_ns is None else offset_ns
    read, clock = time.clock_gettime_ns, _BOOT_CLOCK

    def nanoseconds() -> int:
        return read(clock) + offset

    return nanoseconds


def random_domain() -> int:
    """A new domain's id: 63 random bits, never zero."""
    return secrets.randbits(63) or 1


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
