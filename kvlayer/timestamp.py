"""Timestamps: when something happened in a store, and in which order.

A timestamp is a positive signed 64-bit integer: 51 bits of microseconds since 2020-01-01 UTC and
12 bits of logical counter, which carries into the physical part. It sorts as an integer and is a
BIGINT wherever it is stored. Feeds print it as `<Unix wall nanoseconds>.<ten-digit logical>`.

    >>> ts = timestamp_at(unix_us=1_700_000_000_000_000, logical=3)
    >>> format_timestamp(ts)
    '1700000000000000000.0000000003'
    >>> parse_timestamp('1700000000000000000.0000000003') == ts
    True
"""

from __future__ import annotations

import re
from typing import NewType

Timestamp = NewType("Timestamp", int)

LOGICAL_BITS = 12
LOGICAL_MASK = (1 << LOGICAL_BITS) - 1
EPOCH_UNIX_US = 1_577_836_800_000_000
"""2020-01-01T00:00:00Z in Unix microseconds."""

ZERO = Timestamp(0)
MAX_TIMESTAMP = Timestamp((1 << 63) - 1)


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
