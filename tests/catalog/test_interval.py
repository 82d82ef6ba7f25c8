"""Intervals: their texts, their order and their arithmetic, against PostgreSQL's answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest
from hypothesis import given

from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.interval import Interval, added
from tailrace.catalog.values.interval_text import read_interval
from tests.harness.datums import intervals

INT4_MAX = (1 << 31) - 1
HOURS_MAX = 2_562_047


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1 year 2 months -3 days 04:05:06.7", "1 year 2 mons -3 days +04:05:06.7"),
        ("@ 1 day 2 hours ago", "-1 days -02:00:00"),
        ("1.5 months", "1 mon 15 days"),
        ("1.5 years 1.5 weeks", "1 year 6 mons 10 days 12:00:00"),
        ("0.5 day", "12:00:00"),
        ("1h30m", "01:30:00"),
        ("90 min", "01:30:00"),
        ("100 hours", "100:00:00"),
        ("5", "00:00:05"),
        ("1-2", "1 year 2 mons"),
        ("-1-2 +3 -4:05", "-1 years -2 mons +3 days -04:05:00"),
        ("3 4:05:06", "3 days 04:05:06"),
        ("4:05.5", "00:04:05.5"),
        ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
        ("P2W", "14 days"),
        ("1 day -1 sec", "1 day -00:00:01"),
        ("-13 mons", "-1 years -1 mons"),
        ("1500 ms 3 us", "00:00:01.500003"),
        ("2 decades", "20 years"),
        ("0", "00:00:00"),
    ],
)
def test_text_is_read_and_printed_as_postgres_does(text: str, printed: str) -> None:
    assert str(read_interval(text)) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1 year 2 mons -3 days 04:05:06.7", "P1Y2M-3DT4H5M6.7S"),
        ("-13 mons -00:00:00.5", "P-1Y-1MT-0.5S"),
        ("-26:00:40", "PT-26H-40S"),
        ("90 min", "PT1H30M"),
        ("0", "PT0S"),
    ],
)
def test_iso_text_is_that_of_postgres(text: str, printed: str) -> None:
    assert read_interval(text).iso_text == printed


@given(intervals())
@pytest.mark.parametrize("write", [str, lambda interval: interval.iso_text], ids=["own", "iso"])
def test_printed_interval_reads_back(write: Callable[[Interval], str], interval: Interval) -> None:
    back = read_interval(write(interval))
    assert (back.months, back.days, back.microseconds) == (
        interval.months, interval.days, interval.microseconds,
    )  # fmt: skip


@given(intervals())
def test_physical_interval_reads_back(interval: Interval) -> None:
    assert Interval.of_physical(interval.physical).fields == interval.fields


@pytest.mark.parametrize(
    ("months", "days", "hours"),
    [
        (INT4_MAX, 30, 0), (INT4_MAX, INT4_MAX, HOURS_MAX), (-INT4_MAX, -INT4_MAX, -HOURS_MAX),
        (0, INT4_MAX, 24), (1, INT4_MAX, 0), (INT4_MAX, -30, 719), (0, 0, HOURS_MAX),
    ],
)  # fmt: skip
def test_every_length_has_an_interval(months: int, days: int, hours: int) -> None:
    """A key of months that their days carried beyond 32 bits could not be read back."""
    interval = Interval(months=months, days=days, microseconds=hours * 3_600_000_000)
    assert Interval.of_length(interval.length).length == interval.length


def test_order_counts_months_as_thirty_days() -> None:
    month, days = read_interval("1 month"), read_interval("30 days")
    assert month == days
    assert hash(month) == hash(days)
    assert read_interval("29 days 23:59:59.999999") < month < read_interval("30 days 1 us")


@pytest.mark.parametrize(
    ("moment", "interval", "sum"),
    [
        (datetime(2020, 1, 31), "1 month", datetime(2020, 2, 29)),
        (datetime(2020, 2, 29), "-1 year", datetime(2019, 2, 28)),
        (datetime(2019, 12, 31), "2 months -1 day 01:00", datetime(2020, 2, 28, 1)),
    ],
)
def test_months_go_to_a_day_that_is_there(moment: datetime, interval: str, sum: datetime) -> None:
    assert added(moment, read_interval(interval)) == sum


def test_sum_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(SQLError, match="timestamp out of range"):
        added(datetime(9999, 12, 31), read_interval("1 day"))


@pytest.mark.parametrize("text", ["", "P", "PT", "1 2", "day", "P1H", "1__0 s"])
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(SQLError) as caught:
        read_interval(text)
    assert caught.value.sqlstate == "22007"
