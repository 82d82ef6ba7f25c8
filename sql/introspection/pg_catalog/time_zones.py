"""pg_timezone_names and pg_timezone_abbrevs: the zones of SET TIME ZONE, as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import available_timezones

from ....catalog.values.interval import Interval
from ....catalog.values.session_zone import zone_of
from ...results.as_of import datetime_of
from ...results.results import Row
from ...runtime.introspection_context import IntrospectionContext

_LEFT_OUT = ("posixrules", "localtime", "Factory")
"""Names that are of a machine, and no zone's."""


async def zone_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of pg_timezone_names as of the statement's read timestamp."""
    at = datetime_of(context.reader.read_timestamp)
    return [
        _row(name, at)
        for name in sorted(available_timezones())
        if name not in _LEFT_OUT and not name.startswith(("posix/", "right/"))
    ]


async def abbreviation_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of pg_timezone_abbrevs: words that name a zone behind a moment, as in `2020-07-01
    12:00 UTC`."""
    return [(name, Interval(), False) for name in ("UTC", "Z")]


def _row(name: str, at: datetime) -> Row:
    shown = at.astimezone(zone_of(name))
    offset, saved = shown.utcoffset(), shown.dst()
    assert offset is not None, name
    return name, shown.tzname(), Interval.of_timedelta(offset), bool(saved and saved > timedelta(0))
