"""AS OF SYSTEM TIME: which timestamp is meant.

    '1764000000000000000.0000000002'     a timestamp as feeds print it
    '2025-11-24 16:00:00+00'             a date and time
    '-10s', '-1m30s'                     that long before the statement

A parameter may also be a datetime, or a timestamp as the store keeps it
(`Result.commit_timestamp`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ...catalog.values.errors import SQLError
from ...catalog.values.literals import read_timestamptz
from ...kvlayer import clock
from ...kvlayer.settings import SettingError, parse_duration
from ..syntax.statement import AsOf

_FORMS = "Write a changefeed's timestamp, an ISO date and time, or an interval such as '-10s'."


def resolve_as_of(
    as_of: AsOf, parameters: Sequence[object], now: clock.Timestamp
) -> clock.Timestamp:
    """The timestamp that `as_of` means at `now`. Raises SQLError 22023 where it means none."""
    given = as_of.literal if as_of.parameter is None else parameters[as_of.parameter - 1]
    at = _read(given, as_of.position, now)
    if at > now:
        raise SQLError(
            "22023",
            f"AS OF SYSTEM TIME {clock.format_timestamp(at)} is in the future",
            position=as_of.position,
            detail=f"The store's clock reads {clock.format_timestamp(now)}.",
        )
    return at


def datetime_of(ts: clock.Timestamp) -> datetime:
    """The wall time of a timestamp, in UTC."""
    return _EPOCH + timedelta(microseconds=clock.unix_us(ts))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _read(given: object, position: int, now: clock.Timestamp) -> clock.Timestamp:
    if isinstance(given, datetime):
        moment = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
        return _of_datetime(moment, position)
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= clock.MAX_TIMESTAMP:
        return clock.Timestamp(given)
    if not isinstance(given, str):
        raise _invalid(repr(given), position)
    return timestamp_of_text(given.strip(), position, now)


def timestamp_of_text(text: str, position: int, now: clock.Timestamp) -> clock.Timestamp:
    """The timestamp that a text means at `now`. Raises SQLError 22023 where it means none."""
    if text.startswith("-"):
        try:
            return clock.Timestamp(now - clock.duration(seconds=parse_duration(text[1:])))
        except SettingError:
            raise _invalid(repr(text), position) from None
    if text.replace(".", "", 1).isdecimal():
        try:
            return clock.parse_timestamp(text)
        except ValueError as error:
            raise SQLError("22023", f"{error}", position=position, hint=_FORMS) from None
    try:
        return _of_datetime(read_timestamptz(text), position)
    except SQLError:
        raise _invalid(repr(text), position) from None


def _of_datetime(moment: datetime, position: int) -> clock.Timestamp:
    try:
        return clock.timestamp_at(unix_us=(moment - _EPOCH) // timedelta(microseconds=1))
    except ValueError as error:
        raise SQLError("22023", f"{error}", position=position) from None


def _invalid(shown: str, position: int) -> SQLError:
    return SQLError(
        "22023", f"AS OF SYSTEM TIME does not take {shown}", position=position, hint=_FORMS
    )
