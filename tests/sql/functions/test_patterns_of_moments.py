"""Dates and times written and read by patterns. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.interval_text import read_interval
from tailrace.sql.builtins.functions.moment_reading import date_of, timestamp_in_zone
from tailrace.sql.builtins.functions.moment_text import interval_text, text_in_zone, timestamp_text

MOMENT = datetime(2021, 3, 2, 14, 5, 6, 78_000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("FMDDth FMMonth YYYY", "2nd March 2021"),
        ("Day|DY|dy", "Tuesday  |TUE|tue"),
        ("HH:MI a.m.", "02:05 p.m."),
        ("IYYY-IW-ID", "2021-09-2"),
        ("YYYY yy Q", "2021 21 1"),
        ('"at" FF2 "\\"" SSSS', 'at 07 " 50706'),
    ],
)
def test_a_moment_is_written_by_its_pattern(pattern: str, text: str) -> None:
    assert timestamp_text(MOMENT, pattern) == text


def test_zones_are_told_as_of_the_moment() -> None:
    berlin = text_in_zone("Europe/Berlin")
    assert berlin(MOMENT.replace(tzinfo=UTC), "HH24 TZ TZH:TZM OF") == "15 CET +01:00 +01"
    assert berlin(datetime(2021, 7, 1, tzinfo=UTC), "HH24 tz") == "02 cest"


def test_intervals_have_signs_and_no_months_by_name() -> None:
    span = read_interval("-25 hours")
    assert interval_text(span, "HH24:MI HH12 SSSS") == "-25:00 -01 -90000"
    assert timestamp_text(MOMENT, "") is None
    with pytest.raises(SQLError, match="invalid format specification for an interval value"):
        interval_text(span, "Month")


@pytest.mark.parametrize(
    ("text", "pattern", "day"),
    [
        ("2021-3-5", "YYYY-MM-DD", date(2021, 3, 5)),
        ("20210305", "YYYYMMDD", date(2021, 3, 5)),
        ("  5  Mar.1985 ", "DD Mon YYYY", date(1985, 3, 5)),
        ("2021 064", "YYYY DDD", date(2021, 3, 5)),
        ("69", "YY", date(2069, 1, 1)),
    ],
)
def test_a_date_is_read_by_its_pattern(text: str, pattern: str, day: date) -> None:
    assert date_of(text, pattern) == day


def test_a_text_says_its_zone_or_has_the_sessions() -> None:
    read = timestamp_in_zone("Europe/Berlin")
    assert read("2021-07-01 2 pm", "YYYY-MM-DD HH12 am") == datetime(2021, 7, 1, 12, tzinfo=UTC)
    assert read("2021-07-01 -03", "YYYY-MM-DD TZH") == datetime(2021, 7, 1, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "pattern", "sqlstate"),
    [
        ("2021-02-30", "YYYY-MM-DD", "22008"),
        ("2021 22", "YYYY YY", "22007"),
        ("2021-10", "IYYY-MM", "0A000"),
        ("13 pm", "HH12 am", "22007"),
        ("x", "YYYY", "22007"),
        ("12", "YYYYMM", "22007"),
        ("1", "TZ", "0A000"),
        ("99999999999", "YYYY", "22008"),
    ],
)
def test_what_a_pattern_does_not_read_is_an_error(text: str, pattern: str, sqlstate: str) -> None:
    with pytest.raises(SQLError) as told:
        date_of(text, pattern)
    assert told.value.sqlstate == sqlstate
