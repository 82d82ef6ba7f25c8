"""The time zone of texts, days and clocks that do not say theirs: that of the session whose
statement runs, and UTC where none does.

    SET TIME ZONE 'Europe/Berlin'
    '2020-07-01 00:00'::TIMESTAMPTZ         2020-06-30 22:00 UTC
    '2020-10-25 02:30'::TIMESTAMPTZ         01:30 UTC: of an hour that is twice, the second one
    '2020-03-29 02:30'::TIMESTAMPTZ         01:30 UTC: of an hour that is not, as before the change

Values are read and written at many places that know no session, so the zone is the context's:
whoever runs a session's statements says `follow`, and tasks of the store's own say `leave`.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from .errors import SQLError

UTC_NAME = "UTC"
ZONES_KEPT_MAX = 600
"""There are not so many."""


class SessionZone:
    """The zone of one session, whose `name` changes when the session sets another; and whether the
    intervals of its results are written in ISO 8601, as its IntervalStyle says."""

    __slots__ = ("iso_intervals", "name")

    def __init__(self, name: str = UTC_NAME) -> None:
        self.name = name
        self.iso_intervals = False


_followed: ContextVar[SessionZone | None] = ContextVar("session zone", default=None)


def zone_name() -> str:
    followed = _followed.get()
    return UTC_NAME if followed is None else followed.name


def writes_iso_intervals() -> bool:
    followed = _followed.get()
    return followed is not None and followed.iso_intervals


def session_zone() -> tzinfo:
    return zone_of(zone_name())


def follow(zone: SessionZone) -> SessionZone | None:
    """From here on the context's zone is this session's. Returns what it was before, for
    `forget`."""
    before = _followed.get()
    _followed.set(zone)
    return before


def forget(before: SessionZone | None) -> None:
    """Back to before `follow`."""
    _followed.set(before)


def leave() -> None:
    """From here on the context is no session's."""
    _followed.set(None)


@lru_cache(maxsize=ZONES_KEPT_MAX)
def zone_of(name: str) -> tzinfo:
    return UTC if name == UTC_NAME else ZoneInfo(name)


def known_zone(text: str) -> str:
    """The zone that a text names, whatever its case. Raises ValueError."""
    wanted = text.strip()
    if wanted.lower() in _UTC_NAMES:
        return UTC_NAME
    try:
        return ZoneInfo(wanted).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        found = _names().get(wanted.lower()) or _fixed_zone(wanted)
    if found is None:
        raise ValueError("Write a name such as 'Europe/Berlin', UTC, or whole hours such as +2.")
    return found


def _fixed_zone(text: str) -> str | None:
    """The zone of a fixed offset in whole hours, by PostgreSQL's rules: a plain number counts to
    the east, and what has a name or minutes (`GMT+1`, `+02:00`) to the west, as POSIX does."""
    plain, posix = _HOURS.fullmatch(text), _POSIX.fullmatch(text)
    if plain is None and posix is None:
        return None
    hours = int(plain[0]) if plain is not None else -int(posix[1]) if posix is not None else 0
    if hours == 0:
        return UTC_NAME
    # The names of the tz database count to the west, too.
    return _names().get(f"etc/gmt{-hours:+d}")


_HOURS = re.compile(r"[+-]?\d{1,2}")
_POSIX = re.compile(r"(?:<[\w+-]{3,}>|[A-Za-z]{3,}|(?=[+-]\d\d:))([+-]?\d{1,2})(?::00)?")


_UTC_NAMES = frozenset(
    {"utc", "gmt", "etc/utc", "z", "0", "+00", "-00", "+00:00", "zulu", "uct", "default", "local"}
)


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def instant(clock: datetime) -> datetime:
    """The moment in UTC at which the session's clock shows this. Raises SQLError 22008."""
    zone = session_zone()
    if zone is UTC:
        return clock.replace(tzinfo=UTC)
    late = clock.replace(tzinfo=zone, fold=1)
    early = late.replace(fold=0)
    # At an hour that is twice the offset falls, and the later one is meant; at one that is not it
    # grows, and what held before is.
    chosen = late if early.utcoffset() > late.utcoffset() else early  # type: ignore[operator]
    return _moved(chosen, UTC)


def shown(moment: datetime) -> datetime:
    """The moment in the session's zone. Raises SQLError 22008."""
    return _moved(moment, session_zone())


def clock_of(moment: datetime) -> datetime:
    """The reading of the session's clock at a moment, without a zone. Raises SQLError 22008."""
    return shown(moment).replace(tzinfo=None, fold=0)


def _moved(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:
        raise SQLError(
            "22008", f'timestamp out of range: "{moment.isoformat()}"',
            detail="Timestamps lie in the years 0001 to 9999 UTC.",
        ) from None  # fmt: skip
