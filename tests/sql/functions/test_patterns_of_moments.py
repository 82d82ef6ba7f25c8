"""Dates and times written by patterns. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.functions.moment_text import text_in_zone, timestamp_text

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


def test_an_empty_pattern_writes_null() -> None:
    assert timestamp_text(MOMENT, "") is None


@pytest.mark.parametrize("pattern", ["CC", "J", "RM", "A.D."])
def test_words_that_no_client_asks_for_are_refused(pattern: str) -> None:
    with pytest.raises(SQLError) as told:
        timestamp_text(MOMENT, pattern)
    assert told.value.sqlstate == "0A000"
